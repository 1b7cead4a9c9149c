"""The data of a report: plain values, ready to be laid out; no markup."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Link:
    """A place on the page: what it is called, and its anchor; without an anchor it is told and not shown."""

    label: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a file. ``links`` lead to its counterparts, ``mark`` is the worst that became of what stands there."""

    number: int
    text: str
    anchor: str
    links: list[Link] = field(default_factory=list)
    mark: str = ""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file side by side with another; ``left_out`` counts lines that are not shown, since there are too many."""

    name: str
    lines: list[CodeLine]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """What a rule says about one side."""

    code: str
    level: str
    message: str
    fix: str
    where: Link | None


@dataclass(frozen=True, slots=True)
class Bar:
    """Pipeline stages that hold the same, in bytes: parts by kind, and what the card has to give in all."""

    label: str
    layers: int
    parts: list[tuple[str, float]]
    allocated_bytes: float
    reserved_bytes: float
    outside_bytes: float

    @property
    def card_bytes(self) -> float:
        """Bytes taken from the card."""
        return self.reserved_bytes + self.outside_bytes

    @property
    def slack_bytes(self) -> float:
        """Bytes that the allocator holds and does not use."""
        return max(self.card_bytes - sum(amount for _, amount in self.parts), 0.0)


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of every stage against a card. ``verdict`` is fits, fits narrowly or does not fit."""

    gpu: str
    capacity_bytes: int
    verdict: str
    bars: list[Bar]
    assumed: list[str]
    changes: list[str]

    @property
    def worst(self) -> Bar:
        """The fullest stage."""
        return max(self.bars, key=lambda bar: bar.card_bytes)


@dataclass(frozen=True, slots=True)
class Compute:
    """FLOPs per token of a training step, and the least time that a step takes; None where it is not known."""

    training_flops_per_token: float
    recomputed_flops_per_token: float
    tokens_per_step: int
    ranks: int
    peak_flops_per_second: float
    ideal_step_seconds: float | None


@dataclass(frozen=True, slots=True)
class TransferLine:
    """One kind of communication of a step, for the stage that sends most."""

    name: str
    axis: str
    operation: str
    ranks: int
    crosses_nodes: bool
    message_bytes: float
    calls: float
    sent_bytes: float
    seconds: float
    overlapped: bool
    source: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a rank sends in a step, on named links."""

    network: str
    lines: list[TransferLine]

    @property
    def sent_bytes(self) -> float:
        """Bytes that a rank sends in a step, every kind taken for the stage that sends most of it."""
        return sum(line.sent_bytes for line in self.lines)


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A pipeline stage of the drawing: its layers, and the ranks of each column."""

    stage: int
    layers: int
    ranks: list[str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which rank holds which stage and shard: rows are stages, columns data and context shards.

    ``columns`` holds an empty name where columns are left out; ``replicas`` says how many there are of what is drawn.
    """

    ranks: int
    degrees: list[tuple[str, int]]
    order: str
    replicas: str
    columns: list[str]
    rows: list[LayoutRow]
    experts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def splits_tensors(self) -> bool:
        """Whether a cell holds a tensor-parallel group, not one rank."""
        return any(name == "tensor" for name, _ in self.degrees)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configurations. ``unknown`` says by part why it is missing."""

    key: str
    label: str
    title: str
    framework: str
    version: str
    name: str
    files: list[CodeFile] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    memory: Memory | None = None
    compute: Compute | None = None
    layout: Layout | None = None
    traffic: Traffic | None = None
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One option and its fate. ``loss`` says that a part of its meaning is gone."""

    option: str
    value: str
    where: Link | None
    entry: str
    loss: bool
    target: str
    target_links: list[Link]
    note: str


@dataclass(frozen=True, slots=True)
class LedgerGroup:
    """Options by what they touch."""

    touches: str
    heading: str
    rows: list[LedgerRow]

    @property
    def losses(self) -> int:
        """How many of them lose something."""
        return sum(row.loss for row in self.rows)


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field that both sides say differently."""

    field: str
    left: str
    right: str
    left_where: str
    right_where: str


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields that differ, by what they touch."""

    touches: str
    heading: str
    rows: list[FieldRow]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The same words with another meaning: what each side does, where that was read, and what to do."""

    code: str
    level: str
    title: str
    left: str
    left_source: str
    right: str
    right_source: str
    weight: str
    fix: str
    where: Link | None


@dataclass(frozen=True, slots=True)
class Series:
    """A learning-rate curve: (step, rate) pairs."""

    label: str
    points: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of both sides over the steps that they share, and where they differ most.

    ``opening`` are the same curves over the first steps, where those are where they differ most, and are a small part.
    """

    steps: int
    peak: float
    series: list[Series]
    largest_difference: float
    share_of_peak: float
    at_step: int
    opening: Curves | None = None

    @property
    def drawings(self) -> list[Curves]:
        """The whole, and the opening where it is drawn apart."""
        return [self] if self.opening is None else [self, self.opening]


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that a person must decide: ``kind`` says why, ``way`` how."""

    kind: str
    subject: str
    text: str
    way: str
    where: Link | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command line to run, and what for."""

    purpose: str
    line: str


@dataclass(frozen=True, slots=True)
class Report:
    """A report: of a conversion (then ``ledger`` says what became of every option), or of two configurations.

    ``subject`` says in a line what is trained, and how long; ``refused`` that a framework would refuse its side of a
    conversion.
    """

    title: str
    subject: str
    verdict: str
    same_training: bool
    counts: list[tuple[str, int]]
    left: Side
    right: Side
    decisions: list[Decision]
    ledger: list[LedgerGroup]
    fields: list[FieldGroup]
    meanings: list[Meaning]
    curves: Curves | None
    curves_unknown: str
    commands: list[Command]
    files: list[str]
    refused: bool = False

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides."""
        return self.left, self.right

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        return {"schema_version": 1, **asdict(self)}
