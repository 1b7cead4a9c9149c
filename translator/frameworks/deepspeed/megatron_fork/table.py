"""The table of a fork's scripts: Megatron-LM's rows for what the script says, DeepSpeed's for what the engine does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.megatron_fork import forks, leaves, own
from translator.frameworks.deepspeed.megatron_fork.words import BASE, FLASH, RENAMED, SAME, Arguments
from translator.frameworks.deepspeed.table import table as json_table
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.rows import own as own_row
from translator.mapping.table import Table
from translator.mapping.views import Sink, SpecView
from translator.native import LAUNCH_ADDRESSES, Native
from translator.spec.touches import Touches

UNUSED = "@unused."
_DATA = "parallel.data."
# Leaves that the engine decides: the JSON is in force.
ENGINE = frozenset(
    {
        *(f"precision.{name}" for name in ("compute", "parameters", "master", "grad_accumulate", "grad_reduce")),
        *(f"precision.{name}" for name in ("first_moment", "second_moment", "loss_scale", "initial_loss_scale")),
        *(f"precision.{name}" for name in ("min_loss_scale", "loss_scale_window", "loss_scale_hysteresis")),
        *(f"optimizer.{name}" for name in ("clip_grad_norm", "offload", "offload_fraction")),
        *(f"{_DATA}{name}" for name in ("degree", "sharding", "shard", "replicate", "reshard_after_forward")),
        *(f"{_DATA}{name}" for name in ("overlap_gradient_reduction", "overlap_parameter_gather", "bucket_elements")),
        *(f"{_DATA}{name}" for name in ("average_in_collective", "offload_parameters")),
        "checkpoint.format",
    }
)
_BATCH = {
    at.TRAIN_BATCH: ("batch.global_batch",),
    at.MICRO_BATCH: ("batch.micro_batch",),
    at.ACCUMULATION: ("batch.accumulation",),
}
# Arguments that several others of Megatron-LM's stand for.
_FEEDS: dict[str, tuple[str, ...]] = {
    "num_key_value_heads": ("num_query_groups",),
    **dict.fromkeys(
        ("use_rotary_position_embeddings", "add_position_embedding", "position_embedding_type"),
        ("position_embedding_type",),
    ),
    "normalization": ("normalization",),
    **dict.fromkeys(("swiglu", "glu_activation"), ("swiglu",)),
    **dict.fromkeys(FLASH, ("attention_backend",)),
    "tokenizer_type": ("tokenizer_type",),
    "profile": ("profile",),
    "rampup_batch_size": ("rampup_batch_size",),
    **dict.fromkeys(("fp8_e4m3", "fp8_hybrid"), ("fp8",)),
    "ds_sequence_parallel_size": ("context_parallel_size", "cp_comm_type"),
    "num_experts": ("num_experts",),
    "topk": ("moe_router_topk",),
    "expert_interval": ("moe_layer_freq",),
    "moe_loss_coeff": ("moe_aux_loss_coeff",),
    "moe_train_capacity_factor": ("moe_expert_capacity_factor",),
    "moe_token_dropping": ("moe_expert_capacity_factor", "moe_token_drop_policy"),
    "moe_expert_parallel_size": ("expert_model_parallel_size",),
    "enable_expert_tensor_parallelism": ("expert_tensor_parallel_size",),
    **dict.fromkeys(
        ("checkpoint_activations", "deepspeed_activation_checkpointing"), ("recompute_granularity", "recompute_method")
    ),
    "checkpoint_num_layers": ("recompute_num_layers",),
    "partition_activations": ("distribute_saved_activations",),
    **{
        dest: (dest,)
        for dest in (
            "recompute_activations",
            "recompute_granularity",
            "recompute_method",
            "recompute_num_layers",
            "distribute_saved_activations",
        )
    },
}
_LEAVES: dict[str, tuple[str, ...]] = {
    "lr_warmup_tokens": ("schedule.warmup", "schedule.unit", "schedule.warmup_offset"),
    "lr_decay_tokens": ("schedule.decay_start", "schedule.decay_length", "schedule.unit"),
    "train_tokens": ("schedule.total",),
    "pp_partition_method": ("parallel.pipeline.layer_split",),
    # Stated on both sides; the engine's counts, and `conflicts` compares.
    **dict.fromkeys(("fp16", "bf16"), ("precision.compute", "precision.parameters")),
}
_UNUSED_NOTE = "not in force: the script brings its own"


class ForkTable(Table):
    """Reads a fork's script; nothing is written with it."""

    reads_only = True

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Settled values to leaves: the script's by Megatron-LM's rows, the engine's by DeepSpeed's."""
        from translator.frameworks.megatron.table import table as megatron_table

        flat = megatron_table(BASE).read(values[forks.MEGATRON])
        engine = json_table(self.version).read(values)
        flat |= {leaf: engine[leaf] for leaf in ENGINE}
        return flat | leaves.adjusted(flat, Arguments(Native(self.framework, self.version, values=dict(values))))


def table(native: Native) -> ForkTable:
    """The table for a script; values that no leaf says make their arguments own."""
    return _table(native.version, tuple(sorted(leaves.unsaid(Arguments(native)).items())))


def is_unused(key: str, version: str) -> bool:
    """Whether a key of the JSON is not in force, since the script decides the same."""
    known = json_table(version)
    row = known.row_of_option.get(key)
    if row is None or not row.fields or key.startswith("@") or key in _BATCH or key in ENGINE_KEYS:
        return False
    return not ENGINE & set(known.fields_of(key))


@cache
def _table(version: str, unsaid: tuple[tuple[str, str], ...]) -> ForkTable:
    from translator.frameworks.megatron.table import table as megatron_table

    engine, megatron = json_table(version), megatron_table(BASE)
    left = dict(unsaid)
    feeds = {dest: _fed(dest, megatron) for dest in forks.destinations() if dest not in left}
    feeds = {dest: fed for dest, fed in feeds.items() if fed}
    rows = [*_script_rows(feeds, megatron), *_engine_rows(engine)]
    notes = {address: row for address, row in megatron.row_of_option.items() if not row.fields}
    rows += own.rows(forks.destinations() - feeds.keys() - left.keys(), forks.PREFIX, notes)
    rows += [own_row([forks.address(dest)], Touches.TRAINING, note, Entry.UNSUPPORTED) for dest, note in unsaid]
    known = {*engine.known, *(forks.address(dest) for dest in forks.destinations())}
    known = {address for address in known if not address.startswith(("hf.", "model_config."))}
    unused = [key for key in known if is_unused(key, version)]
    graver = [key for key in unused if key.startswith(("optimizer.", "scheduler."))]
    rows.append(own_row([UNUSED + key for key in graver], Touches.TRAINING, _UNUSED_NOTE))
    rows.append(own_row([UNUSED + key for key in unused if key not in graver], Touches.OPERATION, _UNUSED_NOTE))
    return ForkTable("deepspeed", version, rows, known=known - set(unused))


def _fed(dest: str, megatron: Table) -> tuple[str, ...]:
    """The leaves that an argument feeds."""
    if dest in _LEAVES:
        return _LEAVES[dest]
    options = _FEEDS.get(dest) or ((dest,) if dest in SAME else (RENAMED[dest],) if dest in RENAMED else ())
    return tuple(dict.fromkeys(leaf for option in options for leaf in megatron.fields_of(option) if leaf not in ENGINE))


def _script_rows(feeds: Mapping[str, tuple[str, ...]], megatron: Table) -> Iterable[Row]:
    """Megatron-LM's rows with the fork's arguments in the place of its own, and the JSON's batch beside them."""
    by_row: dict[int, list[str]] = {}
    for dest in sorted(feeds):
        first = next((leaf for leaf in feeds[dest] if leaf not in ENGINE), None)
        if first is not None:
            by_row.setdefault(id(megatron.row_of_field[first]), []).append(dest)
    for row in megatron.rows:
        fields = tuple(leaf for leaf in row.fields if leaf not in ENGINE)
        if not fields:
            continue
        influences = {forks.address(dest): feeds[dest] for dest in by_row.get(id(row), ())}
        if "batch.global_batch" in fields:
            influences = {**_BATCH, **influences}
        launch = [address for address in row.options if address in LAUNCH_ADDRESSES]
        plain = all(address.removeprefix(forks.PREFIX) in SAME for address in influences)
        yield Row(
            (*launch, *influences),
            fields,
            _read_nothing,
            _write_nothing,
            identical=row.identical and plain,
            influences=influences | dict.fromkeys(launch, () if "launch.program" in fields else fields),
        )


