"""Pipeline schedules and the split of a model's layers into pipeline stages.

torchtitan 0.2.2 spreads *effective* layers evenly over the stages: the transformer layers, plus a weight for the
embedding on the first stage and one for norm and output on the last (``distributed/pipeline_parallel.py:236-344``);
what does not divide goes to the first stages. 0.1.0 does the same with both weights fixed at one, and calls the borders
split points (``distributed/pipeline.py:30-124``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

FIRST_LESS = "parallelism.pipeline_parallel_first_stage_less_layers"
LAST_LESS = "parallelism.pipeline_parallel_last_stage_less_layers"
LAYERS_PER_STAGE = "parallelism.pipeline_parallel_layers_per_stage"
MODULE_NAMES = "parallelism.module_fqns_per_model_part"
SPLIT_POINTS = "parallelism.pipeline_parallel_split_points"

EMBEDDING = "tok_embeddings"
HEAD = ("norm", "output")
HEAD_030 = ("norm", "lm_head")
DEFAULT_WEIGHT = 1


def head(version: str) -> tuple[str, str]:
    """The modules behind the layers: 0.3.0 renamed the output projection."""
    return HEAD_030 if version == "0.3.0" else HEAD


class SplitError(ValueError):
    """torchtitan refuses this split; ``source`` is the line that does."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


class Schedule(NamedTuple):
    """A pipeline schedule by its name in torch.

    ``multi`` schedules run several stages per rank, two unless options say more; ``v_shape`` ones exactly two, and rank
    r holds the stages r and 2 * ranks - 1 - r. Other schedules loop: rank r holds the stages r, r + ranks and so on.
    ``abstract`` names exist in torch's table, but cannot train.
    """

    name: str
    multi: bool
    v_shape: bool = False
    abstract: bool = False

    @property
    def default_stages_per_rank(self) -> int:
        """Stages per rank without further options (``pipeline_parallel.py:115-119``)."""
        return 2 if self.multi else 1


# torch/distributed/pipelining/schedules.py:3620 (torch 2.13.0); v_shape from pipeline_parallel.py:445-448 (0.2.2).
SCHEDULES = {
    schedule.name.lower(): schedule
    for schedule in (
        Schedule("1F1B", multi=False),
        Schedule("GPipe", multi=False),
        Schedule("Interleaved1F1B", multi=True),
        Schedule("LoopedBFS", multi=True),
        Schedule("InterleavedZeroBubble", multi=True),
        Schedule("ZBVZeroBubble", multi=True, v_shape=True),
        Schedule("DualPipeV", multi=True, v_shape=True),
        Schedule("PipelineScheduleSingle", multi=False, abstract=True),
        Schedule("PipelineScheduleMulti", multi=True, abstract=True),
    )
}


def find_schedule(name: str) -> Schedule | None:
    """The schedule of that name, whatever its case, or None when torch has none."""
    return SCHEDULES.get(name.lower())


def layers_per_stage(
    layers: int, stages: int, first_less: int = DEFAULT_WEIGHT, last_less: int = DEFAULT_WEIGHT
) -> list[int]:
    """Transformer layers of each stage, in model order (0.2.2).

    Raises `SplitError` where torchtitan does.
    """
    source = "distributed/pipeline_parallel.py"
    if stages < 1:
        raise SplitError("the number of stages must be at least 1", f"{source}:259")
    if stages == 1:
        return [layers]
    effective = layers + first_less + last_less
    if stages > effective:
        raise SplitError(f"{stages} stages are more than the {effective} effective layers", f"{source}:270")
    base, extra = divmod(effective, stages)
    if first_less > base:
        raise SplitError(
            f"first_stage_less_layers ({first_less}) exceeds the {base} layers of a stage", f"{source}:291"
        )
    if last_less > base:
        raise SplitError(f"last_stage_less_layers ({last_less}) exceeds the {base} layers of a stage", f"{source}:294")
    counts = [base + (stage < extra) for stage in range(stages)]
    counts[0] -= first_less
    counts[-1] -= last_less
    # A negative weight can promise more layers than are left; upstream hands out layers in order until none is.
    left = layers
    for stage, count in enumerate(counts):
        counts[stage] = min(count, left)
        left -= counts[stage]
    return counts


