"""``python -m translator``: the same as the command ``ttx``."""

from translator.cli import entry

entry()
