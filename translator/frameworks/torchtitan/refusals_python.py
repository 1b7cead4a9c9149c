"""Configurations that torchtitan 0.3.0 itself refuses; one function per topic.

What both syntaxes refuse alike has the code of `refusals`.
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import groups, model_names, refusals, refusals_values, traps
from translator.frameworks.torchtitan.state import State

_P = "parallelism."
_T = "training."
GRAPHS = f"{_T}disable_cuda_graphs"
COMM = "model_spec.moe_comm_backend"
_COMPILE = 'CompileConfig(enable=True) with "model" among its components'
BACKENDS = ("flex", "flex_flash", "varlen")


def check(state: State) -> None:
    """Add a finding for everything that the real code would refuse, as far as the options tell."""
    for topic in (
        _model,
        refusals.check_degrees,
        _experts,
        refusals.check_batch,
        _micro_batch,
        _sequence,
        _attention,
        _graphs,
        _compile,
        _loss,
        _optimizer,
        _checkpoint,
        refusals.check_heads,
        refusals.check_micro_batches,
        refusals.check_context,
        refusals.check_expert_split,
        _debugging,
        refusals_values.check_python,
    ):
        topic(state)
    traps.check_python(state)


def _model(state: State) -> None:
    if not state.native.given.keys() & {"model_spec", "model_spec.name", at.MODEL_ARGUMENTS} and not _unread(state):
        message = "no model is set, and there is no default (trainer.py:294)"
        state.say("S145", message, "model_spec", 'model_spec=model_registry("8B")')


def _unread(state: State) -> bool:
    """Whether something about the model was not understood."""
    return any(given.address.startswith("model_spec") for given in state.native.unknown) or any(
        finding.option is not None and finding.option.startswith("model_spec") for finding in state.native.findings
    )


def _experts(state: State) -> None:
    expert, tensor = (state.number(f"{_P}{axis}_parallel_degree", 1) for axis in ("expert", "tensor"))
    ranks = state.number(f"{_P}data_parallel_shard_degree") * state.number(f"{_P}context_parallel_degree", 1) * tensor
    if ranks > 0 and expert > 0 and ranks % expert:
        message = f"expert {expert} does not divide shard * context * tensor = {ranks}"
        fix = f"expert_parallel_degree={refusals.divisor_below(ranks, expert)}"
        state.say("S153", message, f"{_P}expert_parallel_degree", fix)
    backend = state.text(COMM)
    if backend and backend != "standard" and state.get(f"{at.MODEL}moe.experts") and expert == 1:
        message = f"{backend} needs an expert degree above 1 (models/common/token_dispatcher.py:1238)"
        state.say("S191", message, COMM, 'moe_comm_backend="standard", or an expert degree above 1')
    converters = state.get("model_spec.converters")
    names = (
        {str(item.get("class")) for item in converters or [] if isinstance(item, Mapping)}
        if isinstance(converters, list)
        else set()
    )
    if backend in {"deepep", "minimal_async_ep"} and any("GroupedExperts" in name for name in names):
        message = f"quantised experts need padding, which {backend} has not (components/quantization/utils.py:60)"
        state.say("S191", message, "model_spec.converters")


def _micro_batch(state: State) -> None:
    """It must be positive without a pipeline as well."""
    option = f"{_P}pipeline_parallel_microbatch_size"
    if state.number(option, 1) < 1 and state.number(f"{_P}pipeline_parallel_degree", 1) <= 1:
        state.say("S156", f"{option} must be positive (trainer.py:125)", option, "1, the default")


def _sequence(state: State) -> None:
    length, divisor = state.number(f"{_T}seq_len"), state.number(at.SEQ_LEN_DIVISOR)
    if divisor > 0 and length % divisor:
        message = f"seq_len {length} does not divide by {divisor} (tensor under sequence parallelism, 2 * context)"
        state.say("S182", message, f"{_T}seq_len", f"seq_len={refusals.multiple_near(length, divisor)}")
    longest = state.number(f"{at.MODEL}max_positions")
    if longest and length > longest:
        message = f"seq_len {length} exceeds the {longest} positions of {state.text(f'{at.MODEL}name')}"
        state.say("S181", message, f"{_T}seq_len", "a model with longer positions, or a shorter sequence")


def _attention(state: State) -> None:
    backend = state.text("model_spec.attn_backend")
    if backend and backend not in BACKENDS:
        message = f"there is no attention backend {backend!r} (models/common/config_utils.py:95)"
        state.say("S189", message, "model_spec.attn_backend", " or ".join(BACKENDS))
    kernel, family = state.get(f"{at.MODEL}attention_kernel"), state.family
    contextual = state.number(f"{_P}context_parallel_degree", 1) > 1
    if contextual and family is not None and kernel is not None and kernel not in family.context:
        message = f"{kernel} attention does not run context parallel (distributed/full_dtensor.py:44)"
        state.say("S172", message, f"{_P}context_parallel_degree", 'attn_backend="flex"')
    if state.number(f"{_P}pipeline_parallel_degree", 1) > 1 and state.get(f"{at.MODEL}tied_embeddings"):
        message = "tied embeddings cannot be split into stages (models/common/decoder.py:138)"
        state.say("S173", message, f"{_P}pipeline_parallel_degree", "pipeline_parallel_degree=1")


def _graphs(state: State) -> None:
    if state.get(GRAPHS):
        return
    if state.number(f"{_P}pipeline_parallel_degree", 1) > 1:
        state.say("S183", "CUDA graphs do not run pipelined (trainer.py:183)", GRAPHS, f"{GRAPHS} = True")
        return
    sparse = bool(state.get(f"{at.MODEL}moe.experts"))
    # HybridEP may be captured too, with a capacity factor, which is no fact of the configuration here.
    synchronous = state.text(COMM) in {"", "standard", "deepep"}
    if sparse and synchronous and state.number(f"{_P}expert_parallel_degree", 1) > 1:
        message = "CUDA graphs need expert parallelism without host synchronisation (trainer.py:203)"
        state.say("S183", message, GRAPHS, f"{GRAPHS} = True")


def _compile(state: State) -> None:
    compiled = bool(state.get("compile.enable")) and "model" in state.names("compile.components")
    if state.get("compile.enable_async_tensor_parallel") and not compiled:
        message = "asynchronous tensor parallelism needs a compiled model (config/configs.py:304)"
        state.say("S166", message, "compile.enable_async_tensor_parallel", _COMPILE)
    if state.text("activation_checkpoint") == "MemoryBudgetAC" and not compiled:
        message = "a memory budget needs a compiled model (trainer.py:169)"
        state.say("S167", message, "activation_checkpoint", _COMPILE)


def _loss(state: State) -> None:
    if state.text("loss") == "BaseLoss":
        message = "no loss is set, and the default one is abstract (trainer.py:118)"
        state.say("S187", message, "loss", "loss=CrossEntropyLoss.Config(global_vocab_size=...)")
    chunks = state.number("loss.num_chunks")
    local = state.number(f"{_T}seq_len") // max(1, state.number(f"{_P}context_parallel_degree", 1))
    if state.text("loss") == "ChunkedLossWrapper" and (chunks < 1 or local % chunks):
        message = f"{local} tokens of a sequence do not divide into {chunks} chunks (components/loss.py:681)"
        state.say("S184", message, "loss.num_chunks", f"num_chunks={refusals.divisor_below(max(1, local), chunks)}")


def _optimizer(state: State) -> None:
    found = state.get("optimizer.param_groups")
    stated = [group for group in found if isinstance(group, Mapping)] if isinstance(found, list) else []
    if not stated:
        message = "no parameter groups, so no parameter is trained (components/optimizer/optimizer.py:230)"
        state.say("S188", message, "optimizer.param_groups", "optimizer=default_adamw(lr=...)")
        return
    for group in stated:
        if group.get("optimizer_name") not in groups.NAMES:
            message = f"there is no optimizer {group.get('optimizer_name')!r} (components/optimizer/optimizer.py:140)"
            state.say("S169", message, "optimizer.param_groups", "AdamW, Adam or DistMuon")
    if not isinstance(state.get(f"{at.MODEL}layers"), int):
        return
    names = model_names.parameters(lambda leaf: state.get(f"{at.MODEL}{leaf}"))
    covered = groups.assign(stated, names)
    left = [name for name in names if name not in covered]
    if left:
        message = f"no group takes {', '.join(left[:3])} (components/optimizer/optimizer.py:277)"
        state.say("S188", message, "optimizer.param_groups", 'a last group with the pattern ".*"')
    parts = state.get(at.LAYER_SPLIT) if state.number(f"{_P}pipeline_parallel_degree", 1) > 1 else None
    for pattern, part in groups.unmatched(stated, names, parts if isinstance(parts, list) else None):
        where = "the model" if part is None else f"stage {part}"
        message = f"the pattern {pattern!r} matches nothing in {where} (components/optimizer/optimizer.py:203)"
        fix = (
            "drop the group, or a pattern that every stage has"
            if part is not None
            else "drop the group, or mend the pattern"
        )
        state.say("S188", message, "optimizer.param_groups", fix)


def _debugging(state: State) -> None:
    if state.get("debug.batch_invariant"):
        message = "batch-invariant mode is not for training (trainer.py:119)"
        state.say("S199", message, "debug.batch_invariant", "batch_invariant=False")
    checked, typed = "debug.spmd_typechecking", state.text(f"{_P}spmd_backend") == "spmd_types"
    if not state.get(checked) or not typed:
        return
    if state.number(f"{_P}pipeline_parallel_degree", 1) > 1:
        message = "SPMD types are not checked under pipeline parallelism (trainer.py:143)"
        state.say("S199", message, checked, "spmd_typechecking=False")
    flexible = state.text(f"{at.MODEL}attention_kernel") in {"flex", "flex_flash"}
    if state.text("activation_checkpoint") == "SelectiveAC" and flexible:
        message = "SPMD types are not checked with selective recomputation of flex attention (trainer.py:153)"
        state.say("S199", message, checked, "activation_checkpoint=None")


def _checkpoint(state: State) -> None:
    if state.get("checkpoint.keep_latest_k") == 1:
        state.say("S170", "a single checkpoint cannot be kept", "checkpoint.keep_latest_k", "2, or 0 for all")
    path = state.text("checkpoint.initial_load_path")
    if path and not path.strip().startswith("/") and "://" not in path:
        message = f"{path!r} is no absolute path and no address (components/checkpointer/base.py:295)"
        state.say("S190", message, "checkpoint.initial_load_path", "the whole path, from / on")
    model_only = state.get("checkpoint.initial_load_model_only")
    if state.get("checkpoint.initial_load_in_hf") and not model_only:
        message = "Hugging Face weights hold the model only (components/checkpointer/base.py:299)"
        state.say("S190", message, "checkpoint.initial_load_in_hf", "initial_load_model_only=True")
    if state.get("checkpoint.last_save_in_hf") and not state.get("checkpoint.last_save_model_only"):
        message = "Hugging Face weights hold the model only (components/checkpointer/base.py:306)"
        state.say("S190", message, "checkpoint.last_save_in_hf", "last_save_model_only=True")
    if state.number("checkpoint.keep_latest_k") < 0:
        message = "keep_latest_k cannot be negative (components/checkpointer/base.py:281)"
        state.say("S170", message, "checkpoint.keep_latest_k", "0 keeps all")
    if "checkpoint.folder" in state.native.given and not state.text("checkpoint.folder").strip():
        message = "the folder of checkpoints is empty (components/checkpointer/base.py:277)"
        state.say("S190", message, "checkpoint.folder", 'folder="checkpoint"')
    if state.get("checkpoint.initial_load_in_hf_quantized") and not (
        state.get("checkpoint.initial_load_in_hf") and path
    ):
        message = "quantised weights come from Hugging Face and a path (components/checkpointer/base.py:305)"
        fix = "initial_load_in_hf=True and an initial_load_path"
        state.say("S190", message, "checkpoint.initial_load_in_hf_quantized", fix)
    if state.text("checkpoint") == "TorchCheckpointingManager" and state.get("checkpoint.enable"):
        message = (
            "TorchCheckpointingManager neither saves nor loads yet (components/checkpointer/torch_checkpointing.py:144)"
        )
        state.say("S190", message, "checkpoint", "CheckpointManager")
    if state.number("checkpoint.interval", 1) < 1:
        message = "a checkpoint is saved every step at the most (components/checkpointer/base.py:278)"
        state.say("S190", message, "checkpoint.interval", "a number of steps")
    if "model" in state.names("checkpoint.exclude_from_loading"):
        message = "the model cannot be left out of loading (components/checkpointer/base.py:287)"
        state.say("S190", message, "checkpoint.exclude_from_loading", "drop it from the list")
