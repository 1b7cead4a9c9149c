"""Configurations that torchtitan itself refuses; one function per topic.

What it takes and runs in a way that nobody means is in `traps`.
"""

from __future__ import annotations

import math

from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import refusals_values, traps
from translator.frameworks.torchtitan.state import State
from translator.native import WORLD_SIZE

_P = "parallelism."
_T = "training."
CONVERTERS = {
    "0.2.2": frozenset(
        {"quantize.linear.float8", "quantize.linear.mx", "quantize.grouped_mm.float8", "quantize.grouped_mm.mx"}
    ),
    "0.1.0": frozenset({"float8", "mx"}),
}
_DEGREES = (
    "data_parallel_replicate_degree",
    "context_parallel_degree",
    "tensor_parallel_degree",
    "pipeline_parallel_degree",
    "expert_parallel_degree",
    "expert_tensor_parallel_degree",
)
# Lines of torch 2.13 (torch/distributed/pipelining/schedules.py) that want whole rounds, or all stages filled.
_ROUNDS = {"interleaved1f1b": 2937, "interleavedzerobubble": 3048}
_FILLED = {"1f1b": 1020, "dualpipev": 3439}
# Families that read the backend (models/llama4/infra/parallelize.py:114, models/deepseek_v3/infra/parallelize.py:100).
_DEEP_EP = frozenset({"llama4", "deepseek_v3"})
_MOST = 4096
_COMPILE = 'compile.enable = true, with "model" among compile.components'
_NO_PIPELINE = "pipeline_parallel_degree = 1"
_BALANCERS = ("headtail", "ptrr")
_BALANCER_030 = "distributed/context_parallel/api.py:261"


def divisor_below(number: int, wanted: int) -> int:
    """A divisor of a positive number that is not above another: the largest one up to `_MOST`, 1 at the least."""
    return next((each for each in range(min(number, max(1, wanted), _MOST), 1, -1) if number % each == 0), 1)


