"""Command lines of our own for the real argument code: name -> (words, world size, environment)."""

from __future__ import annotations

from dataclasses import dataclass, field

CONNECTED = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
UNCONNECTED = {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}

GPT = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 2"
)
SCHEDULE = (
    "--lr 3e-4 --min-lr 3e-5 --train-iters 1000 --lr-decay-iters 900 --lr-warmup-iters 100 --lr-decay-style cosine "
    "--adam-beta2 0.95 --weight-decay 0.1"
)
_SHAPE = (
    "--hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--seq-length 8192 --max-position-embeddings 8192 --swiglu --normalization RMSNorm --norm-epsilon 1e-5 "
    "--position-embedding-type rope --rotary-base 500000 --use-rope-scaling --disable-bias-linear "
    "--untie-embeddings-and-output-weights --hidden-dropout 0.0 --attention-dropout 0.0 --micro-batch-size 1 --bf16"
)
LLAMA = f"--num-layers 32 --global-batch-size 128 {_SHAPE} {SCHEDULE}"
LLAMA_30 = f"--num-layers 30 --global-batch-size 128 {_SHAPE} {SCHEDULE}"
LLAMA_16 = f"--num-layers 16 --global-batch-size 128 {_SHAPE} {SCHEDULE}"
LLAMA_NO_BATCH = f"--num-layers 32 {_SHAPE} {SCHEDULE}"
EXPERTS = (
    f"{LLAMA} --num-experts 8 --moe-router-topk 2 --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm "
    "--moe-token-dispatcher-type alltoall"
)
LATENT = (
    "--num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --multi-latent-attention "
    "--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --kv-channels 16 "
    "--position-embedding-type rope --seq-length 4096 --max-position-embeddings 163840 --swiglu "
    "--normalization RMSNorm --disable-bias-linear --micro-batch-size 1 --global-batch-size 64 --bf16 --num-experts 64 "
    "--moe-ffn-hidden-size 1408 --moe-router-topk 6 --moe-layer-freq ([0]+[1]*26) --moe-router-score-function sigmoid "
    "--moe-router-enable-expert-bias --moe-router-num-groups 8 --moe-router-group-topk 2 --no-rope-fusion"
)


@dataclass(frozen=True)
class Command:
    """One command line; ``text`` has no quotes, words are split at spaces."""

    text: str
    world_size: int = 8
    environment: dict[str, str] = field(default_factory=lambda: dict(CONNECTED))

    @property
    def words(self) -> list[str]:
        return self.text.split()


_PIPELINE = "--pipeline-model-parallel-size"
_COUNTED = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"

