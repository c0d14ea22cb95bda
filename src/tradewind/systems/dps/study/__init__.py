"""The paper's figures, and who judges them."""
