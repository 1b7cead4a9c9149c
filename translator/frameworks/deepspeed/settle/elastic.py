"""Elastic training: the batch that DeepSpeed picks for a number of ranks (elasticity/elasticity.py at 0.19.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle.state import CONFIG, WORLD_SUPPLY, State

SECTION = "elasticity"
_FILE = "elasticity/elasticity.py"
_KEYS = (at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION)
# The first highly composite numbers, by which a micro batch is multiplied (elasticity.py:21).
_COMPOSITE = (
    *(1, 2, 4, 6, 12, 24, 36, 48, 60, 120, 180, 240, 360, 720, 840, 1260, 1680, 2520, 5040, 7560, 10080, 15120, 20160),
    *(25200, 27720, 45360, 50400, 55440, 83160, 110880, 166320, 221760, 277200, 332640, 498960, 554400, 665280, 720720),
)
_LARGEST = 1_000_000_000
_MOST_SIZES = 64


class _RefusedError(Exception):
    """What elastic training refuses: a key and a reason."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Settings:
    """The section, sound (elasticity/config.py:46)."""

    largest: int
    micro: list[int]
    least_ranks: int
    most_ranks: int
    per_node: int
    model_parallel: int
    version: float
    larger: bool


def settle_elastic(state: State) -> None:
    """The three sizes as elastic training picks them; it refuses stated ones (runtime/config.py:700-735)."""
    stated = [key for key in _KEYS if state.given(key)]
    if stated and not state.on(f"{SECTION}.ignore_non_elastic_batch_info"):
        message = f"{stated[0]} is stated although elasticity is on, which refuses that ({CONFIG}:727)"
        state.say("S212", message, stated[0], "drop it, or set elasticity.ignore_non_elastic_batch_info")
    world = state.number(at.DP)
    if world is None:
        _leave_open(state, "elastic training picks it from the number of GPUs", WORLD_SUPPLY)
        return
    try:
        batch, micro = _pick(_settings(state), int(world))
    except _RefusedError as refusal:
        state.say("S212", f"{refusal.reason}", f"{SECTION}.{refusal.key}", "change it, or drop elasticity")
        _leave_open(state, "elastic training refuses to start", "write the size and drop elasticity")
        return
    steps = batch // (micro * int(world))
    for key, value in zip(_KEYS, (batch, micro, steps), strict=True):
        state.put(key, value, f"elastic training on {int(world)} ranks ({CONFIG}:740)")


def _leave_open(state: State, reason: str, supply: str) -> None:
    for key in _KEYS:
        state.lack(key, key, reason, supply)


def _refuse(key: str, reason: str) -> NoReturn:
    raise _RefusedError(key, reason)


def _whole(state: State, key: str, least: int) -> int:
    value = state.get(f"{SECTION}.{key}")
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
        _refuse(key, f"{SECTION}.{key} cannot be {value!r}: a whole number from {least} is expected")
    return value


def _settings(state: State) -> _Settings:
    for key in ("max_train_batch_size", "micro_batch_sizes"):
        if not state.given(f"{SECTION}.{key}"):
            _refuse(key, f"{SECTION} needs {key} (elasticity/config.py:53)")
    micro = state.get(f"{SECTION}.micro_batch_sizes")
    items = micro if isinstance(micro, list) else []
    whole = [size for size in items if isinstance(size, int) and not isinstance(size, bool) and size > 0]
    if not whole or len(whole) != len(items) or len(whole) > _MOST_SIZES:
        _refuse("micro_batch_sizes", f"{SECTION}.micro_batch_sizes is a list of positive whole numbers, not {micro!r}")
    found = _Settings(
        _whole(state, "max_train_batch_size", 1),
        whole,
        _whole(state, "min_gpus", 1),
        _whole(state, "max_gpus", 1),
        _whole(state, "num_gpus_per_node", 1),
        _whole(state, "model_parallel_size", 1),
        state.number(f"{SECTION}.version") or 0.0,
        state.get(f"{SECTION}.prefer_larger_batch") is not False,
    )
    if found.most_ranks < found.least_ranks:
        _refuse("min_gpus", f"{SECTION}.min_gpus is more than max_gpus (elasticity/config.py:83)")
    if found.version not in (0.1, 0.2):
        _refuse("version", f"{SECTION}.version is 0.1 or 0.2, not {found.version} ({_FILE}:369)")
    if found.model_parallel > 1 and found.version != 0.2:
        _refuse("model_parallel_size", f"{SECTION}.version 0.1 knows no model parallelism ({_FILE}:312)")
    return found


