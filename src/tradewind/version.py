"""The version of Tradewind."""

__version__ = "0.1.0"
