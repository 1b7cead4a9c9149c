"""Versioned catalogues of upstream options: load, look up, compare versions, extract from source."""

from __future__ import annotations

from translator.catalogue.model import Catalogue, Entry, History, flavors, history, load, nearest, versions

__all__ = ["Catalogue", "Entry", "History", "flavors", "history", "load", "nearest", "versions"]
