"""How the frameworks do the same things: concepts, and each framework's way with its options, costs and source.

A concept is neutral (`concepts`); how a framework does it stands in the framework's own folder, in the modules that its
`translator.knowledge.Knowledge` names as ``concepts``. Options come from the mapping tables, differences from their
registry, bytes from the account of communication: nothing is typed twice.
"""

from __future__ import annotations
