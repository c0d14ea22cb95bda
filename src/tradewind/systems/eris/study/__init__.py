"""The paper's figures and tables, with the functions that judge its claims."""
