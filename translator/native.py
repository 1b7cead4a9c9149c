"""A native configuration: options of one framework version, as given and as in force.

An *address* names an option in the catalogue of its framework: the name under which an argument is stored, or the
dotted path of a key (``parallelism.tensor_parallel_degree``). What a source says beside the framework's options, such
as facts of the launch (`LAUNCH_ADDRESSES`), has an address that begins with ``@``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from translator.findings import Finding, Place

WORLD_SIZE = "@world_size"
NODES = "@nodes"
GPUS_PER_NODE = "@gpus_per_node"
ENVIRONMENT = "@environment"
PROGRAM = "@program"
LAUNCH_ADDRESSES = (WORLD_SIZE, NODES, GPUS_PER_NODE, ENVIRONMENT, PROGRAM)


def is_option(address: str) -> bool:
    """Whether an address is that of an option; those of what is said beside the options begin with ``@``."""
    return not address.startswith("@")


class Origin(StrEnum):
    """Where an effective value comes from."""

    EXPLICIT = "explicit"
    DEFAULT = "default"
    DERIVED = "derived"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Missing:
    """The value of an option that the files do not determine, for instance ``$SLURM_NNODES``.

    ``supply`` is the flag that would settle it, such as ``--set SLURM_NNODES=...``.
    """

    expression: str
    reason: str
    supply: str

    @property
    def note(self) -> str:
        """Why it is not known, and what would settle it."""
        return "; ".join(part for part in (self.reason, self.supply) if part)


@dataclass(frozen=True, slots=True)
class Given:
    """One option as the source states it.

    ``written`` is the spelling in the source (``--tensor-model-parallel-size``); ``value`` is typed by the
    catalogue, or a `Missing`.
    """

    address: str
    value: object
    written: str
    place: Place | None = None

    @property
    def missing(self) -> Missing | None:
        """The reason why the value is not known, if it is not."""
        return self.value if isinstance(self.value, Missing) else None


@dataclass(slots=True)
class Native:
    """A configuration in the words of one framework version.

    ``given`` holds what the source states (address -> option; launch facts included), ``unknown`` the options that
    the catalogue does not have. ``values`` is what is in force: catalogue defaults overlaid with ``given``, then
    settled by the framework's own fix-ups; ``derived`` says, per address, why a settled value is not what was given
    or defaulted. An address whose value is `Missing` has no entry in ``values``.
    """

    framework: str
    version: str
    given: dict[str, Given] = field(default_factory=dict)
    unknown: list[Given] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    derived: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def origin(self, address: str) -> Origin:
        """Where the value in force at ``address`` comes from."""
        given = self.given.get(address)
        if given is not None and given.missing is not None:
            return Origin.UNKNOWN
        if address in self.derived:
            return Origin.DERIVED
        return Origin.EXPLICIT if given is not None else Origin.DEFAULT

    def explicit_values(self) -> Mapping[str, object]:
        """The stated values that are known, by address."""
        return {address: given.value for address, given in self.given.items() if given.missing is None}


def fit_nodes(native: Native, world_size: int, labels: Mapping[str, str]) -> None:
    """Let nodes and ranks of a node multiply to the world size that the person gives; a node keeps its size.

    ``labels`` are the words for both, by address.
    """
    stated = {address: native.given[address].value for address in (NODES, GPUS_PER_NODE) if address in native.given}
    nodes, gpus = (value if isinstance(value := stated.get(address), int) else 0 for address in (NODES, GPUS_PER_NODE))
    if not stated or nodes * gpus == world_size:
        return
    if gpus and world_size % gpus == 0:
        nodes = world_size // gpus
    elif nodes and world_size % nodes == 0:
        gpus = world_size // nodes
    for address, count in ((NODES, nodes), (GPUS_PER_NODE, gpus)):
        native.given.pop(address, None)
        if nodes * gpus == world_size:
            native.given[address] = Given(address, count, f"{labels[address]} of --world-size")
