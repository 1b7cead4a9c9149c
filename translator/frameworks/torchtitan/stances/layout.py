"""torchtitan on who holds what, and when it is gathered."""

from __future__ import annotations
