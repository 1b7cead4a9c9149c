"""Sizes of the parallel groups, virtual pipeline stages, what the environment must say.

Source: ``validate_args``, ``megatron/training/arguments.py:399`` (core 0.18.0), with ``parallel_state.py:730``.
"""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.megatron.settle.engine import Rules, Settling, because
from translator.frameworks.megatron.settle.layout import LayoutError, parse_layout
from translator.native import WORLD_SIZE

SIZES = Rules()
STAGES = Rules()
TENSOR = Rules()

SIZE_ADDRESSES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
)
# Which GPU is used is nowhere in the options; upstream's rules for Hopper and older are taken.
ASSUMED_ARCH = 9
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


@SIZES.rule()
def sizes_are_positive(state: Settling) -> None:
    """Refuse sizes below one, on which every later division would fail."""
    for address in (*SIZE_ADDRESSES, "micro_batch_size", "num_attention_heads", "make_vocab_size_divisible_by"):
        value = state.values.get(address)
        if isinstance(value, int) and value < 1:
            state.refuse("S113", f"{address.replace('_', ' ')} is {value}", address, "give a size of at least 1")


@SIZES.rule("world_size")
def world_size(state: Settling) -> None:
    """Take the world size of the launch."""
    given = state.native.given.get(WORLD_SIZE)
    if given is None or not isinstance(given.value, int):
        state.missing.add("world_size")
        return
    state.recode("world_size", given.value)
    if "inprocess_active_world_size" in state.values and "inprocess_active_world_size" not in state.native.given:
        state.recode("inprocess_active_world_size", given.value)


@SIZES.rule("encoder_tensor_model_parallel_size", until="0.14")
def encoder_tensor_size(state: Settling) -> None:
    """An encoder of its own takes the decoder's tensor parallel size."""
    if state["encoder_pipeline_model_parallel_size"] and state["encoder_tensor_model_parallel_size"] == 0:
        reason = because("as large as the decoder's", 308, version="0.12.0")
        state.put("encoder_tensor_model_parallel_size", state["tensor_model_parallel_size"], reason)