COMMANDS: dict[str, Command] = {
    "gpt": Command(GPT),
    "gpt-swiglu": Command(f"{GPT} --swiglu"),
    "gpt-bf16": Command(f"{GPT} --bf16"),
    "gpt-bf16-reduce": Command(f"{GPT} --bf16 --grad-reduce-in-bf16"),
    "gpt-bf16-main-grads": Command(
        f"{GPT} --bf16 --main-grads-dtype bf16 --use-precision-aware-optimizer --use-distributed-optimizer"
    ),
    "gpt-fp16": Command(f"{GPT} --fp16"),
    "gpt-fp16-static": Command(f"{GPT} --fp16 --loss-scale 1024"),
    "gpt-vocab": Command(f"{GPT} --vocab-size 50257 --tensor-model-parallel-size 2"),
    "gpt-null-tokenizer": Command(f"{GPT} --data-path /data/x --vocab-size 50257 --tokenizer-type NullTokenizer"),
    "gpt-padded": Command(f"{GPT} --padded-vocab-size 50304"),
    "gpt-samples": Command(f"{GPT} --train-samples 1000 --lr-decay-samples 900 --lr-warmup-samples 10"),
    "gpt-geglu": Command(f"{GPT} --quick-geglu --no-bias-gelu-fusion"),
    "gpt-relu": Command(f"{GPT} --squared-relu --no-bias-gelu-fusion"),
    "hybrid-stages": Command(
        f"{GPT} --hybrid-layer-pattern M-M*|M-M-/M*/M* --position-embedding-type none {_PIPELINE} 2"
    ),
    "hybrid-old": Command(
        f"{GPT} --hybrid-override-pattern M-M*-M-M --position-embedding-type none "
        "--mtp-hybrid-override-pattern M- --mtp-num-layers 2"
    ),
    "llama": Command(LLAMA),
    "llama-parallel": Command(
        f"{LLAMA} --tensor-model-parallel-size 2 --sequence-parallel {_PIPELINE} 2 --use-distributed-optimizer "
        "--overlap-grad-reduce --overlap-param-gather"
    ),
    "llama-sequence-tp1": Command(f"{LLAMA} --sequence-parallel"),
    "llama-interleaved": Command(f"{LLAMA} {_PIPELINE} 4 --num-layers-per-virtual-pipeline-stage 2", 16),
    "llama-virtual": Command(f"{LLAMA} {_PIPELINE} 4 --num-virtual-stages-per-pipeline-rank 4", 16),
    "llama-virtual-one": Command(f"{LLAMA} {_PIPELINE} 4 --num-virtual-stages-per-pipeline-rank 1", 16),
    "llama-counted": Command(f"{LLAMA_30} {_PIPELINE} 4 {_COUNTED}", 16),
    "llama-counted-virtual": Command(
        f"{LLAMA_30} {_PIPELINE} 4 {_COUNTED} --num-layers-per-virtual-pipeline-stage 2", 16
    ),
    "llama-uneven": Command(
        f"{LLAMA_30} {_PIPELINE} 4 --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7", 16
    ),
    "llama-uneven-virtual": Command(
        f"{LLAMA} {_PIPELINE} 4 --decoder-first-pipeline-num-layers 8 --num-virtual-stages-per-pipeline-rank 2", 16
    ),
    "llama-layout": Command(f"{LLAMA_16} {_PIPELINE} 2 --pipeline-model-parallel-layout Et*3|(tt|)*6tL"),
    "llama-context": Command(f"{LLAMA} --context-parallel-size 2 --cp-comm-type a2a"),
    "llama-context-hierarchical": Command(
        f"{LLAMA} --context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2"
    ),
    "llama-fp8": Command(
        f"{LLAMA} --fp8-format hybrid --fp8-recipe blockwise --fp8-param-gather --use-distributed-optimizer"
    ),
    "llama-fp8-ends": Command(f"{LLAMA} --fp8-format e4m3 --fp8-recipe tensorwise --first-last-layers-bf16"),
    "llama-fp4": Command(f"{LLAMA} --fp4-format e2m1"),
    "llama-recompute-full": Command(
        f"{LLAMA} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    ),
    "llama-recompute-block": Command(
        f"{LLAMA} --tensor-model-parallel-size 2 --recompute-granularity full --recompute-method block "
        "--recompute-num-layers 4 --distribute-saved-activations"
    ),
    "llama-recompute-short": Command(f"{LLAMA} --recompute-activations"),
    "llama-recompute-modules": Command(
        f"{LLAMA} --recompute-granularity selective --recompute-modules core_attn layernorm"
    ),
    "llama-muon": Command(f"{LLAMA} --optimizer muon --use-distributed-optimizer"),
    "llama-muon-old": Command(f"{LLAMA} --optimizer dist_muon"),
    "llama-sgd": Command(f"{LLAMA} --optimizer sgd"),
    "llama-offload": Command(
        f"{LLAMA} --optimizer-cpu-offload --use-precision-aware-optimizer --use-distributed-optimizer"
    ),
    "llama-rampup": Command(f"{LLAMA} --rampup-batch-size 16 16 1000"),
    "llama-batch-steps": Command(f"{LLAMA_NO_BATCH} --step-batch-size-schedule=0:16,1M:32"),
    "llama-graph-local": Command(f"{LLAMA} --cuda-graph-impl local"),
    "llama-graph-te": Command(f"{LLAMA} --cuda-graph-impl transformer_engine --cuda-graph-modules attn"),
    "llama-graph-external": Command(f"{LLAMA} --external-cuda-graph"),
    "llama-graph-enable": Command(f"{LLAMA} --enable-cuda-graph"),
    "llama-graph-scope": Command(f"{LLAMA} --cuda-graph-scope full --cuda-graph-impl local"),
    "llama-graph-iteration": Command(
        f"{LLAMA} --cuda-graph-modules full_iteration --no-check-for-nan-in-loss-and-grad"
    ),
    "llama-growing-decay": Command(
        f"{LLAMA} --weight-decay-incr-style linear --start-weight-decay 0.01 --end-weight-decay 0.1"
    ),
    "llama-scaled-scores": Command(f"{LLAMA} --apply-query-key-layer-scaling"),
    "llama-async": Command(f"{LLAMA} --save /x --save-interval 100 --async-save"),
    "llama-async-torch": Command(
        f"{LLAMA} --save /x --save-interval 100 --async-save --use-persistent-ckpt-worker --ckpt-format torch"
    ),
    "llama-skip-train": Command(f"{LLAMA} --skip-train"),
    "llama-no-experts": Command(f"{LLAMA} --num-experts 0"),
    "llama-width-transfer": Command(f"{LLAMA} --use-mup --mup-base-hidden-size 256"),
    "llama-no-rope": Command(f"{LLAMA} --no-rope-freq 4"),
    "llama-types": Command(
        f"{LLAMA} --exit-signal SIGINT --attention-backend flash --window-size 128,0 --window-attn-skip-freq 2 "
        "--iterations-to-skip 3 5 --exit-interval -1 --mscale=-0.5 --lr 1_0e-4"
    ),
    "llama-phases": Command(
        f"{LLAMA} --fake-process-group --fp32-residual-connection --phase-transition-iterations 30,10"
    ),
    "llama-rl": Command(
        f"{LLAMA} --perform-rl-step --grpo-prompts-per-step 32 --grpo-group-size 4 --rl-partial-rollouts "
        "--rl-num-parallel-generation-batches 4"
    ),
    "llama-ignored": Command(f"{LLAMA} --replication-jump 2 --cpu-offloading-num-layers 2 --eval-micro-batch-size 2"),
    "llama-upcycling": Command(f"{LLAMA} --moe-use-upcycling --save /x --save-interval 3"),
    "llama-msc": Command(f"{LLAMA} --disable-msc --enable-msc"),
    "llama-old-decay": Command(f"{LLAMA} --no-weight-decay-cond-type apply_wd_to_qk_layernorm"),
    "llama-megatron-fsdp": Command(
        f"{LLAMA} --use-megatron-fsdp --ckpt-format fsdp_dtensor --use-nccl-ub "
        "--data-parallel-sharding-strategy optim_grads_params --no-gradient-accumulation-fusion",
        environment=UNCONNECTED,
    ),
    "llama-torch-fsdp": Command(
        f"{LLAMA} --use-torch-fsdp2 --no-gradient-accumulation-fusion", environment=UNCONNECTED
    ),
    "experts": Command(f"{EXPERTS} --expert-model-parallel-size 4"),
    "experts-tensor": Command(
        f"{EXPERTS} --expert-model-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel "
        "--expert-tensor-parallel-size 1"
    ),
    "experts-capacity": Command(
        f"{EXPERTS} --moe-layer-freq ([0]*2+[1]*30) --moe-router-load-balancing-type seq_aux_loss "
        "--moe-expert-capacity-factor -1"
    ),
    "experts-two-losses": Command(
        f"{EXPERTS} --moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 1e-2 1e-3 "
        "--moe-shared-expert-intermediate-size 4096"
    ),
    "experts-recompute": Command(f"{EXPERTS} --moe-layer-recompute"),
    "latent": Command(f"{LATENT} --expert-model-parallel-size 4 --mtp-num-layers 1"),
    "latent-layout": Command(
        f"{LATENT} --expert-model-parallel-size 2 --mtp-num-layers 1 {_PIPELINE} 4 "
        "--pipeline-model-parallel-layout Et*3|(ttt|)*4(tt|)*6mL",
        16,
    ),
}

# Command lines that the real code refuses; ours must say so, too: name -> (command, code).
REFUSED: dict[str, tuple[Command, str]] = {
    "tensor-3": (Command(f"{GPT} --tensor-model-parallel-size 3"), "S100"),
    "batch": (Command(f"{GPT} --global-batch-size 24"), "S101"),
    "layers": (Command(f"{GPT} {_PIPELINE} 5", 10), "S102"),
    "no-overlap": (
        Command(f"{GPT} {_PIPELINE} 2 --num-layers-per-virtual-pipeline-stage 6 --no-overlap-p2p-communication"),
        "S103",
    ),
    "positions": (Command(GPT.replace("embeddings 1024", "embeddings 512")), "S104"),
    "context-3": (Command(f"{GPT} --context-parallel-size 3", 9), "S104"),
    "both-16": (Command(f"{GPT} --bf16 --fp16"), "S105"),
    "experts-divide": (Command(f"{EXPERTS} --expert-model-parallel-size 3", 9), "S107"),
    "selective-method": (
        Command(f"{GPT} --recompute-granularity selective --recompute-method uniform"),
        "S108",
    ),
    "gather-alone": (Command(f"{GPT} --overlap-param-gather"), "S109"),
    "offload-alone": (Command(f"{GPT} --optimizer-cpu-offload"), "S109"),
    "fsdp2-fusion": (
        Command(f"{GPT} --use-torch-fsdp2 --untie-embeddings-and-output-weights", environment=UNCONNECTED),
        "S110",
    ),
    "connections": (Command(f"{GPT} --tensor-model-parallel-size 2", environment=UNCONNECTED), "S111"),
    "two-units": (Command(f"{GPT} --train-iters 10 --train-samples 10"), "S112"),
    "two-warmups": (
        Command(f"{GPT} --train-iters 10 --lr-warmup-iters 2 --lr-warmup-fraction 0.1"),
        "S112",
    ),
    "no-positions": (Command(GPT.replace("--max-position-embeddings 1024", "")), "S113"),
    "floor": (Command(f"{GPT} --lr 1e-4 --min-lr 1e-3"), "S114"),
    "two-sources": (Command(f"{GPT} --mock-data --data-path x"), "S115"),
    "two-graphs": (Command(f"{GPT} --enable-cuda-graph --external-cuda-graph"), "S116"),
    "retired": (Command(f"{GPT} --batch-size 4"), "S118"),
    "no-interval": (Command(f"{GPT} --save /x"), "S119"),
    "no-position-kind": (Command(f"{GPT} --no-position-embedding"), "S121"),
    "overlap-tp1": (Command(f"{GPT} --tp-comm-overlap"), "S123"),
    "int-exponent": (Command(f"{GPT} --train-iters 1e5"), "R015"),
    "choice": (Command(f"{GPT} --lr-decay-style cosin"), "R016"),
    "missing": (Command(f"{GPT} --lr"), "R017"),
    "minus-exponent": (Command(f"{GPT} --lr -1e-5"), "R017"),
    "flag-value": (Command(f"{GPT} --bf16=true"), "R018"),
    "stray": (Command(f"{GPT} --bf16 true"), "R019"),
    "separator": (Command(f"{GPT} --"), "R019"),
    "abbreviated": (Command(f"{GPT} --tensor-model-parallel 2"), "R011"),
    "unknown": (Command(f"{GPT} --something-else 2"), "R010"),
    "removed": (Command(f"{GPT} --use-legacy-models"), "R012"),
    "added-later": (Command(f"{GPT} --freeze-all-layers"), "R013"),
    "renamed": (Command(f"{GPT} --muon-use-nesterov"), "R014"),
}