def multiple_near(number: int, unit: int) -> int:
    """The largest multiple of a unit that is not above a number; the unit itself at the least."""
    return max(1, number // unit) * unit


def check(state: State) -> None:
    """Add a finding for everything that the real code would refuse, as far as the options tell."""
    for topic in (
        check_degrees,
        _experts,
        check_batch,
        _sequence,
        _parallelism,
        _compile,
        _quantization,
        _training,
        check_heads,
        check_micro_batches,
        check_context,
        check_expert_split,
        _checkpoint,
        refusals_values.check,
    ):
        topic(state)
    traps.check(state)


def check_degrees(state: State) -> None:
    """Degrees that are no degrees, or do not multiply to the ranks."""
    bad = [name for name in _DEGREES if state.number(_P + name, 1) < 1]
    shard = state.get(f"{_P}data_parallel_shard_degree")
    given = state.native.given.get(f"{_P}data_parallel_shard_degree")
    stated = given.value if given is not None else -1
    if isinstance(stated, int) and (stated == 0 or stated < -1):
        bad.append("data_parallel_shard_degree")
    for name in bad:
        fix = f"{name} = {-1 if name == 'data_parallel_shard_degree' else 1}"
        state.say("S150", f"{name} must be positive", _P + name, fix)
    world = state.number(WORLD_SIZE)
    if bad or not isinstance(shard, int) or world < 1:
        return
    factors = [state.number(_P + name, 1) for name in _DEGREES[:4]]
    product = shard
    for factor in factors:
        product *= factor
    if product != world:
        names = " * ".join(map(str, [factors[0], shard, *factors[1:]]))
        message = f"replicate * shard * context * tensor * pipeline = {names} = {product}, but there are {world} ranks"
        rest = math.prod(factors)
        fits = world % rest == 0
        fix = "data_parallel_shard_degree = -1" if fits else f"other degrees than {rest} together, which divide {world}"
        state.say("S151", message, f"{_P}data_parallel_shard_degree", fix)
    elif shard * factors[0] < world and shard == 1 and factors[0] > 1 and factors[1] == 1 and not state.get(at.FSDP):
        message = f"{factors[0]} replicas without sharding run under DDP, which allows no other parallelism"
        state.say("S165", message, f"{_P}data_parallel_replicate_degree", "data_parallel_shard_degree = -1")


def _experts(state: State) -> None:
    expert, width = (state.number(f"{_P}{name}", 1) for name in _DEGREES[4:])
    tensor = state.number(f"{_P}tensor_parallel_degree", 1)
    if expert > 1 and width not in {1, tensor}:
        message = f"expert_tensor_parallel_degree is {width}, neither 1 nor the tensor degree {tensor}"
        fix = f"expert_tensor_parallel_degree = 1{f' or {tensor}' if tensor > 1 else ''}"
        state.say("S152", message, f"{_P}expert_tensor_parallel_degree", fix)
    ranks = state.number(f"{_P}data_parallel_shard_degree") * state.number(f"{_P}context_parallel_degree", 1) * tensor
    if ranks > 0 and expert > 0 and width > 0 and ranks % (expert * width):
        message = f"expert {expert} * expert_tensor {width} does not divide shard * context * tensor = {ranks}"
        fix = f"expert_parallel_degree = {divisor_below(ranks // math.gcd(ranks, width), expert)}"
        state.say("S153", message, f"{_P}expert_parallel_degree", fix)
    deep = state.text(f"{_P}expert_parallel_comm_backend") == "deepep" and state.text("model.name") in _DEEP_EP
    if deep and (expert == 1 or width > 1):
        message = "DeepEP needs expert parallelism without expert tensor parallelism"
        fix = 'an expert degree above 1, or expert_parallel_comm_backend = "standard"'
        state.say("S175", message, f"{_P}expert_parallel_comm_backend", fix)


def check_batch(state: State) -> None:
    """A batch that does not divide."""
    local, total, ranks = (
        state.number(address) for address in (f"{_T}local_batch_size", f"{_T}global_batch_size", at.DP_DEGREE)
    )
    if ranks > 0 and (local < 1 or total < 1 or total % (local * ranks)):
        message = f"the global batch {total} is no multiple of local batch {local} * data-parallel degree {ranks}"
        unit = local * ranks
        fix = (
            f"global_batch_size = {max(1, round(total / unit)) * unit}" if unit > 0 else "local_batch_size of 1 or more"
        )
        state.say("S155", message, f"{_T}global_batch_size", fix)
    micro = state.number(f"{_P}pipeline_parallel_microbatch_size", 1)
    if state.number(f"{_P}pipeline_parallel_degree", 1) > 1 and (micro < 1 or local % micro):
        message = f"the local batch {local} does not divide into micro batches of {micro}"
        fix = f"pipeline_parallel_microbatch_size = {divisor_below(local, micro)}" if local > 0 else ""
        state.say("S156", message, f"{_P}pipeline_parallel_microbatch_size", fix)


def _sequence(state: State) -> None:
    divisor = state.number(at.SEQ_LEN_DIVISOR)
    if divisor < 1:
        return
    length = state.number(f"{_T}seq_len")
    if length % divisor:
        message = f"seq_len {length} does not divide by tensor * 2 * context = {divisor}"
        state.say("S154", message, f"{_T}seq_len", f"seq_len = {multiple_near(length, divisor)}")


def _parallelism(state: State) -> None:
    pipelined = state.number(f"{_P}pipeline_parallel_degree", 1) > 1
    family = state.family
    if pipelined and family is not None and not family.pipeline:
        message = f"{state.text('model.name')} has no pipeline parallelism in torchtitan {state.native.version}"
        fix = "pipeline_parallel_degree 1; ttx convert --nearest lets its ranks share data instead"
        state.say("S159", message, f"{_P}pipeline_parallel_degree", fix)
    elif pipelined and state.get(f"{at.MODEL}tied_embeddings"):
        state.say("S173", "tied embeddings cannot be split into stages", f"{_P}pipeline_parallel_degree", _NO_PIPELINE)
    kernel = state.get(f"{at.MODEL}attention_kernel")
    contextual = state.number(f"{_P}context_parallel_degree", 1) > 1
    if contextual and family is not None and kernel is not None and kernel not in family.context:
        message = f"{kernel} attention of {state.text('model.name')} does not run context parallel"
        fix = "context_parallel_degree = 1"
        if "sdpa" in family.context:
            fix = f"a flavor with sdpa attention, or {fix}"
        state.say("S172", message, f"{_P}context_parallel_degree", fix)
    stepped = bool(state.get("optimizer.early_step_in_backward"))
    if state.new and stepped and (pipelined or state.number(f"{_P}expert_parallel_degree", 1) > 1):
        message = "the optimizer cannot step in the backward pass with pipeline or expert parallelism"
        state.say("S168", message, "optimizer.early_step_in_backward", "early_step_in_backward = false")
    overlapped = state.get(f"{_P}pipeline_parallel_expert_parallel_overlap")
    dual = state.text(f"{_P}pipeline_parallel_schedule").lower() == "dualpipev"
    recomputed = state.text("activation_checkpoint.mode") != "none"
    if pipelined and dual and overlapped and recomputed and state.number(f"{_P}expert_parallel_degree", 1) > 1:
        message = "DualPipeV with overlapped expert parallelism cannot recompute activations"
        state.say("S174", message, "activation_checkpoint.mode", 'activation_checkpoint.mode = "none"')
    asked = state.text(f"{_T}mixed_precision_param")
    if state.get(at.FSDP) is False and state.get(at.COMPUTE_DTYPE) not in {None, asked}:
        message = (
            f"computes in {state.get(at.COMPUTE_DTYPE)}, not {asked}: nothing applies mixed precision without FSDP"
        )
        fix = "leave a shard degree above 1"
        state.say("S176", message, f"{_T}mixed_precision_param", fix, Level.WARNING)


def _compiled(state: State) -> bool:
    if not state.new:
        return bool(state.get(f"{_T}compile"))
    return bool(state.get("compile.enable")) and "model" in state.names("compile.components")


def _compile(state: State) -> None:
    compiled = _compiled(state)
    tensor = state.number(f"{_P}tensor_parallel_degree", 1) > 1
    if tensor and state.get(f"{_P}enable_async_tensor_parallel") and not compiled:
        message = "asynchronous tensor parallelism needs a compiled model"
        state.say("S166", message, f"{_P}enable_async_tensor_parallel", _COMPILE)
    mode = state.text("activation_checkpoint.mode")
    if mode == "memory_budget" and not compiled:
        state.say("S167", "a memory budget needs a compiled model", "activation_checkpoint.mode", _COMPILE)
    option = state.text("activation_checkpoint.selective_ac_option")
    if mode == "selective" and option != "op" and not option.isdigit():
        message = f"selective_ac_option is {option!r}, neither op nor a whole number"
        fix = '"op", or "2" for every second layer'
        state.say("S171", message, "activation_checkpoint.selective_ac_option", fix)


def _quantization(state: State) -> None:
    converters = state.names("model.converters")
    unknown = [name for name in converters if name not in CONVERTERS[state.native.version]]
    if unknown and not state.text("experimental.custom_import"):
        from translator.frameworks.torchtitan.renames import converters as renamed

        new = renamed(unknown)
        fix = f"write {new}" if state.new and new != unknown else ""
        names = ", ".join(unknown)
        state.say("S161", f"torchtitan {state.native.version} has no converter {names}", "model.converters", fix)
    kinds = {name.rpartition(".")[2] for name in converters if "quantize" in name}
    if len(kinds) > 1:
        message = f"converters of different kinds: {', '.join(sorted(kinds))}"
        state.say("S162", message, "model.converters", "one kind for linears and experts")
    linear = "quantize.linear.float8" if state.new else "float8"
    gather = f"{linear}.enable_fsdp_float8_all_gather"
    if linear in converters and state.get(f"{linear}.recipe_name") is not None and state.get(gather):
        message = "a float8 recipe cannot be combined with float8 all-gather"
        state.say("S163", message, gather, "enable_fsdp_float8_all_gather = false, or no recipe_name")
    if "quantize.grouped_mm.float8" in converters:
        for axis in ("pipeline", "context"):
            if state.number(f"{_P}{axis}_parallel_degree", 1) > 1:
                fix = f"{axis}_parallel_degree = 1, or experts in bf16"
                state.say("S164", f"float8 experts do not run {axis} parallel", "model.converters", fix)
    if "quantize.linear.mx" in converters and _compiled(state) and state.number(f"{_P}tensor_parallel_degree", 1) > 1:
        message = "mxfp8 does not run compiled and tensor parallel"
        state.say("S177", message, "model.converters", "compile.enable = false, or tensor_parallel_degree = 1")


def _training(state: State) -> None:
    name = state.text("optimizer.name")
    if name not in {"Adam", "AdamW"}:
        state.say("S169", f"there is no optimizer {name!r}", "optimizer.name", "Adam or AdamW")
    if state.get("checkpoint.keep_latest_k") == 1 and state.get(
        "checkpoint.enable" if state.new else "checkpoint.enable_checkpoint"
    ):
        state.say("S170", "a single checkpoint cannot be kept", "checkpoint.keep_latest_k", "2, or 0 for all")


def check_heads(state: State) -> None:
    """Heads that do not divide over the tensor ranks."""
    tensor = state.number(f"{_P}tensor_parallel_degree", 1)
    for leaf, what in (("heads", "attention heads"), ("kv_heads", "key-value heads")):
        count = state.number(f"{at.MODEL}{leaf}")
        if tensor > 1 and count > 0 and count % tensor:
            message = f"{count} {what} do not divide over {tensor} tensor ranks"
            fix = f"tensor_parallel_degree = {math.gcd(count, tensor)}"
            state.say("S180", message, f"{_P}tensor_parallel_degree", fix)
            return


def check_micro_batches(state: State) -> None:
    """Micro batches that the schedule cannot run, or that leave stages idle (torch 2.13)."""
    stages, count = state.number(at.STAGES), state.number(at.PIPELINE_MICRO_BATCHES)
    ranks = state.number(f"{_P}pipeline_parallel_degree", 1)
    if stages < 2 or count < 1 or ranks < 2 or any(finding.code == "S156" for finding in state.native.findings):
        return
    name = state.text(f"{_P}pipeline_parallel_schedule").lower()
    option = f"{_P}pipeline_parallel_schedule"
    rounds = max(1, count // ranks)
    if name in _ROUNDS and count % rounds:
        message = f"{count} micro batches are no multiple of the {rounds} rounds over {ranks} ranks"
        fix = f"a multiple of {ranks} micro batches"
        state.say("S193", f"{message} (torch/distributed/pipelining/schedules.py:{_ROUNDS[name]})", option, fix)
    elif count < stages and name in _FILLED:
        message = f"too few micro batches for this schedule: {count} for {stages} stages"
        fix = f"local_batch_size of {stages} micro batches or more, or GPipe"
        option = option if option in state.native.given else f"{_P}pipeline_parallel_degree"
        source = f"torch/distributed/pipelining/schedules.py:{_FILLED[name]}"
        # What the torch of 0.1.0's time did is not known here.
        state.say("S193", f"{message} ({source})", option, fix, Level.ERROR if state.new else Level.WARNING)
    elif count < stages:
        message = f"stages stand idle, with few micro batches: {count} for {stages} stages"
        fix = "a larger local_batch_size"
        state.say("S193", message, f"{_T}local_batch_size", fix, Level.WARNING)


def check_context(state: State) -> None:
    """Load balancers of context parallelism that are none."""
    option = f"{_P}context_parallel_load_balancer"
    kind = state.get(option)
    contextual = state.number(f"{_P}context_parallel_degree", 1) > 1
    if kind == "ptrr" and contextual and state.get(f"{at.MODEL}attention_kernel") == "sdpa":
        message = (
            "ptrr balances by the masks of flex attention, and sdpa has none (distributed/context_parallel.py:192)"
        )
        state.say("S196", message, option, "headtail")
    windows = state.get(f"{at.MODEL}attention_window") is not None and state.native.version == "0.3.0"
    if kind == "ptrr" and contextual and windows and not state.text(f"{_P}context_parallel_ptrr_mask_key"):
        message = (
            f"ptrr wants to know which of the model's masks it balances by ({_BALANCER_030.rpartition(':')[0]}:239)"
        )
        state.say("S196", message, option, 'context_parallel_ptrr_mask_key="basic_mask", or headtail')
    if not isinstance(kind, str) or kind in _BALANCERS:
        return
    if not kind or contextual:
        source = "distributed/context_parallel.py:208" if state.native.version != "0.3.0" else _BALANCER_030
        message = f"there is no load balancer {kind!r} ({source})"
        state.say("S196", message, option, f"one of {', '.join(_BALANCERS)}, or none at all (null)")


def check_expert_split(state: State) -> None:
    """Experts that do not divide over the expert ranks."""
    expert, experts = state.number(f"{_P}expert_parallel_degree", 1), state.number(f"{at.MODEL}moe.experts")
    if expert > 1 and experts > 0 and experts % expert:
        source = (
            "models/common/token_dispatcher.py:262"
            if state.native.version == "0.3.0"
            else "distributed/expert_parallel.py:124"
        )
        message = f"{experts} experts do not divide over {expert} ranks, and the first step fails ({source})"
        fix = f"expert_parallel_degree = {math.gcd(experts, expert)}"
        state.say("S197", message, f"{_P}expert_parallel_degree", fix)


def _checkpoint(state: State) -> None:
    if not state.new or not state.get("checkpoint.enable"):
        return
    if state.get("checkpoint.initial_load_in_hf") and not state.get("checkpoint.initial_load_model_only"):
        message = "Hugging Face weights hold the model only (components/checkpoint.py:586)"
        state.say("S190", message, "checkpoint.initial_load_in_hf", "initial_load_model_only = true")
    if state.get("checkpoint.last_save_in_hf") and not state.get("checkpoint.last_save_model_only"):
        message = "Hugging Face weights hold the model only (components/checkpoint.py:801)"
        state.say("S190", message, "checkpoint.last_save_in_hf", "last_save_model_only = true")
