"""Links by name, and the two that a cluster has: ``fixtures/hardware/links.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from translator.errors import UsageError
from translator.resources import fixture_path

DEFAULT = "dgx-h100"


@dataclass(frozen=True, slots=True)
class Link:
    """A link of one GPU: bytes/s in one direction, and seconds of one step of a ring and of a tree over it."""

    name: str
    title: str
    bandwidth_bytes_per_second: float
    ring_latency_seconds: float
    tree_latency_seconds: float
    source: str


@dataclass(frozen=True, slots=True)
class Network:
    """The link inside a node and the one between nodes."""

    inside: Link
    between: Link


@cache
def _known() -> dict[str, dict[str, dict[str, Any]]]:
    import yaml

    known: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
        fixture_path("hardware", "links.yaml").read_text(encoding="utf-8")
    )
    return known


def links() -> dict[str, Link]:
    """All links by name."""
    return {
        name: Link(
            name,
            entry["title"],
            float(entry["bandwidth_bytes_per_second"]),
            float(entry["ring_latency_seconds"]),
            float(entry["tree_latency_seconds"]),
            entry["source"],
        )
        for name, entry in _known()["links"].items()
    }


def networks() -> dict[str, Network]:
    """What usually stands together, by name."""
    return {name: network(f"{entry['inside']}+{entry['between']}") for name, entry in _known()["networks"].items()}


def network(name: str = DEFAULT) -> Network:
    """A network by name (``dgx-h100``), or two links joined by a plus sign (``nvlink4+infiniband-ndr``).

    Raises UsageError with the nearest names.
    """
    inside, plus, between = name.partition("+")
    if plus:
        return Network(_link(inside), _link(between))
    found = networks().get(name)
    if found is None:
        raise UsageError(f"no network called {name!r}", fix=f"known: {', '.join(networks())}, or LINK+LINK")
    return found


def _link(name: str) -> Link:
    found = links().get(name)
    if found is None:
        from translator.names import nearest

        raise UsageError(f"no link called {name!r}", fix=f"known: {', '.join(nearest(name, links()) or links())}")
    return found
