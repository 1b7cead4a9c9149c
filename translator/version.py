"""The version of ttx, in one place."""

__version__ = "0.1.0"
