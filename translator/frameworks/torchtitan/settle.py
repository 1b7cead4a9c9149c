"""What torchtitan makes of a configuration: defaults, degrees, batch, schedule, precision, model and stages.

Options keep their addresses; what the code derives from several of them has an address of `addresses`. Nothing here
raises: what torchtitan would refuse is a finding (`refusals`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import idle, refusals, stages
from translator.frameworks.torchtitan.state import State
from translator.native import GPUS_PER_NODE, NODES, WORLD_SIZE, Given, Missing, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue

SHARD = "parallelism.data_parallel_shard_degree"
REPLICATE = "parallelism.data_parallel_replicate_degree"
TENSOR = "parallelism.tensor_parallel_degree"
CONTEXT = "parallelism.context_parallel_degree"
PIPELINE = "parallelism.pipeline_parallel_degree"
EXPERT = "parallelism.expert_parallel_degree"
GLOBAL_BATCH = "training.global_batch_size"
LOCAL_BATCH = "training.local_batch_size"

# models/__init__.py and experiments/__init__.py of 0.2.2.
_REGISTERED = (
    "llama3",
    "llama3_ft",
    "llama4",
    "deepseek_v3",
    "qwen3",
    "gpt_oss",
    "flux",
    "vlm",
    "transformers_modeling_backend",
    "simple_fsdp.llama3",
    "simple_fsdp.deepseek_v3",
    "compiler_toolkit.llama3",
    "compiler_toolkit.deepseek_v3",
    "autoparallel.llama3",
    "autoparallel.deepseek_v3",
    "autoparallel.local_map_deepseek_v3",
)

_SHARD_SOURCE = {
    "0.1.0": "distributed/parallel_dims.py:44",
    "0.2.2": "distributed/parallel_dims.py:50",
    "0.3.0": "distributed/parallel_dims.py:182",
}
_BATCH_SOURCE = {"0.1.0": "train.py", "0.2.2": "train.py:196", "0.3.0": "trainer.py:415"}
_SCHEDULE_SOURCE = {
    "0.1.0": "components/lr_scheduler.py",
    "0.2.2": "components/lr_scheduler.py:108-140",
    "0.3.0": "components/optimizer/lr_scheduler.py",
}


def settle(native: Native, catalogue: Catalogue) -> None:
    """Fill ``native.values`` with what is in force, ``native.derived`` with reasons, and add findings.

    ``data_parallel_shard_degree`` and ``global_batch_size`` of -1 are replaced by what they stand for; without a world
    size they, and all that depends on them, are left out.
    """
    values = native.values
    values.update({address: copy.copy(catalogue.default(address)) for address in catalogue.addresses()})
    values.update({address: copy.copy(value) for address, value in native.explicit_values().items()})
    state = State(native)
    _moved_options(state)
    _model(state)
    settle_world(state)
    settle_batch(state)
    _sequence(state)
    settle_schedule(state)
    _precision(state)
    settle_stages(state)
    refusals.check(state)
    idle.soften(state)


def _moved_options(state: State) -> None:
    """Deprecated options that replace others (``config/manager.py:187-207`` of 0.2.2)."""
    if not state.new:
        return
    extension, tokenizer = state.text("experimental.custom_args_module"), state.text("model.tokenizer_path")
    if extension:
        reason = "taken from experimental.custom_args_module (config/manager.py:193)"
        state.put("job.custom_config_module", extension, reason)
    if tokenizer:
        state.put("model.hf_assets_path", tokenizer, "taken from model.tokenizer_path (config/manager.py:205)")


def _model(state: State) -> None:
    """The architecture behind name and flavor, as neutral leaves under ``@model.``."""
    from translator.frameworks.torchtitan import flavors
    from translator.frameworks.torchtitan.models import family

    name, flavor, version = state.text("model.name"), state.text("model.flavor"), state.native.version
    source = f"flavor {flavor} of {name}"
    own = state.get(at.MODEL_ARGUMENTS)
    found = own.get(f"{name}/{flavor}") if isinstance(own, Mapping) else None
    if isinstance(found, Mapping):
        arguments: Mapping[str, object] | None = flavors.complete(name, found, version)
        source += f", registered by {state.text('experimental.custom_import')}"
    else:
        arguments = flavors.arguments(name, flavor, version)
    state.family = family(name, version)
    if arguments is None:
        if not state.text("experimental.custom_import"):
            _unknown_model(state, name, flavor, flavors.flavor_names(name, version))
        return
    if state.family is None:
        _unknown_model(state, name, flavor, ())
        return
    longest = arguments.get("max_seq_len")
    length = state.number("training.seq_len")
    if state.new and isinstance(longest, int) and length > longest:
        message = f"seq_len {length} exceeds the {longest} positions of {name} {flavor}"
        fix = f"{longest} at the most, unless longer positions are meant"
        state.say("S179", message, "training.seq_len", fix, Level.NOTE)
    try:
        leaves = flavors.leaves_of(name, arguments, version, length or None)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        leaves = None
    if leaves is None:
        return
    for leaf, value in leaves.items():
        state.put(f"@{leaf}", value, source)
    state.put(f"{at.MODEL}name", f"{name}/{flavor}", source)
    layers = leaves.get("model.layers")
    state.layers = layers if isinstance(layers, int) else None


NO_CHECKS = "nothing, but sizes go unchecked; a conversion needs them: model.layers=N and so on"


def _unknown_model(state: State, name: str, flavor: str, known: tuple[str, ...]) -> None:
    if known:
        message = f"{name} has no flavor {flavor!r}"
        state.say("R102", message, "model.flavor", f"one of {', '.join(known)}")
    elif state.native.version == "0.2.2" and name not in _REGISTERED:
        message = f"torchtitan has no model {name!r} (protocols/train_spec.py:87)"
        state.say("R102", message, "model.name", f"one of {', '.join(_REGISTERED)}")
    else:
        message = f"the architecture of {name!r} is not known here"
        state.say("R102", message, "model.name", NO_CHECKS, Level.WARNING)


def settle_world(state: State) -> None:
    """Ranks and the degree of sharding (``distributed/parallel_dims.py:49-56`` of 0.2.2, ``:43-51`` of 0.1.0)."""
    if WORLD_SIZE not in state.native.values:
        nodes, each = state.number(NODES), state.number(GPUS_PER_NODE)
        if nodes and each:
            state.put(WORLD_SIZE, nodes * each, "nodes times GPUs per node")
    replicate, shard = state.number(REPLICATE), state.number(SHARD)
    rest = replicate * state.number(CONTEXT) * state.number(TENSOR) * state.number(PIPELINE)
    world = state.number(WORLD_SIZE)
    if rest < 1 or shard == 0:
        state.drop(SHARD)
        return
    source = _SHARD_SOURCE[state.native.version]
    if shard < 0:
        if world < 1:
            missing = Missing("the number of ranks", "a TOML file does not say it", "--world-size N")
            state.native.given.setdefault(WORLD_SIZE, Given(WORLD_SIZE, missing, "the launch"))
            state.drop(SHARD)
            return
        shard = world // rest
        state.put(SHARD, shard, f"-1 is what the other degrees leave: {world} // {rest} ({source})")
        if shard < 1:
            return
    elif world < 1:
        reason = f"the product of the degrees, which torchtitan demands ({source})"
        state.put(WORLD_SIZE, rest * shard, reason)
    state.put(at.DP_DEGREE, replicate * shard, "data_parallel_replicate_degree times data_parallel_shard_degree")


def settle_batch(state: State) -> None:
    """Global batch, accumulation, micro batches (``train.py:195-215``, ``distributed/pipeline_parallel.py:187``)."""
    local, total, ranks = state.number(LOCAL_BATCH), state.number(GLOBAL_BATCH), state.number(at.DP_DEGREE)
    source = _BATCH_SOURCE[state.native.version]
    pipelined = state.number(PIPELINE) > 1
    micro = state.number("parallelism.pipeline_parallel_microbatch_size") if pipelined else local
    state.put(at.MICRO_BATCH, micro, "one pipeline micro batch" if pipelined else "training.local_batch_size")
    count = local // micro if micro > 0 else 0
    state.put(at.PIPELINE_MICRO_BATCHES, count, "local_batch_size over pipeline_parallel_microbatch_size")
    if total < 0:
        if ranks < 1:
            state.drop(GLOBAL_BATCH)
            return
        total = local * ranks
        state.put(GLOBAL_BATCH, total, f"one local batch per data-parallel rank: {local} * {ranks} ({source})")
    if ranks > 0 and local > 0:
        state.put(at.ACCUMULATION, total // (local * ranks), f"global batch over local batches ({source})")


def _sequence(state: State) -> None:
    """What the sequence length must divide by; 0.1.0 does not ask."""
    if state.new:
        divisor = state.number(TENSOR) * 2 * state.number(CONTEXT)
        state.put(at.SEQ_LEN_DIVISOR, divisor, "tensor * 2 * context (distributed/parallel_dims.py:372)")


def settle_schedule(state: State) -> None:
    """Lengths of warm-up, plateau and decay in steps (``components/lr_scheduler.py:108-140`` of 0.2.2)."""
    steps = state.number("training.steps")
    total = state.number("lr_scheduler.total_steps", steps)
    warmup = min(state.number("lr_scheduler.warmup_steps"), total)
    ratio = state.real("lr_scheduler.decay_ratio")
    decay = total - warmup
    if ratio is not None and math.isfinite(ratio) and abs(ratio) < 1e9:
        decay = min(round(total * ratio), decay)
    source = _SCHEDULE_SOURCE[state.native.version]
    state.put(at.TOTAL_STEPS, total, f"total_steps, or else training.steps ({source})")
    state.put(at.WARMUP_STEPS, warmup, f"warmup_steps, at most all steps ({source})")
    state.put(at.DECAY_STEPS, decay, f"decay_ratio of all steps, at most what the warm-up leaves ({source})")
    state.put(at.STABLE_STEPS, total + 1 - warmup - decay, f"one virtual step more than is left ({source})")


def _precision(state: State) -> None:
    """Whether FSDP runs and frees parameters after the forward pass, and in which format matrix products run."""
    if at.DP_DEGREE not in state.native.values:
        return
    sharded = state.number(SHARD) > 1 or state.number(CONTEXT) > 1
    experts = state.family is not None and state.family.wraps_experts and state.number(EXPERT, 1) > 1
    fsdp = sharded or experts
    state.put(at.FSDP, fsdp, "shard or context degree above 1 (distributed/parallel_dims.py, fsdp_enabled)")
    stored = state.text("training.dtype") or "float32"
    param = state.text("training.mixed_precision_param")
    if fsdp:
        state.put(at.COMPUTE_DTYPE, param, "mixed_precision_param, applied by FSDP")
    elif state.number(TENSOR) > 1 or state.number(PIPELINE) > 1:
        reason = "neither FSDP nor autocast runs with tensor or pipeline parallelism alone (distributed/utils.py:250)"
        state.put(at.COMPUTE_DTYPE, stored, reason)
    else:
        state.put(at.COMPUTE_DTYPE, param, "mixed_precision_param, applied by autocast (distributed/utils.py:260)")
    policy = state.text("parallelism.fsdp_reshard_after_forward")
    free = {"always": True, "never": False}.get(policy, state.number(PIPELINE) == 1)
    source = "models/llama3/infra/parallelize.py:318"
    reason = f"fsdp_reshard_after_forward is {policy}; the default frees unless pipelined ({source})"
    state.put(at.RESHARD_AFTER_FORWARD, free if fsdp else False, reason)


def settle_stages(state: State) -> None:
    """How layers are split over pipeline stages (``distributed/pipeline_parallel.py:43-145``)."""
    ranks = state.number(PIPELINE)
    if ranks < 2:
        return
    name = state.text("parallelism.pipeline_parallel_schedule")
    schedule = stages.find_schedule(name)
    if schedule is None or schedule.abstract:
        known = ", ".join(entry.name for entry in stages.SCHEDULES.values() if not entry.abstract)
        state.say("S157", f"there is no pipeline schedule {name!r}", "parallelism.pipeline_parallel_schedule", known)
        return
    option = stages.LAYERS_PER_STAGE
    try:
        parts = _parts(state, schedule, ranks)
        if parts is None:
            return
        option = stages.MODULE_NAMES if state.get(stages.MODULE_NAMES) else option
        stages.check_stages(len(parts), ranks, schedule)
    except stages.SplitError as error:
        plain = option == stages.LAYERS_PER_STAGE and state.get(option) is None
        fix = (
            "fewer pipeline ranks, or another schedule" if plain else f"leave {option} out, or choose another schedule"
        )
        state.say("S158", f"{error} ({error.source})", option, fix)
        return
    per_rank = len(parts) // ranks
    reason = f"{name} over {ranks} ranks"
    state.put(at.STAGES, len(parts), reason)
    state.put(at.STAGES_PER_RANK, per_rank, reason)
    state.put(at.LAYER_SPLIT, stages.count_layers(parts), reason)
    if not schedule.multi and per_rank != 1:
        message = f"{name} runs one stage per rank and leaves out the others: {len(parts)} stages on {ranks} ranks"
        fix = f"{ranks} stages, or a schedule for several a rank such as Interleaved1F1B"
        state.say("S158", f"{message} (distributed/pipeline_parallel.py:205)", option, fix)
    if state.layers is not None:
        _whole_model(state, parts, state.layers, option)


def _parts(state: State, schedule: stages.Schedule, ranks: int) -> list[list[str]] | None:
    """Module names per stage, or None when the number of layers is not known and no lists are given."""
    lists, head = state.get(stages.MODULE_NAMES), stages.head(state.native.version)
    each = state.number(stages.LAYERS_PER_STAGE, -1)
    layers_each = None if state.get(stages.LAYERS_PER_STAGE) is None else each
    if not state.new:
        points: list[str] | None = state.names(stages.SPLIT_POINTS)
        if state.layers is None:
            return None
        points = points or stages.split_points(state.layers, ranks, schedule, layers_each)
        counts = stages.layers_between(points, state.layers)
        if counts is None:
            raise stages.SplitError(f"split points {points} do not ascend through the layers", "infra/pipeline.py:119")
        return stages.modules(counts, head)
    if state.layers is None:
        return lists if isinstance(lists, list) and lists else None
    first, last = state.number(stages.FIRST_LESS, 1), state.number(stages.LAST_LESS, 1)
    # The number of stages is checked even where lists of modules replace the split.
    count = stages.stage_count(state.layers, ranks, schedule, layers_each=layers_each, first_less=first, last_less=last)
    if isinstance(lists, list) and lists:
        return lists
    return stages.modules(stages.layers_per_stage(state.layers, count, first, last), head)


def _whole_model(state: State, parts: list[list[str]], layers: int, option: str) -> None:
    held = [name for part in parts for name in part]
    wanted = {stages.EMBEDDING, *stages.head(state.native.version), *(f"layers.{layer}" for layer in range(layers))}
    missing = sorted(wanted.difference(held))
    twice = sorted({name for name in held if held.count(name) > 1}) if len(held) != len(set(held)) else []
    if missing or twice:
        parts_of = [f"missing: {', '.join(missing[:4])}"] if missing else []
        parts_of += [f"twice: {', '.join(twice[:4])}"] if twice else []
        message = f"the stages do not hold the model once; {'; '.join(parts_of)}"
        state.say("S160", message, option, "every module in exactly one stage")
