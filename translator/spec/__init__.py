"""The neutral spec: plain nouns of the field, no framework's words, units in the names.

The models are loaded on first use; the list of leaves does without them (start-up time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.spec.index import LeafInfo, leaves, nest
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from translator.spec.base import Section
    from translator.spec.whole import Spec, flatten

__all__ = ["LeafInfo", "Section", "Spec", "Touches", "flatten", "leaves", "nest"]


def __getattr__(name: str) -> object:
    if name in ("Section", "Spec", "flatten"):
        from translator.spec import whole

        return getattr(whole, name)
    raise AttributeError(f"module 'translator.spec' has no attribute {name!r}")