@SIZES.rule("tensor_parallel_num_weight_shards", "gtp_weight_remat_size", since="0.19")
def weight_shards(state: Settling) -> None:
    """Split each weight over more ranks than compute with it."""
    tensor = state["tensor_model_parallel_size"]
    shards = state["tensor_parallel_num_weight_shards"]
    if shards is None:
        reason = because("the tensor parallel size", 29, "megatron/core/model_parallel_config.py", "0.19.0")
        state.put("tensor_parallel_num_weight_shards", tensor, reason)
        shards = tensor
    if shards < tensor or shards % tensor:
        message = f"weight shards ({shards}) must be a multiple of the tensor parallel size ({tensor})"
        state.refuse("S123", message, "tensor_parallel_num_weight_shards")
    state.recode("gtp_weight_remat_size", max(1, shards // tensor))


@SIZES.rule("transformer_pipeline_model_parallel_size")
def transformer_pipeline_size(state: Settling) -> None:
    """Keep the pipeline size under the second name that upstream gives it."""
    state.recode("transformer_pipeline_model_parallel_size", state["pipeline_model_parallel_size"])


@SIZES.rule("data_parallel_size")
def data_parallel_size(state: Settling) -> None:
    """World size over the model parallel sizes; expert parallelism is not among them."""
    total = state.need("tensor_model_parallel_size") * state.need("pipeline_model_parallel_size")
    total *= state.need("context_parallel_size") * (state["gtp_weight_remat_size"] or 1)
    if state["encoder_pipeline_model_parallel_size"]:
        encoder = state["encoder_pipeline_model_parallel_size"] * state["encoder_tensor_model_parallel_size"]
        total += encoder * state["context_parallel_size"]
    world = state.need("world_size")
    if total < 1 or world % total:
        message = f"world size ({world}) is not a multiple of tensor x pipeline x context parallel size ({total})"
        state.refuse("S100", message, "tensor_model_parallel_size", _other_world(total, world))
    if world < total:
        state.missing.add("data_parallel_size")
        return
    state.put("data_parallel_size", world // total, because("world size / (TP x PP x CP)", 436))


def _other_world(total: int, world: int) -> str:
    if total < 1:
        return "give sizes of at least 1"
    return f"run on a multiple of {total} processes, or choose parallel sizes whose product divides {world}"


@SIZES.rule()
def hierarchical_context(state: Settling) -> None:
    """Hierarchical context parallel groups multiply to the context parallel size."""
    groups = state["hierarchical_context_parallel_sizes"]
    product = 1
    for size in groups or ():
        product *= size
    if groups and product != state["context_parallel_size"]:
        message = f"hierarchical context parallel sizes multiply to {product}, not {state['context_parallel_size']}"
        state.refuse("S100", message, "hierarchical_context_parallel_sizes")
    if "a2a+p2p" in (state["cp_comm_type"] or ()) and groups is None:
        state.refuse("S100", "a2a+p2p needs --hierarchical-context-parallel-sizes", "cp_comm_type")


@SIZES.rule("expert_tensor_parallel_size")
def expert_tensor_size(state: Settling) -> None:
    """Experts are split as the rest of the model is, unless told otherwise."""
    if state["expert_tensor_parallel_size"] is None:
        value = state.need("tensor_model_parallel_size")
        state.put("expert_tensor_parallel_size", value, because("the tensor parallel size", 586))


@SIZES.rule("expert_tensor_parallel_num_weight_shards", "expert_gtp_weight_remat_size", since="0.19")
def expert_weight_shards(state: Settling) -> None:
    """Split expert weights over more ranks than compute with them."""
    tensor = state.need("expert_tensor_parallel_size")
    shards = state["expert_tensor_parallel_num_weight_shards"]
    if shards is None:
        reason = because("the expert tensor parallel size", 29, "megatron/core/model_parallel_config.py", "0.19.0")
        state.put("expert_tensor_parallel_num_weight_shards", tensor, reason)
        shards = tensor
    state.recode("expert_gtp_weight_remat_size", max(1, shards // tensor))


@SIZES.rule("expert_data_parallel_size")
def expert_data_size(state: Settling) -> None:
    """World size over the expert grid; checked when the groups are made, not by the argument parser."""
    total = state.need("expert_tensor_parallel_size") * state.need("expert_model_parallel_size")
    total *= state.need("pipeline_model_parallel_size")
    world = state.need("world_size")
    # Where nothing sets it apart this grid is a part of the other one, which has been checked.
    apart = state["num_experts"] or state["expert_tensor_parallel_size"] != state["tensor_model_parallel_size"]
    if world % total and apart:
        message = f"world size ({world}) is not a multiple of expert tensor x expert x pipeline parallel size ({total})"
        state.refuse("S100", message, "expert_model_parallel_size", _other_world(total, world))
    if world >= total:
        reason = because("world size / (ETP x EP x PP)", 786, "megatron/core/parallel_state.py")
        state.put("expert_data_parallel_size", world // total, reason)
    else:
        state.missing.add("expert_data_parallel_size")


@STAGES.rule("virtual_pipeline_model_parallel_size")
def virtual_stages(state: Settling) -> None:
    """Virtual stages per pipeline rank, from whichever option states them; one is none."""
    if state["hybrid_layer_pattern"] is not None and state.version >= (0, 17):
        return
    ways = (
        "num_layers_per_virtual_pipeline_stage",
        "num_virtual_stages_per_pipeline_rank",
        "pipeline_model_parallel_layout",
    )
    stated = [way for way in ways if state[way] is not None]
    if len(stated) > 1:
        message = "at most one of " + ", ".join("--" + way.replace("_", "-") for way in ways) + " may be given"
        state.refuse("S103", message, stated[1])
    pipeline = state.need("pipeline_model_parallel_size")
    stages: int | None = None
    if state["pipeline_model_parallel_layout"] is not None:
        stages = _stages_of_layout(state, pipeline)
    elif state["num_virtual_stages_per_pipeline_rank"] is not None:
        stages = state["num_virtual_stages_per_pipeline_rank"]
    elif state["num_layers_per_virtual_pipeline_stage"] is not None:
        stages = _stages_of_chunk(state, pipeline)
    else:
        _check_even_split(state, pipeline)
    value = None if stages == 1 and state.version >= (0, 14) else stages
    state.put("virtual_pipeline_model_parallel_size", value, because("virtual stages per pipeline rank", 929))


def _counted_layers(state: Settling) -> int:
    layers = state["num_layers"] if state["num_layers"] is not None else state.need("decoder_num_layers")
    return int(
        layers
        + bool(state["account_for_embedding_in_pipeline_split"])
        + bool(state["account_for_loss_in_pipeline_split"])
    )


def _stages_of_layout(state: Settling, pipeline: int) -> int:
    try:
        stages = len(parse_layout(state["pipeline_model_parallel_layout"]))
    except LayoutError as error:
        state.refuse("S102", str(error), "pipeline_model_parallel_layout")
        state.missing.add("virtual_pipeline_model_parallel_size")
        raise ArithmeticError from error
    if stages % pipeline:
        message = f"the layout has {stages} stages, not a multiple of the pipeline parallel size ({pipeline})"
        state.refuse("S102", message, "pipeline_model_parallel_layout")
    return stages // pipeline


def _other_split(state: Settling, pipeline: int) -> str:
    layers = _counted_layers(state)
    degree = next(degree for degree in range(min(pipeline, layers), 0, -1) if layers % degree == 0)
    return f"--pipeline-model-parallel-size {degree}, or a number of layers that {pipeline} divides"


def _stages_of_chunk(state: Settling, pipeline: int) -> int:
    if state["decoder_first_pipeline_num_layers"] is not None or state["decoder_last_pipeline_num_layers"] is not None:
        message = "an uneven pipeline states its virtual stages by --num-virtual-stages-per-pipeline-rank"
        state.refuse("S103", message, "num_layers_per_virtual_pipeline_stage")
    layers, chunk = _counted_layers(state), state["num_layers_per_virtual_pipeline_stage"]
    if layers % pipeline:
        message = f"{layers} layers do not divide over {pipeline} pipeline stages"
        state.refuse("S102", message, "pipeline_model_parallel_size", _other_split(state, pipeline))
    elif layers // pipeline % chunk:
        message = f"{layers // pipeline} layers per pipeline stage do not divide into virtual stages of {chunk}"
        state.refuse("S102", message, "num_layers_per_virtual_pipeline_stage")
    return int(layers // pipeline // chunk)


def _check_even_split(state: Settling, pipeline: int) -> None:
    if state["decoder_first_pipeline_num_layers"] is not None or state["decoder_last_pipeline_num_layers"] is not None:
        return
    if state["num_layers"] is not None and _counted_layers(state) % pipeline:
        message = f"{_counted_layers(state)} layers do not divide over {pipeline} pipeline stages"
        state.refuse("S102", message, "pipeline_model_parallel_size", _other_split(state, pipeline))


@STAGES.rule("overlap_p2p_comm", "align_param_gather")
def interleaved(state: Settling) -> None:
    """Point-to-point overlap exists only in the interleaved schedule."""
    if state["virtual_pipeline_model_parallel_size"] is None:
        reason = because("off: the schedule is not interleaved", 991)
        state.put("overlap_p2p_comm", False, reason)
        state.put("align_param_gather", False, reason)
        return
    pipeline, least = state["pipeline_model_parallel_size"], 1 if state["overlap_p2p_comm"] else 2
    if pipeline <= least:
        message = f"an interleaved schedule needs more than {least} pipeline stages, not {pipeline}"
        if least == 2:
            message += ", when p2p communication does not overlap"
        state.refuse("S103", message, "pipeline_model_parallel_size")


@TENSOR.rule("sequence_parallel")
def sequence_parallel(state: Settling) -> None:
    """Sequence parallelism is switched off where there is no tensor parallelism."""
    if state["sequence_parallel"] and state["tensor_model_parallel_size"] == 1:
        state.put("sequence_parallel", False, because("off: the tensor parallel size is 1", 1384))
    if state["tp_comm_overlap"] and not state["sequence_parallel"]:
        state.refuse("S123", "--tp-comm-overlap needs sequence parallelism, which is off", "tp_comm_overlap")


@TENSOR.rule()
def connections(state: Settling) -> None:
    """The number of hardware queues that the communication pattern needs."""
    fsdp = (
        state["use_torch_fsdp2"] or state["use_megatron_fsdp"] or (state.version < (0, 14) and state["use_custom_fsdp"])
    )
    split = state["tensor_model_parallel_size"] > 1 or state["context_parallel_size"] > 1
    if state.environment is None:
        return
    value = state.environment.get(CONNECTIONS)
    if fsdp and value == "1":
        state.refuse("S111", f"FSDP requires {CONNECTIONS} to be unset or above 1", None, f"unset {CONNECTIONS}")
    if fsdp or not split or state["overlap_moe_expert_parallel_comm"] or value == "1":
        return
    message = f"tensor or context parallelism requires {CONNECTIONS}=1 on GPUs before Blackwell"
    message += "; nothing here sets it" if value is None else f", not {value}"
    # What the files do not set may still be set outside of them.
    level = Level.WARNING if value is None else Level.ERROR
    option = "tensor_model_parallel_size" if state["tensor_model_parallel_size"] > 1 else "context_parallel_size"
    state.refuse("S111", message, option, f"export {CONNECTIONS}=1", level)


@TENSOR.rule("high_priority_stream_groups", since="0.14")
def high_priority_streams(state: Settling) -> None:
    """FSDP gives its communication groups priority."""
    if not (state["use_torch_fsdp2"] or (state["use_megatron_fsdp"] and ASSUMED_ARCH >= 10)):
        return
    groups = list(state["high_priority_stream_groups"] or ())
    wanted = ["dp_cp", *(["ep_dp"] if state["expert_model_parallel_size"] > 1 else [])]
    groups += [group for group in wanted if group not in groups]
    state.put("high_priority_stream_groups", groups, because("FSDP communicates with priority", 1431))


@TENSOR.rule()
def hybrid_context(state: Settling) -> None:
    """Hybrid context parallelism excludes the pipeline and needs a loss per token."""
    if not state["hybrid_context_parallel"]:
        return
    wrong = [
        (state["pipeline_model_parallel_size"] > 1, "pipeline parallelism"),
        (state["use_megatron_fsdp"], "Megatron-FSDP"),
        (state["dataloader_type"] != "single", "another data loader than `single`"),
        (not state["calculate_per_token_loss"], "a loss that is not calculated per token"),
    ]
    for bad, what in wrong:
        if bad:
            state.refuse("S104", f"--hybrid-context-parallel does not go with {what}", "hybrid_context_parallel")
