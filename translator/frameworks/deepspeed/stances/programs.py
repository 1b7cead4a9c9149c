"""Whose model and loop a configuration of the engine drives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from translator.differences.registry import Stance
from translator.subject import Subject

Read = Callable[[Subject], Stance | None]


def trained(subject: Subject) -> bool:
    """Whether the trainer of transformers runs the loop; a program of the user's own does as it likes."""
    return bool(subject.value("@trainer") == "transformers")


def of_transformers(read: Read) -> Read:
    """No stance for models that are not those of transformers, such as Megatron-DeepSpeed's."""

    @wraps(read)
    def known(subject: Subject) -> Stance | None:
        return None if subject.value("@fork") is not None else read(subject)

    return known