def modules(counts: Sequence[int], last: Sequence[str] = HEAD) -> list[list[str]]:
    """Module names of each stage for the given layers per stage: embedding first, then ``last`` in the last one."""
    parts: list[list[str]] = []
    next_layer = 0
    for count in counts:
        parts.append([f"layers.{layer}" for layer in range(next_layer, next_layer + count)])
        next_layer += count
    parts[0].insert(0, EMBEDDING)
    parts[-1].extend(last)
    return parts


def split(
    layers: int, stages: int, first_less: int = DEFAULT_WEIGHT, last_less: int = DEFAULT_WEIGHT
) -> list[list[str]]:
    """Module names of each stage, as torchtitan 0.2.2 generates them.

    Raises `SplitError` where torchtitan does.
    """
    return modules(layers_per_stage(layers, stages, first_less, last_less))


def count_layers(parts: Sequence[Sequence[str]]) -> list[int]:
    """Layers per stage of a list of module names."""
    return [sum(name.startswith("layers.") for name in part) for part in parts]


def stage_count(
    layers: int,
    ranks: int,
    schedule: Schedule,
    *,
    layers_each: int | None = None,
    first_less: int = DEFAULT_WEIGHT,
    last_less: int = DEFAULT_WEIGHT,
) -> int:
    """Stages over all pipeline ranks (0.2.2, ``distributed/pipeline_parallel.py:72-119``).

    ``layers_each`` is the option ``pipeline_parallel_layers_per_stage``. Raises `SplitError` where torchtitan does.
    """
    source = "distributed/pipeline_parallel.py"
    if layers_each is None:
        return ranks * schedule.default_stages_per_rank
    if layers_each < 1:
        raise SplitError("layers per stage must be at least 1", f"{source}:75")
    stages = -(-(layers + first_less + last_less) // layers_each)
    if stages % ranks:
        raise SplitError(f"{stages} stages cannot be spread evenly over {ranks} pipeline ranks", f"{source}:86")
    per_rank = stages // ranks
    if not schedule.multi and per_rank != 1:
        raise SplitError(f"{schedule.name} runs one stage per rank, but {per_rank} result", f"{source}:97")
    if schedule.multi and per_rank < 2:
        raise SplitError(f"{schedule.name} needs two stages per rank or more, but {per_rank} result", f"{source}:105")
    return stages


def check_stages(stages: int, ranks: int, schedule: Schedule) -> None:
    """Raises `SplitError` when a schedule cannot place that many stages (0.2.2, ``pipeline_parallel.py:456-463``)."""
    source = "distributed/pipeline_parallel.py"
    if stages % ranks:
        raise SplitError(f"{stages} stages cannot be spread evenly over {ranks} pipeline ranks", f"{source}:456")
    if schedule.v_shape and stages != 2 * ranks:
        raise SplitError(f"{schedule.name} needs two stages per rank, not {stages // ranks}", f"{source}:463")


def stages_of_rank(rank: int, ranks: int, stages: int, schedule: Schedule) -> tuple[int, ...]:
    """The stages that a pipeline rank holds, in the order in which it holds them (``pipeline_parallel.py:451-469``).

    Megatron-LM numbers virtual stages in the order of the looped schedules: its chunk v on rank r is the stage
    v * ranks + r.
    """
    if schedule.v_shape:
        return (rank, stages - 1 - rank)
    return tuple(range(rank, stages, ranks))


def _weights(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs of weights with which torchtitan splits like this, those nearest to the defaults first."""
    stages, layers = len(counts), sum(counts)
    # Every stage between first and last has the even share, or one layer more; the last one never has the extra layer.
    shares = {counts[-2], counts[-2] - 1} if stages > 2 else set(range(max(counts) + 2))
    found = {(share + extra - counts[0], share - counts[-1]) for share in shares for extra in (0, 1)}
    pairs = [pair for pair in found if min(pair) >= 0]
    pairs.sort(key=lambda pair: (sum(weight != DEFAULT_WEIGHT for weight in pair), sum(pair), pair))
    for first, last in pairs:
        try:
            if layers_per_stage(layers, stages, first, last) == list(counts):
                yield first, last
        except SplitError:
            continue


def reproduce(
    counts: Sequence[int], schedule: Schedule, ranks: int, closing: Sequence[str] = HEAD
) -> dict[str, object]:
    """The fewest options with which torchtitan 0.2.2 gives each stage ``counts[stage]`` layers, in model order.

    0.3.0 does the same with its own names for the ``closing`` modules.

    The weights of the first and last stage are preferred; the number of stages is then set, where it is not the default
    one, by the layers per stage. Any other split is written as lists of module names. Raises `SplitError` for a number
    of stages that the schedule cannot run.
    """
    stages = len(counts)
    check_stages(stages, ranks, schedule)
    by_default = stages == ranks * schedule.default_stages_per_rank
    for first, last in _weights(counts):
        options: dict[str, object] = {}
        if first != DEFAULT_WEIGHT:
            options[FIRST_LESS] = first
        if last != DEFAULT_WEIGHT:
            options[LAST_LESS] = last
        if by_default:
            return options
        effective = sum(counts) + first + last
        each = -(-effective // stages)
        if -(-effective // each) == stages and schedule.multi:
            return {**options, LAYERS_PER_STAGE: each}
    return {MODULE_NAMES: modules(counts, closing)}


def split_points(layers: int, ranks: int, schedule: Schedule, layers_each: int | None = None) -> list[str]:
    """The first layer of every stage but the first, as torchtitan 0.1.0 generates them.

    Raises `SplitError` where torchtitan does.
    """
    source = "distributed/pipeline.py"
    effective = layers + 2 * DEFAULT_WEIGHT
    if layers_each is not None:
        if layers_each < 1 or effective % ranks or (effective // ranks) % layers_each:
            raise SplitError(
                f"{effective} effective layers do not fit {ranks} ranks with {layers_each} layers per stage",
                f"{source}:74",
            )
        per_rank = effective // ranks // layers_each
        if (per_rank != 1) if not schedule.multi else (per_rank < 2):
            raise SplitError(f"{schedule.name} cannot run {per_rank} stages per rank", f"{source}:81")
        stages, extra = per_rank * ranks, 0
    else:
        stages = ranks * schedule.default_stages_per_rank
        if stages > effective:
            raise SplitError(f"{stages} stages are more than the {effective} effective layers", f"{source}:95")
        layers_each, extra = divmod(effective, stages)
    points: list[str] = []
    border = -DEFAULT_WEIGHT
    for stage in range(stages - 1):
        border += layers_each + (stage < extra)
        points.append(f"layers.{border}")
    return points


def layers_between(points: Sequence[str], layers: int) -> list[int] | None:
    """Layers per stage for the split points of 0.1.0; None when a point is no layer or they do not ascend."""
    borders = [0]
    for point in points:
        name, _, number = point.partition(".")
        if name != "layers" or not number.isdecimal() or not borders[-1] <= int(number) <= layers:
            return None
        borders.append(int(number))
    borders.append(layers)
    return [after - before for before, after in pairwise(borders)]


def reproduce_points(counts: Sequence[int], schedule: Schedule, ranks: int) -> dict[str, object]:
    """The fewest options with which torchtitan 0.1.0 gives each stage ``counts[stage]`` layers, in model order.

    Raises `SplitError` for a number of stages that the schedule cannot run.
    """
    check_stages(len(counts), ranks, schedule)
    layers = sum(counts)
    effective = layers + 2 * DEFAULT_WEIGHT
    even, rest = divmod(effective, len(counts))
    for layers_each in (None, even if not rest else None):
        try:
            if layers_between(split_points(layers, ranks, schedule, layers_each), layers) == list(counts):
                return {} if layers_each is None else {LAYERS_PER_STAGE: layers_each}
        except SplitError:
            continue
    borders = [sum(counts[:stage]) for stage in range(1, len(counts))]
    return {SPLIT_POINTS: [f"layers.{border}" for border in borders]}