def _pick(settings: _Settings, world: int) -> tuple[int, int]:
    """Global and micro batch."""
    if settings.version == 0.1:
        batch, valid = _first(settings, settings.largest, settings.least_ranks, settings.most_ranks)
        fits = valid(world)
    else:
        batch, fits = _second(settings, world)
    if not fits:
        _refuse("enabled", f"{world} ranks are none of the counts that elastic training works with ({_FILE}:374)")
    each = batch // world
    micro = next((size for size in sorted(set(settings.micro), reverse=True) if each % size == 0), None)
    if micro is None:
        _refuse("micro_batch_sizes", f"no micro batch divides the {each} samples of a rank ({_FILE}:382)")
    if each < micro:
        _refuse("max_train_batch_size", f"{batch} samples are fewer than the {world} ranks")
    return batch, micro


def _divisors(number: int) -> set[int]:
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    return {*small, *(number // part for part in small)}


def _counts(batch: int, micro: list[int], least: int, most: int) -> set[int]:
    """Ranks that a batch divides among (elasticity.py:42)."""
    parts = {part for size in micro if batch % size == 0 for part in _divisors(batch // size)}
    return {part for part in parts if least <= part <= most}


class _Valid:
    """Whether a number of ranks is among the valid ones."""

    def __init__(self, counts: set[int]) -> None:
        self.counts = counts

    def __call__(self, ranks: int) -> bool:
        return ranks in self.counts


def _first(settings: _Settings, largest: int, least: int, most: int) -> tuple[int, _Valid]:
    """The batch that the most numbers of ranks can share (elasticity.py:83)."""
    micro = settings.micro
    least = least or 1
    most = most or largest // min(micro)
    if any(size > largest for size in micro):
        _refuse("micro_batch_sizes", f"a micro batch is larger than {largest}, the most for this size ({_FILE}:107)")
    candidates = set()
    for base in (*micro, math.lcm(*micro)):
        factor = max((number for number in _COMPOSITE if number <= largest // base), default=1)
        candidates.add(base if base >= largest else factor * base)
    best, found = int(min(micro)), set[int]()
    # Candidates come in the order of a set of small numbers, which decides nothing but ties that cannot be told apart.
    for batch in sorted(candidates):
        if batch > _LARGEST:
            continue
        counts = _counts(batch, micro, least, most)
        wins = batch > best if settings.larger else batch < best
        if len(counts) > len(found) or (len(counts) == len(found) and wins):
            best, found = batch, counts
    return best, _Valid(found)


def _second(settings: _Settings, world: int) -> tuple[int, bool]:
    """Version 0.2 counts whole nodes (elasticity.py:127)."""
    if settings.per_node % settings.model_parallel:
        _refuse("num_gpus_per_node", f"it is no multiple of model_parallel_size ({_FILE}:142)")
    each = settings.per_node // settings.model_parallel
    batch, valid = _first(
        settings,
        settings.largest // each,
        settings.least_ranks // settings.per_node,
        settings.most_ranks // settings.per_node,
    )
    ranks = world // settings.model_parallel
    if ranks % each == 0 and valid(ranks // each):
        return batch * each, world in {count * each for count in valid.counts}
    groups = world / settings.per_node * each
    sizes = [math.floor(settings.largest / (size * groups)) * size * groups for size in settings.micro]
    return int(max(sizes) if settings.larger else min(sizes)), world == int(groups)