def _engine_rows(engine: Table) -> Iterable[Row]:
    """DeepSpeed's rows, as far as the engine decides, and its own ones."""
    for row in engine.rows:
        options = [option for option in row.options if not option.startswith(("hf.", "model_config.", "@accelerate."))]
        if not row.fields:
            if options:
                yield own_row(options, row.touches, row.note, row.entry or Entry.IRRELEVANT)
            continue
        fields = tuple(leaf for leaf in row.fields if leaf in ENGINE)
        influences = {option: tuple(leaf for leaf in row.fields_of(option) if leaf in ENGINE) for option in options}
        used = {option: fed for option, fed in influences.items() if fed or option in ENGINE_KEYS}
        if not fields:
            continue
        if "precision.compute" in fields:
            used |= {forks.address(dest): _LEAVES[dest] for dest in ("bf16", "fp16")}
        yield linked(tuple(used), fields, read=_read_nothing, write=_write_nothing, influences=used)


# Keys that feed no leaf by themselves, in rows that the engine decides.
ENGINE_KEYS = frozenset(
    {
        "zero_optimization.zero_hpz_partition_size",
        "zero_optimization.offload_param.pin_memory",
        "zero_optimization.offload_optimizer.pin_memory",
    }
)


def _read_nothing(_: object) -> Mapping[str, Any]:
    return {}


def _write_nothing(_: SpecView, __: Sink) -> None:
    return None
