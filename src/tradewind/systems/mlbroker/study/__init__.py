"""The paper's figures and verdicts on its claims."""
