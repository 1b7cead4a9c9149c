"""Layouts: who holds which part of which state, and when it is gathered."""

from __future__ import annotations
