"""Random specs that could be somebody's training run: complete, and consistent where a framework would ask for it.

A spec is built section by section; what belongs together (degrees and world size, batch and ranks, layers and stages,
lengths of the schedule) is drawn together. Leaves that have no meaning in a configuration stay None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from translator.reading import Reading
from translator.spec import Spec, nest
from translator.spec_file import reading_of

Flat = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

V_SCHEDULES = ("zbv_zero_bubble", "dual_pipe_v")
LOOPED = ("interleaved_1f1b", "looped_bfs", "interleaved_zero_bubble")
SINGLE = ("1f1b", "gpipe")


def _pick(draw: Draw, *values: Any) -> Any:
    return draw(st.sampled_from(values))


def _maybe(draw: Draw, *values: Any) -> Any:
    return draw(st.sampled_from((None, *values)))


def _flag(draw: Draw) -> bool:
    return bool(draw(st.booleans()))


@st.composite
def readings(draw: Draw) -> Reading:
    """A reading of a plausible complete spec."""
    flat: Flat = {}
    kind = _pick(draw, "dense", "dense", "gqa", "gqa", "moe", "moe", "mla", "gpt2")
    _parallel(draw, flat, kind)
    _model(draw, flat, kind)
    _pipeline(draw, flat)
    _batch(draw, flat)
    _precision(draw, flat)
    _optimizer(draw, flat)
    _schedule(draw, flat)
    _recompute(draw, flat)
    _operation(draw, flat)
    return reading_of(Spec.model_validate(nest(flat)))


def _parallel(draw: Draw, flat: Flat, kind: str) -> None:
    tensor, context, pipeline = _pick(draw, 1, 1, 2, 4, 8), _pick(draw, 1, 1, 2, 4), _pick(draw, 1, 1, 2, 4)
    replicate, shard = _pick(draw, 1, 1, 2), _pick(draw, 1, 2, 4, 8)
    sharding = _pick(draw, "none", "optimizer", "optimizer_gradients", "full")
    if sharding == "none":
        replicate, shard = replicate * shard, 1
    world = tensor * context * pipeline * replicate * shard
    gpus = _pick(draw, *(count for count in (1, 2, 4, 8) if world % count == 0))
    prefix = "parallel.data."
    flat.update(
        {
            "parallel.world_size": world,
            "launch.nodes": world // gpus,
            "launch.gpus_per_node": gpus,
            "parallel.tensor": tensor,
            "parallel.sequence_parallel": tensor > 1 and (kind in {"moe", "mla"} or _flag(draw)),
            "parallel.tensor_overlap": tensor > 1 and _flag(draw),
            "parallel.loss_parallel": _flag(draw) if tensor > 1 else None,
            "parallel.context": context,
            "parallel.context_method": _pick(draw, "ring", "all_gather", "all_to_all") if context > 1 else None,
            "parallel.pipeline.degree": pipeline,
            f"{prefix}replicate": replicate,
            f"{prefix}shard": shard,
            f"{prefix}degree": replicate * shard,
            f"{prefix}sharding": sharding,
            f"{prefix}reshard_after_forward": _flag(draw) if sharding == "full" else None,
            f"{prefix}overlap_gradient_reduction": _maybe(draw, True, False),
            f"{prefix}overlap_parameter_gather": _maybe(draw, True, False),
            f"{prefix}bucket_elements": _maybe(draw, 40_000_000, 1),
            f"{prefix}average_in_collective": _maybe(draw, True, False),
            f"{prefix}offload_parameters": _maybe(draw, True, False),
        }
    )
    expert, shard_degree = 1, replicate * shard if sharding == "none" else shard
    if kind in {"moe", "mla"}:
        expert = _pick(draw, *(count for count in (1, 2, 4, 8) if (shard_degree * context) % count == 0))
        flat["parallel.expert_tensor"] = tensor if expert * tensor > shard_degree * context else _pick(draw, 1, tensor)
    flat["parallel.expert"] = expert
    # Pipeline ranks before data ranks ask for one data parallel degree, of attention and of experts.
    alike = pipeline == 1 or flat.get("parallel.expert_tensor", tensor) * expert == tensor * context
    flat["parallel.rank_order"] = _maybe(draw, "tp-cp-ep-dp-pp", *(["tp-cp-ep-pp-dp"] if alike else []))


def _model(draw: Draw, flat: Flat, kind: str) -> None:
    tensor = flat["parallel.tensor"]
    heads = _pick(draw, 8, 16, 32, 40)
    head_dim = _pick(draw, 32, 64, 128)
    hidden = heads * head_dim if _flag(draw) or kind == "mla" else _pick(draw, 512, 1024, 2048, 5120)
    latent, modern = kind == "mla", kind != "gpt2"
    groups = [count for count in (1, 2, 4, 8, heads) if heads % count == 0 and count % tensor == 0]
    kv_heads = _pick(draw, *(groups or [heads])) if kind in ("gqa", "moe") else heads
    vocab = _pick(draw, 32000, 50257, 128256, 151936, 2048)
    divisor = _pick(draw, 1, 64, 128)
    padded = -(-vocab // (divisor * tensor)) * divisor * tensor
    positions = _pick(draw, "rope", "rope", "rope", "none") if modern else _pick(draw, "learned", "rope")
    bias = not modern and _flag(draw)
    gated, activation = (
        (True, _pick(draw, "silu", "silu", "silu", "quick_gelu", "gelu"))
        if modern
        else (False, _pick(draw, "gelu", "squared_relu", "relu"))
    )
    norm = _pick(draw, "rmsnorm", "rmsnorm", "layernorm") if modern else "layernorm"
    flat.update(
        {
            "model.name": _maybe(draw, "llama3/8B", "mine"),
            "model.hidden": hidden,
            "model.ffn": _pick(draw, 4 * hidden, 2816, 14336, 11008),
            "model.heads": heads,
            "model.kv_heads": kv_heads,
            "model.head_dim": None if latent else head_dim,
            "model.vocab": vocab,
            "model.vocab_padded": _pick(draw, padded, padded, vocab if vocab % tensor == 0 else padded, padded + 1024),
            "model.vocab_divisor": _pick(draw, divisor, None),
            "model.positions": positions,
            "model.norm": norm,
            "model.norm_eps": _pick(draw, 1e-5, 1e-6, 3e-7),
            "model.norm_one_plus": _maybe(draw, False, True),
            "model.norm_placement": _pick(draw, "pre", "pre", "post", "sandwich"),
            "model.qk_norm": _pick(draw, "none", "none", norm, "rmsnorm", "layernorm", "l2"),
            "model.gated": gated,
            "model.activation": activation,
            "model.activation_clamp": _maybe(draw, 7.0),
            "model.bias_linear": bias,
            "model.bias_qkv": bias or _flag(draw),
            "model.tied_embeddings": _flag(draw),
            "model.hidden_dropout": _pick(draw, 0.0, 0.0, 0.1),
            "model.attention_dropout": _pick(draw, 0.0, 0.0, 0.1),
            "model.attention_softmax": _pick(draw, "vanilla", "vanilla", "off_by_one", "learnable"),
            "model.attention_output_gate": None if latent else _maybe(draw, False, True),
            "model.attention_kernel": _maybe(draw, "auto", "flash", "fused", "sdpa", "flex", "varlen"),
            "model.attention_mask": _pick(draw, "causal", "causal", "document"),
            "model.residual_fp32": _maybe(draw, False, True),
            "model.init_std": _pick(draw, 0.02, 0.006),
            "model.init_output_scaling": _pick(draw, "depth", "none", "layer_index"),
        }
    )
    if positions == "rope":
        _rope(draw, flat, latent)
    if latent:
        prefix = "model.mla."
        flat.update(
            {
                f"{prefix}q_rank": _pick(draw, 0, 1536),
                f"{prefix}kv_rank": 512,
                f"{prefix}qk_nope_dim": 128,
                f"{prefix}qk_rope_dim": 64,
                f"{prefix}v_dim": 128,
            }
        )
        if flat.get("model.rope.scaling") == "yarn":
            flat[f"{prefix}mscale"] = _pick(draw, 1.0, 0.707)
            flat[f"{prefix}mscale_all_dim"] = _pick(draw, 0.0, 0.707)
    flat["model.mla.enabled"] = latent
    flat["model.mtp.layers"] = _pick(draw, 0, 0, 0, 1) if positions == "rope" else 0
    if flat["model.mtp.layers"]:
        flat["model.mtp.loss_scaling"] = _pick(draw, 0.1, 0.3)


def _rope(draw: Draw, flat: Flat, latent: bool) -> None:
    prefix = "model.rope."
    flat["model.rope_base"] = _pick(draw, 10000.0, 500000.0, 1e6, 150000.5)
    flat[f"{prefix}fraction"] = _pick(draw, 1.0, 1.0, 0.5)
    flat[f"{prefix}interleaved"] = _flag(draw)
    scaling = _pick(draw, "none", "none", "llama3", "linear", "yarn")
    flat[f"{prefix}scaling"] = scaling
    if scaling != "none":
        flat[f"{prefix}scaling_factor"] = _pick(draw, 8.0, 32.0, 40.0, 2.5)
    if scaling in ("llama3", "yarn"):
        flat[f"{prefix}original_max_positions"] = _pick(draw, 8192, 4096)
    if scaling == "llama3":
        flat[f"{prefix}low_freq_factor"] = _pick(draw, 1.0, 2.0)
        flat[f"{prefix}high_freq_factor"] = _pick(draw, 4.0, 8.0)
    if scaling == "yarn":
        flat[f"{prefix}beta_fast"], flat[f"{prefix}beta_slow"] = _pick(draw, 32.0, 16.0), 1.0


def _layered(draw: Draw, flat: Flat, layers: int) -> None:
    """What names layers by their index."""
    window = _maybe(draw, 128, 4096)
    flat["model.attention_window"] = window
    if window:
        flat["model.attention_window_pattern"] = _maybe(draw, list(range(1, layers, 2)) or None, [0])
    if flat["model.positions"] == "rope":
        flat["model.rope.skip_layers"] = _maybe(draw, None, list(range(3, layers, 4)) or None)


def _moe(draw: Draw, flat: Flat, layers: int) -> None:
    score = _pick(draw, "softmax", "softmax", "sigmoid")
    prefix = "model.moe."
    top_k = _pick(draw, 1, 2, 8)
    grouped = _flag(draw)
    balancing = draw(
        st.sampled_from((["none"], ["aux_loss"], ["seq_aux_loss"], ["global_aux_loss"], ["aux_loss", "seq_aux_loss"]))
    )
    capacity = _maybe(draw, 1.0, 1.25)
    biased = _flag(draw) and score == "sigmoid"
    alone = flat["parallel.expert"] * flat.get("parallel.expert_tensor", 1) == 1
    dispatcher = _pick(draw, "allgather", "alltoall", "alltoall" if alone else "flex")
    flat.update(
        {
            f"{prefix}experts": _pick(draw, 8, 16, 64),
            f"{prefix}top_k": top_k,
            f"{prefix}ffn": _pick(draw, 1024, 1536, 4096),
            f"{prefix}shared_ffn": _pick(draw, 0, 2048),
            f"{prefix}shared_gate": _flag(draw),
            f"{prefix}dense_layers": draw(
                st.sampled_from(([], [0], list(range(min(3, layers - 1))), list(range(1, layers, 2))))
            ),
            f"{prefix}router_score": score,
            f"{prefix}router_normalize": _flag(draw),
            f"{prefix}router_scaling": _pick(draw, 1.0, 2.5),
            f"{prefix}router_groups": 4 if grouped else 0,
            f"{prefix}router_group_top_k": 2 if grouped else 0,
            f"{prefix}router_bias": biased,
            f"{prefix}router_bias_rate": 0.001 if biased else None,
            f"{prefix}router_dtype": _pick(draw, "fp32", "fp64", "compute"),
            f"{prefix}router_jitter": _maybe(draw, 0.01),
            f"{prefix}balancing": balancing,
            f"{prefix}aux_loss_coefficient": None if balancing == ["none"] else [0.01] * len(balancing),
            f"{prefix}z_loss_coefficient": _maybe(draw, 0.001),
            f"{prefix}capacity_factor": capacity,
            f"{prefix}capacity_padding": _flag(draw) and dispatcher != "flex" if capacity else None,
            f"{prefix}drop_policy": _pick(draw, "probs", "position") if capacity else None,
            f"{prefix}scores_on_input": _flag(draw),
            f"{prefix}expert_bias_linear": _pick(draw, flat["model.bias_linear"], False),
            f"{prefix}dispatcher": dispatcher,
            f"{prefix}grouped_gemm": _flag(draw),
        }
    )


def _pipeline(draw: Draw, flat: Flat) -> None:
    """Layers, and how they stand on stages."""
    degree = flat["parallel.pipeline.degree"]
    prefix = "parallel.pipeline."
    if degree == 1:
        layers = draw(st.integers(1, 40))
        flat[f"{prefix}stages_per_rank"] = 1
    else:
        schedule = _pick(draw, *SINGLE, *SINGLE, *LOOPED, *LOOPED, *V_SCHEDULES, "custom")
        virtual = 2 if schedule in V_SCHEDULES else _pick(draw, 2, 3, 4) if schedule in LOOPED else 1
        stages = degree * virtual
        split = _split(draw, stages)
        layers = sum(split)
        flat[f"{prefix}schedule"] = schedule
        flat[f"{prefix}stages_per_rank"] = virtual
        flat[f"{prefix}layer_split"] = split
        flat[f"{prefix}overlap_p2p"] = _flag(draw) if virtual > 1 else None
    flat["model.layers"] = layers
    _layered(draw, flat, layers)
    if flat["parallel.expert"] > 1 or "parallel.expert_tensor" in flat:
        _moe(draw, flat, layers)


def _split(draw: Draw, stages: int) -> list[int]:
    each = draw(st.integers(1, 6))
    kind = _pick(draw, "even", "even", "ends", "by_default", "free")
    if kind == "even":
        return [each] * stages
    if kind == "ends":
        first, last = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        return [first, *[each] * (stages - 2), last]
    if kind == "by_default":  # one layer less at both ends, the rest dealt out from the front
        counts = [each + 1] * (stages // 2) + [each] * (stages - stages // 2)
        counts[0] -= 1
        counts[-1] -= 1
        return [max(1, count) for count in counts]
    return list(draw(st.lists(st.integers(1, 6), min_size=stages, max_size=stages)))


def _batch(draw: Draw, flat: Flat) -> None:
    degree, pipeline = flat["parallel.data.degree"], flat["parallel.pipeline.degree"]
    micro, steps = _pick(draw, 1, 2, 4), _pick(draw, 1, 2, 8) * pipeline
    total = micro * steps * degree
    flat.update(
        {
            "batch.micro_batch": micro,
            "batch.accumulation": steps,
            "batch.global_batch": total,
            "batch.seq_len": _pick(draw, 2048, 4096, 8192),
        }
    )
    flat["batch.ramp_up"] = draw(st.sampled_from((None, None, None, [micro * degree, micro * degree, 10_000])))
    flat["batch.steps"] = None
    flat["model.max_positions"] = _pick(draw, flat["batch.seq_len"], 2 * flat["batch.seq_len"])


def _precision(draw: Draw, flat: Flat) -> None:
    compute = _pick(draw, "bf16", "bf16", "bf16", "fp16", "fp32")
    gradients = _pick(draw, "fp32", "fp32", compute)
    moment = _pick(draw, "fp32", "fp32", "fp32", "bf16")
    prefix = "precision."
    flat.update(
        {
            f"{prefix}compute": compute,
            f"{prefix}parameters": compute,
            f"{prefix}master": _pick(draw, "fp32", "fp32", "fp32", "bf16", "fp16"),
            f"{prefix}grad_accumulate": gradients,
            f"{prefix}grad_reduce": _pick(draw, gradients, gradients, "fp32"),
            f"{prefix}first_moment": moment,
            f"{prefix}second_moment": _pick(draw, moment, "fp32"),
        }
    )
    if compute == "fp16":
        if _flag(draw):
            flat[f"{prefix}loss_scale"] = 1024.0
        else:
            flat.update(
                {
                    f"{prefix}initial_loss_scale": 65536.0,
                    f"{prefix}min_loss_scale": 1.0,
                    f"{prefix}loss_scale_window": 500.0,
                    f"{prefix}loss_scale_hysteresis": 2,
                }
            )
    kind = _pick(draw, "none", "none", "e4m3", "hybrid") if compute == "bf16" else "none"
    flat[f"{prefix}fp8"] = kind
    flat[f"{prefix}fp4"] = _pick(draw, "none", "none", "none", "e2m1") if kind == "none" else "none"
    if kind != "none":
        flat.update(
            {
                f"{prefix}fp8_recipe": _pick(draw, "delayed", "tensorwise", "rowwise", "mxfp8", "blockwise"),
                f"{prefix}fp8_parameters": _flag(draw),
                f"{prefix}fp8_skip": draw(st.sampled_from((["output"], [], ["output", "router.gate"], ["layers.0"]))),
            }
        )
        if flat.get("model.moe.experts"):
            flat[f"{prefix}fp8_experts"] = _flag(draw)


def _optimizer(draw: Draw, flat: Flat) -> None:
    name = _pick(draw, "adamw", "adamw", "adamw", "adam", "sgd", "muon")
    decay = _pick(draw, 0.0, 0.01, 0.1)
    shape = _pick(draw, "constant", "constant", "linear", "cosine")
    prefix = "optimizer."
    flat.update(
        {
            f"{prefix}name": name,
            f"{prefix}lr": draw(st.floats(1e-6, 1e-2)),
            f"{prefix}weight_decay": decay,
            f"{prefix}weight_decay_end": decay if shape == "constant" else decay + 0.05,
            f"{prefix}weight_decay_shape": shape,
            f"{prefix}decay_scope": _pick(draw, "all", "matrices", "matrices_and_qk_norm", "custom"),
            f"{prefix}clip_grad_norm": _pick(draw, 1.0, 0.0, 0.5),
            f"{prefix}embedding_lr": _maybe(draw, None, 1e-3),
            f"{prefix}embedding_min_lr": None,
            f"{prefix}implementation": _maybe(draw, "fused", "foreach", "for_loop"),
            f"{prefix}offload": _maybe(draw, False, not flat.get("precision.fp8_parameters")),
        }
    )
    if flat[f"{prefix}offload"]:
        flat[f"{prefix}offload_fraction"] = _pick(draw, 1.0, 0.5)
    if flat[f"{prefix}embedding_lr"]:
        flat[f"{prefix}embedding_min_lr"] = _pick(draw, 0.0, 1e-5)
    if name == "sgd":
        flat[f"{prefix}momentum"] = 0.9
    else:
        flat.update(
            {
                f"{prefix}beta1": 0.9,
                f"{prefix}beta2": _pick(draw, 0.95, 0.999),
                f"{prefix}eps": _pick(draw, 1e-8, 1e-15),
            }
        )


@st.composite
def schedules(draw: Draw) -> Flat:
    """The leaves of a schedule, with the batch and the peak that it counts by."""
    flat: Flat = {
        "optimizer.lr": draw(st.floats(1e-6, 1e-2)),
        "batch.global_batch": _pick(draw, 1, 8, 48, 1024),
        "batch.seq_len": _pick(draw, 2048, 4096),
    }
    _schedule(draw, flat)
    return flat


def _schedule(draw: Draw, flat: Flat) -> None:
    prefix = "schedule."
    unit = _pick(draw, "steps", "steps", "samples", "tokens")
    scale = {"steps": 1, "samples": flat["batch.global_batch"]}.get(
        unit, flat["batch.global_batch"] * flat["batch.seq_len"]
    )
    total = draw(st.integers(2, 3000))
    warmup = draw(st.integers(0, total - 1))
    offset = _pick(draw, 0, 1) if warmup else 0
    lr = flat["optimizer.lr"]
    shape = _pick(draw, "cosine", "cosine", "linear", "sqrt", "exponential", "inverse_sqrt", "constant")
    flat.update(
        {
            f"{prefix}unit": unit,
            f"{prefix}total": total * scale,
            f"{prefix}warmup": float(warmup * scale),
            f"{prefix}warmup_start_lr": _pick(draw, 0.0, 0.0, lr / 10) if offset == 0 else 0.0,
            f"{prefix}warmup_offset": offset,
            f"{prefix}warmup_shape": _pick(draw, "linear", "linear", "linear", "log"),
            f"{prefix}decay": shape,
            f"{prefix}min_lr": _pick(draw, 0.0, lr / 10, lr),
        }
    )
    if shape == "constant":
        return
    end = _pick(draw, total, total, draw(st.integers(warmup + 1, total + 50)))
    start = warmup if shape == "inverse_sqrt" else _pick(draw, warmup, warmup, draw(st.integers(warmup, end - 1)))
    flat[f"{prefix}decay_start"], flat[f"{prefix}decay_length"] = float(start * scale), float((end - start) * scale)
    if end < total:
        flat[f"{prefix}after_decay"] = _pick(draw, "floor", "floor", "continue")


def _recompute(draw: Draw, flat: Flat) -> None:
    mode = _pick(draw, "none", "full", "full", "selective", "selective", "selective")
    prefix = "recompute."
    flat[f"{prefix}mode"] = mode
    if mode == "full":
        flat[f"{prefix}method"] = _pick(draw, "uniform", "block")
        flat[f"{prefix}layers"] = 1
        flat[f"{prefix}distribute"] = _flag(draw)
    elif mode == "selective":
        method = _pick(draw, "modules", "modules", "operators", "every_nth", "memory_budget")
        flat[f"{prefix}method"] = method
        if method == "modules":
            act = ["layernorm", "moe_act"] if flat.get("model.moe.grouped_gemm") else ["layernorm"]
            delayed = flat.get("precision.fp8_recipe") == "delayed"  # which recomputes neither of these
            flat[f"{prefix}modules"] = draw(
                st.sampled_from((["core_attn"], ["core_attn", "mlp"], ["mlp"] if delayed else act))
            )
        elif method == "every_nth":
            flat[f"{prefix}layers"] = _pick(draw, 1, 2, 3)
        elif method == "memory_budget":
            flat[f"{prefix}memory_budget"] = 0.5


def _operation(draw: Draw, flat: Flat) -> None:
    # A graph captures neither all layers' recomputation nor random numbers in what is recomputed.
    dropped = flat["model.hidden_dropout"] or flat["model.attention_dropout"]
    graphed = flat["recompute.mode"] == "none" or (flat["recompute.method"] == "modules" and not dropped)
    captured = "attn" if flat.get("model.moe.experts") else "attn,mlp"
    flat["loss.normalization"] = _pick(draw, "global_tokens", "micro_batch_mean")
    deterministic = _maybe(draw, False, True)
    flat["loss.fused_cross_entropy"] = _maybe(draw, False, not deterministic)
    flat["loss.chunks"] = _maybe(draw, 1, 8)
    flat["loss.cpu_check_nan"] = _maybe(draw, False, True)
    form = _pick(draw, "indexed", "huggingface")
    mock = _flag(draw)
    if not mock:
        flat["data.format"] = form
        flat["data.dataset"] = draw(
            st.sampled_from((["/data/a b_text_document"], ["0.3", "/d/x", "0.7", "/d/y"]))
            if form == "indexed"
            else st.sampled_from((["c4"], ["c4", "/data/c4"], ["c4_test"]))
        )
    flat.update(
        {
            "data.mock": mock,
            "data.split": _maybe(draw, "99,1,0", "969, 30, 1"),
            "data.tokenizer": _maybe(draw, "./assets/hf/Llama-3.1-8B", "/tok/it's.model"),
            "data.tokenizer_type": _maybe(draw, "HuggingFaceTokenizer", "GPT2BPETokenizer", "NullTokenizer"),
            "data.seed": _maybe(draw, 1234, 42),
            "data.deterministic": deterministic,
            "data.workers": _maybe(draw, 0, 2),
            "data.reset_positions": _maybe(draw, False, True),
            "data.reset_attention": _maybe(draw, False, True),
            "data.mask_end_of_document": _maybe(draw, False, True),
            "checkpoint.save": _maybe(draw, "/ckpt/run", "outputs"),
            "checkpoint.load": _maybe(draw, "/ckpt/run", "/other"),
            "checkpoint.interval": _pick(draw, 500, 1000),
            "checkpoint.keep_latest": _maybe(draw, 0, 1, 5),
            "checkpoint.asynchronous": _maybe(draw, False, True),
            "checkpoint.format": _maybe(draw, "torch_dist", "dcp", "torch"),
            "checkpoint.override_schedule": _maybe(draw, False, True),
            "checkpoint.weights_only": _maybe(draw, False, True),
            "logging.interval": _maybe(draw, 1, 100),
            "logging.tensorboard": _flag(draw),
            "logging.wandb": _maybe(draw, False, True),
            "logging.evaluate": _flag(draw),
            "logging.profile": _maybe(draw, False, True),
            "launch.program": _maybe(draw, "pretrain_gpt.py"),
            "launch.compile": _maybe(draw, False, True),
            "launch.garbage_collection_interval": _maybe(draw, 0, 50),
            "launch.process_group_timeout_seconds": _maybe(draw, 600, 90, 100),
            "launch.cuda_graphs": _maybe(
                draw, "none", *(["local", f"transformer_engine:{captured}"] if graphed else [])
            ),
            "launch.environment": draw(
                st.sampled_from(
                    (
                        None,
                        {"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
                        {"NCCL_DEBUG": "INFO"},
                        {"NCCL_DEBUG": "INFO", "NVTE_FUSED_ATTN": "0", "WORDS": "a 'b' $c"},
                    )
                )
            ),
        }
    )
    if flat["logging.tensorboard"]:
        flat["logging.tensorboard_dir"] = _maybe(draw, "tb", "/logs/tb")
    if flat["logging.evaluate"]:
        flat["logging.eval_interval"], flat["logging.eval_steps"] = _pick(draw, 100, 1000), _pick(draw, 10, -1)
