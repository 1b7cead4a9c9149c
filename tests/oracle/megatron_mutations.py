"""Broken and sound variants of Megatron-LM command lines: bases, what is changed in them, and which pairs are made.

Everything is fixed: the same code always gives the same variants, in the same order.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from megatron_commands import CONNECTED, EXPERTS, GPT, LLAMA, LLAMA_30, SCHEDULE, UNCONNECTED

Change = Mapping[str, "str | bool | None"]
# Changes of what is no option: the number of processes, and variables of the environment.
WORLD, VARIABLE = "@world", "@env "
GPUS_PER_NODE = 8


@dataclass(frozen=True)
class Variant:
    """A command line under its name; ``options`` in order, a bare flag with no values."""

    name: str
    options: Mapping[str, tuple[str, ...]]
    world_size: int = 8
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CONNECTED))

    @property
    def words(self) -> list[str]:
        """The words that the parser sees."""
        return [word for option, values in self.options.items() for word in (option, *values)]

    @property
    def script(self) -> str:
        """A launch script of one command."""
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.environment.items())
        per_node = next(count for count in range(GPUS_PER_NODE, 0, -1) if self.world_size % count == 0)
        head = f"torchrun --nnodes {self.world_size // per_node} --nproc-per-node {per_node} pretrain_gpt.py"
        lines = [" ".join([option, *map(shlex.quote, values)]) for option, values in self.options.items()]
        return (
            f"#!/bin/bash\n{exports}{' '.join([head, lines[0]])}"
            + "".join(f" \\\n  {line}" for line in lines[1:])
            + "\n"
        )

    def changed(self, name: str, change: Change) -> Variant:
        """Options set (text), switched on (True) and left out (None)."""
        options, world, environment = dict(self.options), self.world_size, dict(self.environment)
        for key, value in change.items():
            if key == WORLD:
                world = int(str(value))
            elif key.startswith(VARIABLE):
                environment.pop(key[len(VARIABLE) :], None)
                if value is not None:
                    environment[key[len(VARIABLE) :]] = str(value)
            elif value is None:
                options.pop(key, None)
            else:
                options[key] = () if value is True else tuple(str(value).split())
        return Variant(f"{self.name} / {name}", options, world, environment)


def command(
    name: str, text: str | Sequence[str], world_size: int = 8, environment: Mapping[str, str] = CONNECTED
) -> Variant:
    """A command line as a variant; of an option that stands twice the later one counts, as argparse has it."""
    options: dict[str, tuple[str, ...]] = {}
    current = ""
    for word in text.split() if isinstance(text, str) else text:
        if word.startswith("--"):
            current, sign, value = word.partition("=")
            options.pop(current, None)
            options[current] = (value,) if sign else ()
        else:
            options[current] = (*options[current], word)
    return Variant(name, options, world_size, environment)


_PP, _TP, _CP, _EP = (
    f"--{kind}-parallel-size" for kind in ("pipeline-model", "tensor-model", "context", "expert-model")
)
_RUN = "--lr 1e-4 --min-lr 1e-5 --train-iters 500 --lr-warmup-iters 10 --lr-decay-style cosine --mock-data"
_GPT = f"{GPT} {_RUN}"
_LLAMA = f"{LLAMA} --mock-data"
_EXPERTS = f"{EXPERTS} --mock-data"
_LATENT = (
    "--num-layers 28 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --multi-latent-attention "
    "--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --kv-channels 16 --bf16 "
    "--position-embedding-type rope --seq-length 4096 --max-position-embeddings 163840 --swiglu --no-rope-fusion "
    "--normalization RMSNorm --disable-bias-linear --micro-batch-size 1 --global-batch-size 64 --num-experts 64 "
    "--moe-ffn-hidden-size 1408 --moe-router-topk 6 --moe-router-score-function sigmoid "
    f"--moe-token-dispatcher-type alltoall {_RUN}"
)
_SHARDED = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
_FSDP = (
    f"{_LLAMA} --use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy optim_grads_params "
    "--no-gradient-accumulation-fusion --use-distributed-optimizer"
)
_QWEN = (
    "--num-layers 28 --hidden-size 1024 --ffn-hidden-size 3072 --num-attention-heads 16 --kv-channels 128 "
    "--group-query-attention --num-query-groups 8 --qk-layernorm --swiglu --normalization RMSNorm "
    "--disable-bias-linear --position-embedding-type rope --rotary-base 1000000 --seq-length 4096 "
    "--max-position-embeddings 40960 "
    f"--micro-batch-size 2 --global-batch-size 256 --bf16 --attention-dropout 0 --hidden-dropout 0 {_RUN}"
)
_SAMPLES = _GPT.replace("--train-iters 500 --lr-warmup-iters 10", "--train-samples 100000 --lr-warmup-samples 1000")

BASES: tuple[Variant, ...] = (
    command("gpt", _GPT),
    command("gpt-one", _GPT, 1),
    command("gpt-fp16", f"{_GPT} --fp16 --initial-loss-scale 65536"),
    command("gpt-static-scale", f"{_GPT} --fp16 --loss-scale 4096"),
    command("gpt-bf16", f"{_GPT} --bf16 --clip-grad 1.0 --weight-decay 0.1"),
    command("gpt-tp4", f"{_GPT} --bf16 {_TP} 4 --sequence-parallel"),
    command("gpt-tp2-pp2", f"{_GPT} --bf16 {_TP} 2 {_PP} 2"),
    command("gpt-pp4", f"{_GPT} --bf16 {_PP} 4 --global-batch-size 64"),
    command("gpt-samples", _SAMPLES),
    command("gpt-samples-decay", f"{_SAMPLES} --lr-decay-samples 90000 --bf16"),
    command("gpt-data", f"{_GPT.replace('--mock-data', '')} --data-path /data/a --split 949,50,1 --vocab-size 50257"),
    command("gpt-save", f"{_GPT} --save /ckpt --load /ckpt --save-interval 100 --eval-interval 100 --eval-iters 10"),
    command("gpt-torch", f"{_GPT} --save /ckpt --save-interval 100 --ckpt-format torch --use-distributed-optimizer"),
    command("gpt-wsd", f"{_GPT} --lr-decay-style WSD --lr-wsd-decay-iters 100 --lr-wsd-decay-style cosine"),
    command("gpt-wd", f"{_GPT} --weight-decay-incr-style linear --start-weight-decay 0.01 --end-weight-decay 0.1"),
    command("llama", _LLAMA),
    command("llama-tp8", f"{_LLAMA} {_TP} 8 --sequence-parallel {_SHARDED}"),
    command("llama-tp2-pp2", f"{_LLAMA} {_TP} 2 --sequence-parallel {_PP} 2 {_SHARDED}"),
    command("llama-interleaved", f"{_LLAMA} {_PP} 4 --num-layers-per-virtual-pipeline-stage 2 {_SHARDED}", 16),
    command("llama-virtual", f"{_LLAMA} {_PP} 4 --num-virtual-stages-per-pipeline-rank 4", 16),
    command(
        "llama-counted",
        f"{LLAMA_30} --mock-data {_PP} 4 --account-for-embedding-in-pipeline-split "
        "--account-for-loss-in-pipeline-split",
        16,
    ),
    command(
        "llama-uneven",
        f"{LLAMA_30} --mock-data {_PP} 4 --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7",
        16,
    ),
    command("llama-layout", f"{_LLAMA} {_PP} 4 --pipeline-model-parallel-layout Et*7|t*8|t*8|t*9L"),
    command("llama-cp2", f"{_LLAMA} {_CP} 2 {_TP} 2 --sequence-parallel"),
    command("llama-cp4", f"{_LLAMA} {_CP} 4 --cp-comm-type p2p"),
    command("llama-fp8", f"{_LLAMA} --fp8-format hybrid --fp8-recipe delayed --fp8-amax-history-len 1024"),
    command("llama-mxfp8", f"{_LLAMA} --fp8-format e4m3 --fp8-recipe mxfp8 {_SHARDED} --fp8-param-gather"),
    command("llama-fp4", f"{_LLAMA} --fp4-format e2m1"),
    command("llama-full", f"{_LLAMA} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"),
    command("llama-selective", f"{_LLAMA} --recompute-activations {_TP} 2 --sequence-parallel"),
    command(
        "llama-precise", f"{_LLAMA} --use-precision-aware-optimizer --use-distributed-optimizer --exp-avg-dtype bf16"
    ),
    command("llama-muon", f"{_LLAMA} --optimizer muon --use-distributed-optimizer"),
    command("llama-sgd", f"{_LLAMA} --optimizer sgd --sgd-momentum 0.9"),
    command("llama-graph", f"{_LLAMA} --cuda-graph-impl local --te-rng-tracker"),
    command("llama-offload", f"{_LLAMA} --cpu-offloading-num-layers 8"),
    command("llama-fsdp", _FSDP, 8, UNCONNECTED),
    command("llama-fsdp2", f"{_LLAMA} --use-torch-fsdp2 --no-gradient-accumulation-fusion", 8, UNCONNECTED),
    command("llama-fraction", f"{_LLAMA.replace('--lr-warmup-iters 100', '--lr-warmup-fraction 0.1')}"),
    command("llama-batches", f"{_LLAMA.replace('--global-batch-size 128', '')} --step-batch-size-schedule 0:64,1M:128"),
    command("qwen", _QWEN),
    command("qwen-tp4", f"{_QWEN} {_TP} 4 --sequence-parallel"),
    command("experts", f"{_EXPERTS} {_EP} 4"),
    command("experts-tp2", f"{_EXPERTS} {_EP} 2 {_TP} 2 --sequence-parallel --expert-tensor-parallel-size 1"),
    command("experts-pp2", f"{_EXPERTS} {_EP} 4 {_PP} 2 --num-virtual-stages-per-pipeline-rank 2"),
    command("experts-shared", f"{_EXPERTS} {_EP} 8 --moe-shared-expert-intermediate-size 4096"),
    command("experts-drop", f"{_EXPERTS} {_EP} 2 --moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity"),
    command(
        "experts-flex",
        f"{_EXPERTS} {_EP} 8 --moe-token-dispatcher-type flex --moe-enable-deepep --moe-router-dtype fp32",
    ),
    command("latent", f"{_LATENT} {_EP} 8"),
    command("latent-pp4", f"{_LATENT} {_EP} 2 {_PP} 4 --mtp-num-layers 1 --moe-router-enable-expert-bias"),
    command(
        "latent-groups", f"{_LATENT} --moe-router-num-groups 8 --moe-router-group-topk 4 --moe-layer-freq ([0]+[1]*27)"
    ),
)

# One change each. Most break some bases and leave others sound, which is what makes the matrix tell.
CHANGES: dict[str, Change] = {
    # sizes of the groups and the world
    "tp2": {_TP: "2"},
    "tp3": {_TP: "3"},
    "tp4": {_TP: "4"},
    "tp8": {_TP: "8"},
    "tp16": {_TP: "16", WORLD: "16"},
    "tp0": {_TP: "0"},
    "pp2": {_PP: "2"},
    "pp3": {_PP: "3", WORLD: "24"},
    "pp5": {_PP: "5", WORLD: "40"},
    "pp8": {_PP: "8"},
    "cp2": {_CP: "2"},
    "cp3": {_CP: "3", WORLD: "24"},
    "cp8": {_CP: "8"},
    "ep2": {_EP: "2"},
    "ep3": {_EP: "3", WORLD: "24"},
    "ep16": {_EP: "16"},
    "etp2": {"--expert-tensor-parallel-size": "2"},
    "etp8": {"--expert-tensor-parallel-size": "8"},
    "world6": {WORLD: "6"},
    "world1": {WORLD: "1"},
    "world32": {WORLD: "32"},
    "dp-first": {"--use-tp-pp-dp-mapping": True},
    "instances2": {"--num-distributed-optimizer-instances": "2"},
    "instances3": {"--num-distributed-optimizer-instances": "3"},
    "hierarchy": {_CP: "4", "--cp-comm-type": "a2a+p2p", "--hierarchical-context-parallel-sizes": "2 2"},
    "hierarchy-wrong": {_CP: "4", "--cp-comm-type": "a2a+p2p", "--hierarchical-context-parallel-sizes": "2 4"},
    "hierarchy-none": {_CP: "4", "--cp-comm-type": "a2a+p2p"},
    "cp-comm-layers": {_CP: "2", "--cp-comm-type": "p2p a2a"},
    "cp-comm-typo": {"--cp-comm-type": "ring"},
    "sharp-group": {"--sharp-enabled-group": "dp"},
    # pipeline
    "virtual2": {"--num-virtual-stages-per-pipeline-rank": "2"},
    "virtual3": {"--num-virtual-stages-per-pipeline-rank": "3"},
    "chunk3": {"--num-layers-per-virtual-pipeline-stage": "3"},
    "chunk4": {"--num-layers-per-virtual-pipeline-stage": "4"},
    "first5": {"--decoder-first-pipeline-num-layers": "5"},
    "first0": {"--decoder-first-pipeline-num-layers": "0", _PP: "2"},
    "last8": {"--decoder-last-pipeline-num-layers": "8"},
    "count-embedding": {"--account-for-embedding-in-pipeline-split": True},
    "count-both": {"--account-for-embedding-in-pipeline-split": True, "--account-for-loss-in-pipeline-split": True},
    "layout-short": {"--pipeline-model-parallel-layout": "Et*3|t*3L"},
    "layout-letter": {"--pipeline-model-parallel-layout": "Et*8|x*8L"},
    "layout-no-loss": {"--pipeline-model-parallel-layout": "Et*16|t*16", _PP: "2"},
    "layout-good": {"--pipeline-model-parallel-layout": "Et*16|t*16L", _PP: "2"},
    "no-p2p-overlap": {"--no-overlap-p2p-communication": True},
    "warmup-flush": {"--overlap-p2p-communication-warmup-flush": True},
    "defer-wgrad": {"--defer-embedding-wgrad-compute": True},
    "layers31": {"--num-layers": "31"},
    "layers36": {"--num-layers": "36"},
    # dimensions
    "hidden-odd": {"--hidden-size": "1000"},
    "hidden4100": {"--hidden-size": "4100"},
    "heads12": {"--num-attention-heads": "12"},
    "heads7": {"--num-attention-heads": "7", "--kv-channels": "128", "--group-query-attention": None},
    "heads20": {"--num-attention-heads": "20"},
    "groups3": {"--group-query-attention": True, "--num-query-groups": "3"},
    "groups4": {"--group-query-attention": True, "--num-query-groups": "4"},
    "groups-alone": {"--num-query-groups": "2"},
    "gqa-alone": {"--group-query-attention": True, "--num-query-groups": None},
    "ffn-odd": {"--ffn-hidden-size": "4095"},
    "ffn-6": {"--ffn-hidden-size": "11006"},
    "padded-odd": {"--padded-vocab-size": "50257"},
    "padded-even": {"--padded-vocab-size": "50304"},
    "seq-long": {"--seq-length": "1000000"},
    "seq-odd": {"--seq-length": "1022"},
    "positions-short": {"--max-position-embeddings": "128"},
    "seq-twice": {"--encoder-seq-length": "512"},
    "layers-twice": {"--encoder-num-layers": "12"},
    "decoder-seq": {"--decoder-seq-length": "2000000"},
    "kv-channels": {"--kv-channels": "64"},
    "rope": {"--position-embedding-type": "rope"},
    "rope-typo": {"--position-embedding-type": "alibi"},
    "relative": {"--position-embedding-type": "relative"},
    "relative-local": {"--position-embedding-type": "relative", "--transformer-impl": "local"},
    "mrope": {"--position-embedding-type": "mrope"},
    "mrope-sections": {"--position-embedding-type": "mrope", "--mrope-section": "16 24 24"},
    "no-position": {"--no-position-embedding": True},
    "rope-type": {"--rope-type": "yarn"},
    "interleaved-rope": {"--rotary-interleaved": True, "--position-embedding-type": "rope"},
    "no-rope-5": {"--no-rope-freq": "5"},
    "no-rope-4": {"--no-rope-freq": "4"},
    "quick-geglu": {"--quick-geglu": True},
    "squared-relu": {"--squared-relu": True},
    "squared-relu-unfused": {"--squared-relu": True, "--no-bias-gelu-fusion": True},
    "no-bias": {"--disable-bias-linear": True},
    "rmsnorm": {"--normalization": "RMSNorm"},
    "norm-typo": {"--normalization": "rmsnorm"},
    "te-activation": {"--use-te-activation-func": True},
    "fused-norm": {"--fused-residual-rmsnorm": True},
    "latent-on": {"--multi-latent-attention": True},
    "mtp": {"--mtp-num-layers": "1"},
    "qk-clip": {"--qk-clip": True, "--qk-clip-alpha": "1.5"},
    "qk-clip-good": {"--qk-clip": True},
    "backend-local": {"--attention-backend": "local"},
    "backend-typo": {"--attention-backend": "flashattn"},
    "backend-flash": {"--attention-backend": "flash"},
    "invariant": {"--batch-invariant-mode": True},
    "mla-fusion": {"--mla-down-proj-fusion": True},
    "softmax-scale": {"--apply-query-key-layer-scaling": True, "--attention-softmax-in-fp32": True},
    "gdn": {"--experimental-attention-variant": "gated_delta_net"},
    "untied": {"--untie-embeddings-and-output-weights": True},
    "mup": {"--use-mup": True, "--mup-base-hidden-size": "0"},
    # batches
    "micro3": {"--micro-batch-size": "3"},
    "micro0": {"--micro-batch-size": "0"},
    "global7": {"--global-batch-size": "7"},
    "global512": {"--global-batch-size": "512"},
    "global-unset": {"--global-batch-size": None},
    "eval-global": {"--eval-global-batch-size": "30"},
    "eval-micro": {"--eval-micro-batch-size": "5"},
    "decrease": {"--global-batch-size": "36", "--decrease-batch-size-if-needed": True},
    "batch-steps": {"--step-batch-size-schedule": "0:16,1M:32"},
    "batch-steps-late": {"--global-batch-size": None, "--step-batch-size-schedule": "1M:16"},
    "rampup": {"--rampup-batch-size": "16 16 1000"},
    "rampup-short": {"--rampup-batch-size": "16 16"},
    # schedule
    "samples-too": {"--train-samples": "1000"},
    "decay-samples": {"--lr-decay-samples": "1000"},
    "decay-iters": {"--lr-decay-iters": "320000"},
    "decay-short": {"--lr-decay-iters": "5"},
    "warmup-long": {"--lr-warmup-iters": "100000"},
    "warmup-samples": {"--lr-warmup-samples": "10"},
    "warmup-fraction": {"--lr-warmup-fraction": "0.01"},
    "warmup-fraction-1": {"--lr-warmup-fraction": "1.0", "--lr-warmup-iters": None, "--lr-warmup-samples": None},
    "warmup-init": {"--lr-warmup-init": "0.5"},
    "floor-high": {"--min-lr": "0.1"},
    "floor-negative": {"--min-lr": "-0.1"},
    "wsd": {"--lr-decay-style": "WSD"},
    "wsd-iters": {"--lr-decay-style": "WSD", "--lr-wsd-decay-iters": "50"},
    "style-typo": {"--lr-decay-style": "cos"},
    "no-lr": {"--lr": None},
    "no-length": {"--train-iters": None, "--train-samples": None},
    "zero-iters": {"--train-iters": "0"},
    "skip-train": {"--skip-train": True},
    "wd-start": {"--start-weight-decay": "0.1"},
    "wd-linear": {"--weight-decay-incr-style": "linear"},
    "wd-falling": {
        "--weight-decay-incr-style": "cosine",
        "--start-weight-decay": "0.1",
        "--end-weight-decay": "0.01",
    },
    "wd-cond": {"--no-weight-decay-cond-type": "everything"},
    "override-scheduler": {"--override-opt_param-scheduler": True, "--use-checkpoint-opt_param-scheduler": True},
    "seed0": {"--seed": "0"},
    "phases": {"--phase-transition-iterations": "10,x"},
    # precision
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "both-16": {"--bf16": True, "--fp16": True},
    "no-16": {"--bf16": None, "--fp16": None},
    "fp8": {"--fp8-format": "hybrid"},
    "fp8-typo": {"--fp8-format": "e5m2"},
    "fp8-ends": {"--fp8-format": "hybrid", "--first-last-layers-bf16": True},
    "fp8-ends-good": {"--fp8-format": "hybrid", "--fp8-recipe": "tensorwise", "--first-last-layers-bf16": True},
    "fp8-ends-many": {
        "--fp8-format": "hybrid",
        "--fp8-recipe": "tensorwise",
        "--first-last-layers-bf16": True,
        "--num-layers-at-start-in-bf16": "40",
    },
    "fp8-custom": {"--fp8-format": "hybrid", "--fp8-recipe": "custom"},
    "fp8-gather": {"--fp8-param-gather": True},
    "fp8-gather-dist": {"--fp8-param-gather": True, "--fp8-format": "hybrid", "--use-distributed-optimizer": True},
    "fp8-output": {"--fp8-output-proj": True},
    "fp4": {"--fp4-format": "e2m1"},
    "fp4-gather": {"--fp4-param-gather": True},
    "reuse-buffer": {"--reuse-grad-buf-for-mxfp8-param-ag": True},
    "main-grads": {"--main-grads-dtype": "bf16"},
    "moments": {"--exp-avg-dtype": "fp8"},
    "precise": {"--use-precision-aware-optimizer": True},
    "grads-fp32": {"--accumulate-allreduce-grads-in-fp32": True},
    "grads-bf16": {"--grad-reduce-in-bf16": True},
    "fp16-entropy": {"--fp16-lm-cross-entropy": True},
    "fp32-residual": {"--fp32-residual-connection": True},
    # recomputation
    "full": {"--recompute-granularity": "full"},
    "full-uniform": {"--recompute-granularity": "full", "--recompute-method": "uniform"},
    "full-good": {
        "--recompute-granularity": "full",
        "--recompute-method": "block",
        "--recompute-num-layers": "2",
    },
    "selective-method": {"--recompute-granularity": "selective", "--recompute-method": "uniform"},
    "selective-layers": {"--recompute-granularity": "selective", "--recompute-num-layers": "1"},
    "modules-act": {"--recompute-granularity": "selective", "--recompute-modules": "moe_act"},
    "modules-latent": {"--recompute-granularity": "selective", "--recompute-modules": "mla_up_proj layernorm"},
    "modules-typo": {"--recompute-granularity": "selective", "--recompute-modules": "attention"},
    "modules-mlp": {"--recompute-granularity": "selective", "--recompute-modules": "mlp core_attn"},
    "moe-recompute": {"--moe-layer-recompute": True},
    "distribute": {"--distribute-saved-activations": True},
    "cpu-offload": {"--cpu-offloading-num-layers": "99"},
    "cpu-offload-2": {"--cpu-offloading-num-layers": "2"},
    "fine-offload": {
        "--fine-grained-activation-offloading": True,
        "--offload-modules": "attn_proj",
        VARIABLE + "NVTE_CPU_OFFLOAD_V1": "1",
    },
    # optimizer and buffers
    "distributed": {"--use-distributed-optimizer": True},
    "gather": {"--overlap-param-gather": True},
    "gather-good": {"--use-distributed-optimizer": True, "--overlap-grad-reduce": True, "--overlap-param-gather": True},
    "gather-step": {"--overlap-param-gather-with-optimizer-step": True},
    "offload-optimizer": {"--optimizer-cpu-offload": True},
    "optimizer-typo": {"--optimizer": "adamw"},
    "sgd": {"--optimizer": "sgd"},
    "muon": {"--optimizer": "muon"},
    "lion": {"--optimizer": "lion"},
    "buckets": {"--ddp-num-buckets": "4", "--ddp-bucket-size": "1000"},
    "gloo": {"--disable-gloo-process-groups": True, "--ckpt-format": "torch", "--use-distributed-optimizer": True},
    "fsdp": {"--use-megatron-fsdp": True},
    "fsdp-good": {
        "--use-megatron-fsdp": True,
        "--ckpt-format": "fsdp_dtensor",
        VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": "8",
    },
    "fsdp2": {"--use-torch-fsdp2": True, VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": "8"},
    "fsdp2-good": {
        "--use-torch-fsdp2": True,
        VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": "8",
        "--no-gradient-accumulation-fusion": True,
        "--untie-embeddings-and-output-weights": True,
    },
    "meta-device": {"--init-model-with-meta-device": True, "--data-parallel-sharding-strategy": "no_shard"},
    "registration": {"--fsdp-manual-registration": True},
    "strategy-typo": {"--data-parallel-sharding-strategy": "zero3"},
    "tp-overlap": {"--tp-comm-overlap": True},
    "sequence": {"--sequence-parallel": True},
    "connections": {VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": "32"},
    "connections-unset": {VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": None},
    "connections-1": {VARIABLE + "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    "delay-wgrad": {"--delay-wgrad-compute": True},
    # experts
    "experts8": {"--num-experts": "8"},
    "experts6": {"--num-experts": "6"},
    "experts-none": {"--num-experts": "0"},
    "experts-negative": {"--num-experts": "-8"},
    "topk1": {"--moe-router-topk": "1"},
    "topk1-pre": {"--moe-router-topk": "1", "--moe-router-pre-softmax": True},
    "topk99": {"--moe-router-topk": "99"},
    "moe-ffn": {"--moe-ffn-hidden-size": "1023"},
    "moe-freq": {"--moe-layer-freq": "[1,0,1]"},
    "moe-freq-2": {"--moe-layer-freq": "2"},
    "moe-freq-words": {"--moe-layer-freq": "every"},
    "two-losses": {"--moe-router-load-balancing-type": "aux_loss seq_aux_loss"},
    "two-losses-good": {
        "--moe-router-load-balancing-type": "aux_loss seq_aux_loss",
        "--moe-aux-loss-coeff": "1e-2 1e-3",
    },
    "sinkhorn": {"--moe-router-load-balancing-type": "sinkhorn"},
    "capacity": {"--moe-expert-capacity-factor": "1.0"},
    "capacity-sinkhorn": {"--moe-expert-capacity-factor": "1.0", "--moe-router-load-balancing-type": "sinkhorn"},
    "pad-capacity": {"--moe-pad-expert-input-to-capacity": True},
    "expert-bias": {"--moe-router-enable-expert-bias": True},
    "score-sigmoid": {"--moe-router-score-function": "sigmoid"},
    "groups-route": {"--moe-router-group-topk": "2"},
    "groups-route-3": {"--moe-router-group-topk": "2", "--moe-router-num-groups": "3"},
    "groups-route-many": {"--moe-router-group-topk": "8", "--moe-router-num-groups": "4"},
    "dispatcher-allgather": {"--moe-token-dispatcher-type": "allgather"},
    "dispatcher-flex": {"--moe-token-dispatcher-type": "flex"},
    "dispatcher-typo": {"--moe-token-dispatcher-type": "all2all"},
    "deepep": {"--moe-enable-deepep": True},
    "shared": {"--moe-shared-expert-intermediate-size": "2048"},
    "shared-0": {"--moe-shared-expert-intermediate-size": "0"},
    "shared-overlap": {"--moe-shared-expert-intermediate-size": "2048", "--moe-shared-expert-overlap": True},
    "pad-quantized": {"--moe-router-padding-for-quantization": True},
    "ep-overlap": {"--overlap-moe-expert-parallel-comm": True},
    "latent-size": {"--moe-latent-size": "0"},
    "upcycling": {"--moe-use-upcycling": True},
    "permute": {"--moe-permute-fusion": True},
    # data, checkpoints, the rest
    "two-sources": {"--mock-data": True, "--data-path": "/data/b"},
    "data-path": {"--mock-data": None, "--data-path": "/data/b"},
    "data-weights": {"--mock-data": None, "--data-path": "0.3 /data/a 0.7 /data/b"},
    "data-odd": {"--mock-data": None, "--data-path": "0.3 /data/a 0.7"},
    "data-args": {"--data-path": "/data/b", "--data-args-path": "/data/list"},
    "per-split": {"--mock-data": None, "--data-path": None, "--train-data-path": "/a", "--valid-data-path": "/b"},
    "per-split-and-split": {
        "--mock-data": None,
        "--data-path": None,
        "--train-data-path": "/a",
        "--split": "99,1,0",
    },
    "split-words": {"--mock-data": None, "--data-path": "/data/b", "--split": "99,1,x"},
    "split-two": {"--mock-data": None, "--data-path": "/data/b", "--split": "99,1"},
    "split-four": {"--mock-data": None, "--data-path": "/data/b", "--split": "90,5,4,1"},
    "split-zero": {"--mock-data": None, "--data-path": "/data/b", "--split": "0,0,0"},
    "fast-cache": {"--dataloader-fast-cache-load": True},
    "builder-threads": {"--num-dataset-builder-threads": "0"},
    "loader-typo": {"--dataloader-type": "random"},
    "fim": {"--fim-data": True},
    "save": {"--save": "/x", "--save-interval": None},
    "save-0": {"--save": "/x", "--save-interval": "0"},
    "save-good": {"--save": "/x", "--save-interval": "50"},
    "retain": {"--save": "/x", "--save-interval": "50", "--save-retain-interval": "75"},
    "format-dcp": {"--ckpt-format": "torch_dcp"},
    "format-fsdp": {"--ckpt-format": "fsdp_dtensor"},
    "format-zarr": {"--ckpt-format": "zarr"},
    "format-torch": {"--ckpt-format": "torch"},
    "async": {"--async-save": True},
    "convert": {"--ckpt-convert-format": "torch_dist"},
    "main-params": {"--load-main-params-from-ckpt": True},
    "replication": {"--replication": True},
    "log-memory": {"--log-memory-interval": "75"},
    "deterministic": {"--deterministic-mode": True, VARIABLE + "NCCL_ALGO": "Ring"},
    "deterministic-flash": {
        "--deterministic-mode": True,
        "--use-flash-attn": True,
        VARIABLE + "NCCL_ALGO": "Ring",
    },
    "deterministic-algorithm": {"--deterministic-mode": True, VARIABLE + "NCCL_ALGO": "NVLS"},
    "graphs": {"--enable-cuda-graph": True},
    "graphs-both": {"--enable-cuda-graph": True, "--external-cuda-graph": True},
    "graph-iteration": {"--cuda-graph-impl": "full_iteration"},
    "graph-iteration-good": {"--cuda-graph-impl": "full_iteration", "--no-check-for-nan-in-loss-and-grad": True},
    "graph-moe": {"--cuda-graph-impl": "transformer_engine", "--cuda-graph-modules": "moe"},
    "graph-attn": {"--cuda-graph-impl": "transformer_engine", "--cuda-graph-modules": "attn"},
    "graph-scope": {"--cuda-graph-impl": "local", "--inference-cuda-graph-scope": "block"},
    "inference-threshold": {"--inference-batch-times-seqlen-threshold": "512"},
    "inference-impl": {"--transformer-impl": "inference_optimized"},
    "tokenizer-typo": {"--tokenizer-type": "Llama3"},
    "tokenizer": {"--tokenizer-type": "HuggingFaceTokenizer", "--tokenizer-model": "meta-llama/Llama-3.1-8B"},
    # words of the parser
    "no-layers": {"--num-layers": None},
    "no-hidden": {"--hidden-size": None},
    "no-heads": {"--num-attention-heads": None},
    "no-seq": {"--seq-length": None},
    "no-positions": {"--max-position-embeddings": None},
    "no-micro": {"--micro-batch-size": None},
    "exponent": {"--train-iters": "1e3"},
    "float-layers": {"--num-layers": "24.0"},
    "word-lr": {"--lr": "fast"},
    "negative-lr": {"--lr": "-1e-4"},
    "bare-lr": {"--lr": True},
    "flag-value": {"--bf16": "true"},
    "misspelt": {"--tensor-model-paralel-size": "2"},
    "abbreviated": {"--num-layer": "2"},
    "unknown": {"--zero-stage": "3"},
    "underscores": {"--num_workers": "2"},
    "removed": {"--use-legacy-models": True},
    "removed-16": {"--no-async-tensor-model-parallel-allreduce": True},
    "removed-fsdp": {"--use-custom-fsdp": True},
    "later": {"--freeze-all-layers": True},
    "renamed": {"--muon-use-nesterov": True},
    "retired-batch": {"--batch-size": "8"},
    "retired-warmup": {"--warmup": "1"},
    "retired-checkpoint": {"--checkpoint-activations": True},
    "old-norm": {"--norm-epsilon": "1e-6", "--apply-layernorm-1p": True},
    "log": {"--log-interval": "10", "--log-throughput": True, "--tensorboard-dir": "/tb"},
    "exit": {"--exit-duration-in-mins": "230", "--exit-signal-handler": True},
    "timeout": {"--distributed-timeout-minutes": "60", "--distributed-backend": "gloo"},
}


def variants(bases: Sequence[Variant], per_base: int, pairs: int) -> Iterator[Variant]:
    """The bases, and of each ``per_base`` single and ``pairs`` double changes; every change comes several times."""
    names = list(CHANGES)
    chosen = random.Random(20260701)
    order: list[str] = []
    for base in bases:
        yield base
        for _ in range(per_base):
            if not order:
                order = chosen.sample(names, len(names))
            name = order.pop()
            yield base.changed(name, CHANGES[name])
        for _ in range(pairs):
            first, second = chosen.sample(names, 2)
            yield base.changed(first, CHANGES[first]).changed(second, CHANGES[second])


__all__ = ["BASES", "CHANGES", "SCHEDULE", "Variant", "command", "variants"]
