"""Configurations that people get wrong: one real one with a few keys deleted, mistyped, huge, renamed or nested."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

# Values that no key expects, or that only some do.
ODD: tuple[Any, ...] = (
    *(None, True, False, [], {}, [1, [2]], {"a": {"b": 1}}),
    *("auto", "", "Adam", "12", "1e5", "true", "none", "\u00e9\n\x07"),
    *(0, 1, -1, -7, 3, 2.5, 2**31, 2**63, 2**70, 10**30, -(2**70), 1e308, -1e308, 1e-300, 1e9, 5e8),
    *(float("nan"), float("inf"), -float("inf")),
)  # fmt: skip


def paths(node: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of a configuration, sections included."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*at, key)
            yield from paths(value, (*at, key))


def mutated(document: dict[str, Any], generator: random.Random) -> tuple[dict[str, Any], list[str]]:
    """A copy with one to three changes, and what they are."""
    result = copy.deepcopy(document)
    done: list[str] = []
    for _ in range(generator.choice((1, 1, 2, 3))):
        known = list(paths(result))
        if not known:
            break
        path = generator.choice(known)
        parent: Any = result
        for key in path[:-1]:
            parent = parent[key]
        name = path[-1]
        kind = generator.choice(("delete", "value", "value", "value", "value", "rename", "nest", "move"))
        if kind == "delete":
            del parent[name]
        elif kind == "value":
            parent[name] = generator.choice(ODD)
        elif kind == "rename":
            parent[name[:-1] + generator.choice(("", "x", name[-1:] + "_"))] = parent.pop(name)
        elif kind == "nest":
            parent[name] = {name: parent[name]}
        else:
            result[name] = parent.pop(name)
        done.append(f"{kind} {'.'.join(path)}")
    return result, done
