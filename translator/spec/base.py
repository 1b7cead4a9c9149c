"""The base of every section of the spec, and the facts each leaf carries."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from translator.spec.touches import Touches


class Section(BaseModel):
    """A section of the spec. Every leaf may be None: not stated, or without meaning in this configuration."""

    # Only the whole spec is validated, so the sections build no validators of their own (start-up time).
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, protected_namespaces=(), defer_build=True
    )


def leaf(doc: str, touches: Touches = Touches.TRAINING, **constraints: Any) -> Any:
    """A leaf of the spec: optional, documented, and marked with what it touches.

    ``constraints`` are pydantic's (``ge``, ``gt``, ``le`` ...).
    """
    return Field(None, description=doc, json_schema_extra={"touches": touches.value}, **constraints)


MEMORY = Touches.MEMORY
SPEED = Touches.SPEED
OPERATION = Touches.OPERATION
NOTHING = Touches.NOTHING
