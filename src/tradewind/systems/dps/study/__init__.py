"""The paper's figures and whether they reproduce."""
