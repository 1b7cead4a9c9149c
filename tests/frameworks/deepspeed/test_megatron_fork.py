"""Scripts of Megatron-DeepSpeed: arguments and JSON are read as one configuration."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from typing import Any

import pytest

from translator import api
from translator.conversion import Conversion
from translator.errors import UsageError
from translator.findings import Finding, Level
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.megatron_fork.leaves import partition
from translator.frameworks.deepspeed.megatron_fork.table import table
from translator.ledger import Entry
from translator.native import Native, Origin
from translator.reading import Reading, ReadOptions
from translator.source import Source
from translator.spec import leaves

MODEL = (
    "--num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
    "--micro-batch-size 2 --global-batch-size 64 --train-iters 1000 --lr 3e-4 --min-lr 3e-5 --lr-warmup-iters 100 "
    "--lr-decay-style cosine --bf16"
)
CONFIG: dict[str, Any] = {
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 2,
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 1},
}
TARGETS = ("megatron", "megatron@0.12.0", "torchtitan", "torchtitan@0.3.0", "deepspeed", "deepspeed@0.19.8", "spec")


def script(more: str = "", *, model: str = MODEL, config: dict[str, Any] | None = None, gpus: int = 8) -> str:
    """A launch script that writes its JSON."""
    return (
        f"#!/bin/bash\nCONFIG=ds.json\ncat > $CONFIG <<EOT\n{json.dumps(CONFIG if config is None else config)}\nEOT\n"
        f"deepspeed --num_nodes 1 --num_gpus {gpus} pretrain_gpt.py {model} {more} "
        f"--deepspeed --deepspeed_config $CONFIG\n"
    )


def read(text: str, *, siblings: dict[str, str] | None = None, world: int | None = None, **more: Any) -> Reading:
    source = Source("train.sh", text, siblings=siblings or {})
    return api.read(source, options=ReadOptions(world_size=world, **more))


def codes(reading: Reading, level: Level | None = None) -> set[str]:
    return {finding.code for finding in reading.findings if level is None or finding.level is level}


def said(reading: Reading, code: str) -> Finding:
    found = [finding for finding in reading.findings if finding.code == code]
    assert found, codes(reading)
    return found[0]


def merged(**more: Any) -> dict[str, Any]:
    return {**CONFIG, **more}


# -- who reads it


def test_the_script_is_read_as_both() -> None:
    reading = read(script())
    assert reading.framework == "deepspeed"
    assert "deepspeedai/Megatron-DeepSpeed" in said(reading, "R152").message
    assert codes(reading, Level.ERROR) == set()


def test_a_script_without_deepspeed_stays_megatrons() -> None:
    assert read(f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}\n").framework == "megatron"


def test_a_trainer_with_deepspeed_stays_what_it_was() -> None:
    text = "deepspeed --num_gpus 8 train.py --deepspeed ds.json --per_device_train_batch_size 2 --learning_rate 1e-4\n"
    reading = read(text, siblings={"ds.json": json.dumps(CONFIG)})
    assert (reading.framework, "R152" in codes(reading)) == ("deepspeed", False)


def test_a_commented_flag_is_none() -> None:
    text = f"# add --deepspeed --deepspeed_config ds.json\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}\n"
    assert read(text).framework == "megatron"


def test_the_config_without_the_switch_does_nothing() -> None:
    reading = read(script().replace("--deepspeed --deepspeed_config", "--deepspeed_config"))
    assert "add --deepspeed" in said(reading, "S227").fix


@pytest.mark.parametrize("more", ["", "--deepspeed_config ds.json"])
def test_a_flag_that_does_not_reach_the_program_is_missed(more: str) -> None:
    text = f'ENGINE="--deepspeed {more}"\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} $ENGIN\n'
    reading = read(text)
    assert "--from megatron" in said(reading, "S227").fix
    assert (reading.flat["model.layers"], reading.flat["parallel.data.sharding"]) == (16, None)


# -- what the script decides


def test_the_model_in_the_forks_words() -> None:
    more = (
        "--num-key-value-heads 4 --use-rotary-position-embeddings --rotary-position-embeddings-theta 500000 --swiglu "
        "--normalization rmsnorm --disable-bias-linear --untie-embeddings-and-output-weights --use-flash-attn-v2 "
        "--layernorm-epsilon 1e-6"
    )
    flat = read(script(more)).flat
    expected = {"kv_heads": 4, "heads": 16, "positions": "rope", "rope_base": 500000, "norm": "rmsnorm", "gated": True}
    expected |= {"bias_linear": False, "bias_qkv": False, "tied_embeddings": False, "attention_kernel": "flash"}
    # A gated feed-forward keeps its number of parameters: two thirds, in multiples of 64 (arguments.py:290).
    expected |= {"norm_eps": 1e-6, "ffn": 2688, "family": "llama", "head_dim": 64}
    assert {name: flat[f"model.{name}"] for name in expected} == expected


def test_defaults_are_the_forks() -> None:
    plain = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
    flat = read(script(model=f"{plain} --micro-batch-size 2 --train-iters 10 --lr 1e-3 --bf16")).flat
    found = {leaf: flat[leaf] for leaf in ("model.hidden_dropout", "model.positions", "model.norm", "schedule.decay")}
    assert found == {
        "model.hidden_dropout": 0.1,
        "model.positions": "learned",
        "model.norm": "layernorm",
        "schedule.decay": "linear",
    }
    assert flat["optimizer.weight_decay"] == 0.01
    assert flat["batch.global_batch"] == 16  # one micro batch for each of 8 ranks
    assert flat["logging.interval"] == 100


def test_degrees_and_ranks() -> None:
    reading = read(script("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"))
    flat = reading.flat
    assert (flat["parallel.tensor"], flat["parallel.pipeline.degree"], flat["parallel.data.degree"]) == (2, 2, 2)
    assert (flat["parallel.pipeline.schedule"], flat["parallel.pipeline.layer_split"]) == ("1f1b", [8, 8])
    assert flat["batch.accumulation"] == 16
    assert codes(reading, Level.ERROR) == set()


def test_sequence_parallel_ranks_share_a_sample() -> None:
    more = "--ds-sequence-parallel-size 4 --no-pipeline-parallel --zero-stage 3"
    reading = read(script(more, config=merged(zero_optimization={"stage": 3})))
    flat = reading.flat
    assert (flat["parallel.context"], flat["parallel.context_method"]) == (4, "all_to_all")
    assert (flat["parallel.data.degree"], flat["parallel.data.sharding"]) == (2, "full")
    assert codes(reading, Level.ERROR) == set()


def test_the_forks_experts() -> None:
    more = (
        "--num-experts 32 --topk 1 --expert-interval 2 --moe-loss-coeff 0.01 --moe-expert-parallel-size 8 "
        "--moe-train-capacity-factor 1.25 --no-pipeline-parallel --create-moe-param-group"
    )
    flat = read(script(more)).flat
    moe = {name: flat[f"model.moe.{name}"] for name in ("experts", "top_k", "aux_loss_coefficient", "capacity_factor")}
    assert moe == {"experts": 32, "top_k": 1, "aux_loss_coefficient": [0.01], "capacity_factor": 1.25}
    assert flat["model.moe.dense_layers"] == list(range(0, 16, 2))
    assert (flat["model.moe.router_normalize"], flat["model.moe.router_dtype"]) == (False, "fp32")
    assert (flat["parallel.expert"], flat["parallel.expert_tensor"]) == (8, 1)


def test_one_expert_is_a_dense_model() -> None:
    assert read(script("--num-experts 1 --moe-expert-parallel-size 1")).flat["model.moe.experts"] is None


def test_a_schedule_in_tokens_runs_one_step_behind() -> None:
    model = MODEL.replace("--train-iters 1000", "--train-samples 100000 --train-tokens 100000000")
    model = model.replace("--lr-warmup-iters 100", "--lr-warmup-tokens 1000000 --lr-decay-tokens 90000000")
    flat = read(script(model=model)).flat
    step = 64 * 2048
    assert flat["schedule.unit"] == "tokens"
    assert flat["schedule.total"] == -(-100_000_000 // 2048) * 2048  # whole sequences
    assert (flat["schedule.warmup"], flat["schedule.warmup_offset"]) == (1e6, -1)
    assert (flat["schedule.decay_start"], flat["schedule.decay_length"]) == (1e6 + step, 89e6)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--checkpoint-activations --deepspeed-activation-checkpointing", ("full", "uniform", 1)),
        ("--checkpoint-activations --checkpoint-num-layers 4", ("full", "uniform", 4)),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2", ("full", "uniform", 2)),
        ("--recompute-granularity full --recompute-method block", ("none", None, None)),
        ("--recompute-activations", ("selective", "modules", None)),
        ("--deepspeed-activation-checkpointing", ("none", None, None)),
        (
            "--no-pipeline-parallel --recompute-granularity full --recompute-method block --recompute-num-layers 3",
            ("full", "block", 3),
        ),
        (
            "--no-pipeline-parallel --recompute-granularity full --deepspeed-activation-checkpointing",
            ("full", "uniform", 1),
        ),
    ],
)
def test_recomputation_with_and_without_the_pipeline(more: str, expected: tuple[Any, ...]) -> None:
    flat = read(script(more)).flat
    assert tuple(flat[f"recompute.{name}"] for name in ("mode", "method", "layers")) == expected


# -- what the JSON decides


def test_the_engine_follows_the_json() -> None:
    zero = {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 1000000, "offload_optimizer": {"device": "cpu"}}
    config = merged(
        zero_optimization=zero,
        gradient_clipping=0.5,
        communication_data_type="fp32",
        data_types={"grad_accum_dtype": "fp32"},
    )
    reading = read(script("--no-pipeline-parallel --cpu-optimizer --clip-grad 0.5", config=config))
    flat = reading.flat
    assert codes(reading, Level.ERROR) == set()
    assert (flat["parallel.data.sharding"], flat["parallel.data.shard"]) == ("optimizer_gradients", 8)
    assert (flat["parallel.data.overlap_gradient_reduction"], flat["parallel.data.bucket_elements"]) == (True, 1000000)
    assert (flat["optimizer.offload"], flat["optimizer.clip_grad_norm"]) == (True, 0.5)
    assert (flat["precision.grad_accumulate"], flat["precision.grad_reduce"]) == ("fp32", "fp32")


def test_the_json_scales_the_loss() -> None:
    config = merged(
        fp16={"enabled": True, "initial_scale_power": 11, "loss_scale_window": 500}, bf16={"enabled": False}
    )
    model = MODEL.replace("--bf16", "--fp16 --initial-loss-scale 65536")
    reading = read(script(model=model, config=config))
    flat = reading.flat
    assert (flat["precision.initial_loss_scale"], flat["precision.loss_scale_window"]) == (2048, 500)
    assert "--initial-loss-scale 65536" in said(reading, "S223").message


def test_bf16_under_the_pipeline_shards_its_states_without_zero() -> None:
    config = merged(zero_optimization={"stage": 0})
    assert read(script(config=config)).flat["parallel.data.sharding"] == "optimizer"
    assert read(script("--no-pipeline-parallel", config=config)).flat["parallel.data.sharding"] == "none"


@pytest.mark.parametrize("more", ["", "--no-pipeline-parallel"])
def test_bf16_without_zero_in_an_older_version(more: str) -> None:
    config = merged(zero_optimization={"stage": 0})
    reading = api.read(Source("train.sh", script(more, config=config)), framework="deepspeed@0.16.9")
    assert reading.flat["parallel.data.sharding"] == "optimizer"
    assert reading.flat["precision.grad_accumulate"] == "fp32"
    config["data_types"] = {"grad_accum_dtype": "bf16"}
    reading = api.read(Source("train.sh", script(more, config=config)), framework="deepspeed@0.16.9")
    assert ("S209" in codes(reading, Level.ERROR)) is bool(more)


def test_leaves_know_where_they_come_from() -> None:
    origins = read(script()).origins
    found = {
        leaf: origins[leaf].option for leaf in ("model.layers", "parallel.data.sharding", "optimizer.clip_grad_norm")
    }
    assert found == {
        "model.layers": "--num-layers",
        "parallel.data.sharding": "zero_optimization.stage",
        "optimizer.clip_grad_norm": "gradient_clipping",
    }
    assert origins["model.hidden_dropout"].origin is Origin.DEFAULT


# -- where the JSON is


def launch(config: str) -> str:
    return f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config {config}\n"


def test_the_json_lies_beside_the_script() -> None:
    reading = read(launch("conf/ds.json"), siblings={"conf/ds.json": json.dumps(CONFIG)})
    assert reading.flat["parallel.data.sharding"] == "optimizer"
    assert "R144" not in codes(reading)


def test_only_the_folder_of_the_json_is_unknown() -> None:
    reading = read(launch("$SOMEWHERE_ELSE/$(hostname)/ds.json"), siblings={"ds.json": json.dumps(CONFIG)})
    assert reading.flat["parallel.data.sharding"] == "optimizer"


def test_a_template_is_filled_in() -> None:
    template = json.dumps(CONFIG).replace('"stage": 1', '"stage": ZERO_STAGE').replace("64", "GBSIZE")
    text = (
        'zero=1\ngbs=64\nout="ds_zero${zero}.json"\nsed "s/GBSIZE/${gbs}/" template.json | sed "s/ZERO_STAGE/${zero}/" '
        "> ${out}\n"
    )
    reading = read(text + launch("${out}"), siblings={"template.json": template})
    assert reading.flat["parallel.data.sharding"] == "optimizer"
    assert codes(reading, Level.ERROR) == set()


@pytest.mark.parametrize("target", TARGETS)
def test_a_json_that_is_missing_is_named_and_left_open(target: str) -> None:
    done = api.convert(Source("train.sh", launch("ds_prod.json")), target)
    finding = next(finding for finding in done.findings if finding.code == "R144")
    assert "ds_prod.json" in finding.message
    line = next(line for line in done.ledger if line.option == "--deepspeed_config")
    assert line.entry in ({Entry.NEEDS_INPUT, Entry.IRRELEVANT} if target == "spec" else {Entry.NEEDS_INPUT})
    assert done.source.flat["parallel.data.sharding"] is None
    assert done.source.flat["optimizer.clip_grad_norm"] is None
    # What must agree with the script does.
    assert done.source.flat["precision.compute"] == "bf16"
    assert not [finding for finding in done.findings if finding.code in {"L290", "S200"}]


def test_a_script_that_names_no_json_is_refused() -> None:
    reading = read(f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --deepspeed\n")
    assert "--deepspeed_config" in said(reading, "R144").message


# -- where both disagree

BAD = [
    ("S215", Level.ERROR, "", merged(train_micro_batch_size_per_gpu=1)),
    ("S215", Level.WARNING, "", merged(train_batch_size=128)),
    ("S219", Level.ERROR, "", merged(bf16={"enabled": False}, fp16={"enabled": True})),
    ("S219", Level.ERROR, "", {key: value for key, value in CONFIG.items() if key != "bf16"}),
    ("S223", Level.WARNING, "", {key: value for key, value in CONFIG.items() if key != "gradient_clipping"}),
    ("S223", Level.WARNING, "--clip-grad 0.3", CONFIG),
    ("S223", Level.WARNING, "--zero-stage 0", CONFIG),
    ("S223", Level.WARNING, "--no-pipeline-parallel", merged(zero_optimization={"stage": 3})),
    ("S226", Level.WARNING, "", merged(optimizer={"type": "Adam", "params": {"lr": 0.1}})),
    ("S226", Level.WARNING, "", merged(scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 10}})),
    ("S227", Level.ERROR, "", merged(zero_optimization={"stage": 2})),
    ("S227", Level.ERROR, "--ds-sequence-parallel-size 2", CONFIG),
    ("S227", Level.ERROR, "--no-pipeline-parallel --pipeline-model-parallel-size 2", CONFIG),
    ("S227", Level.ERROR, "--tensor-model-parallel-size 3", CONFIG),
    (
        "S227",
        Level.ERROR,
        "--no-pipeline-parallel",
        merged(zero_optimization={"stage": 2, "offload_optimizer": {"device": "cpu"}}),
    ),
    ("S227", Level.WARNING, "--cpu-optimizer", CONFIG),
    ("S216", Level.ERROR, "--optimizer sgd", CONFIG),
    ("S228", Level.ERROR, "--train-samples 100", CONFIG),
    ("S228", Level.ERROR, "--rampup-batch-size 8 8 100", CONFIG),
    ("S228", Level.ERROR, "--no-pipeline-parallel --checkpoint-activations", CONFIG),
    ("S244", Level.WARNING, "--deepspeed-activation-checkpointing", CONFIG),
    ("S244", Level.WARNING, "--recompute-granularity full --recompute-method block", CONFIG),
]


@pytest.mark.parametrize(("code", "level", "more", "config"), BAD)
def test_what_disagrees_is_said(code: str, level: Level, more: str, config: dict[str, Any]) -> None:
    reading = read(script(more, config=config))
    finding = next(finding for finding in reading.findings if (finding.code, finding.level) == (code, level))
    assert finding.fix
    assert code not in codes(read(script()))


def test_the_batch_in_force_is_the_scripts() -> None:
    assert read(script(config=merged(train_batch_size=128))).flat["batch.global_batch"] == 64


def test_the_optimizer_in_force_is_the_scripts() -> None:
    config = merged(optimizer={"type": "SGD", "params": {"lr": 0.5}}, scheduler={"type": "WarmupLR"})
    reading = read(script("--adam-beta2 0.95", config=config))
    flat = reading.flat
    assert (flat["optimizer.name"], flat["optimizer.lr"], flat["optimizer.beta2"]) == ("adamw", 3e-4, 0.95)
    assert (flat["optimizer.decay_scope"], flat["schedule.decay"]) == ("matrices", "cosine")
    done = api.convert(reading, "deepspeed")
    written = json.loads(done.rendered.files["ds_config.json"])
    assert written["optimizer"]["type"] == "AdamW"
    stated = [line for line in done.ledger if line.where is not None and line.option.startswith("optimizer.")]
    assert {line.entry for line in stated} == {Entry.IRRELEVANT}


# -- what comes of it


def lines_and_options(done: Conversion) -> tuple[int, int]:
    native = done.source.native
    assert native is not None
    stated = [given for given in (*native.given.values(), *native.unknown) if given.place is not None]
    return len([line for line in done.ledger if line.where is not None]), len(stated)


RICH = (
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel --checkpoint-activations "
    "--deepspeed-activation-checkpointing --zero-stage 1 --weight-decay 0.1 --clip-grad 1.0 --data-path 1 data/text "
    "--tokenizer-type GPT2BPETokenizer --vocab-file v.json --merge-file m.txt --save ckpt --save-interval 100 "
    "--load ckpt --tensorboard-dir tb --log-interval 10 --eval-iters 2 --eval-interval 50 --split 949,50,1 --num-kv 3"
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("world", [None, 8])
def test_every_option_has_a_line_and_every_loss_is_admitted(target: str, world: int | None) -> None:
    text = script(RICH, config=merged(wall_clock_breakdown=True, steps_per_print=10))
    if world is None:
        text = text.replace("--num_nodes 1 --num_gpus 8", "")
    done = api.convert(Source("train.sh", text), target, options=ReadOptions(world_size=world))
    lines, options = lines_and_options(done)
    assert lines == options
    assert not [finding for finding in done.findings if finding.code == "L290"]


def test_megatron_gets_the_same_run() -> None:
    done = api.convert(Source("train.sh", script(RICH.replace(" --num-kv 3", ""))), "megatron")
    lost = {line.option for line in done.ledger if line.alters_training}
    assert lost == set()
    differ = {leaf for leaf, value in done.source.flat.items() if value is not None and done.back.flat[leaf] != value}
    assert not [leaf for leaf in differ if leaf.startswith(("batch.", "schedule.", "optimizer."))]


def test_a_json_keeps_what_it_says() -> None:
    config = merged(
        wall_clock_breakdown=True, prescale_gradients=False, zero_optimization={"stage": 1, "overlap_comm": True}
    )
    done = api.convert(Source("train.sh", script(config=config)), "deepspeed")
    written = json.loads(done.rendered.files["ds_config.json"])
    assert written["wall_clock_breakdown"] is True
    assert written["zero_optimization"]["stage"] == 1
    assert written["train_batch_size"] == 64
    assert "training_args.yaml" in done.rendered.files


def test_an_argument_of_no_fork_is_named_with_its_neighbours() -> None:
    finding = said(read(script("--num-key-value-head 4")), "R143")
    assert finding.option == "--num-key-value-head"
    assert "--num-key-value-heads" in finding.fix


def test_a_value_that_is_not_known_stays_open() -> None:
    text = script().replace("--num-layers 16", "--num-layers $LAYERS").replace("CONFIG=", "LAYERS=$(layers)\nCONFIG=")
    reading = read(text)
    assert reading.flat["model.layers"] is None
    assert reading.origins["model.layers"].origin is Origin.UNKNOWN
    assert read(text, variables={"LAYERS": "16"}).framework == "deepspeed"


def test_a_model_by_name_is_refused() -> None:
    with pytest.raises(UsageError, match="--model"):
        read(script(), model="llama3_8b")


# -- the other fork

BLOOM = (
    "--pp-partition-method 'type:transformer|embedding' --num-layers 70 --hidden-size 14336 --num-attention-heads 112 "
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --rampup-batch-size 192 16 9765625 "
    "--global-batch-size 2048 --train-samples 220000000 --tokenizer-type PretrainedFromHF --tokenizer-name-or-path tok "
    "--embed-layernorm --bf16 --position-embedding-type alibi --pad-vocab-size-to 250880 --lr 6e-5 --min-lr 6e-6 "
    "--lr-decay-style cosine --lr-decay-samples 200000000 --lr-warmup-samples 183105 --checkpoint-activations "
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 12 --deepspeed-activation-checkpointing"
)
BLOOM_CONFIG = merged(train_batch_size=2048, zero_optimization={"stage": 0})


def test_bigsciences_fork_has_its_own_arguments() -> None:
    reading = read(script(model=BLOOM, config=BLOOM_CONFIG, gpus=384))
    assert "bigscience-workshop" in said(reading, "R152").message
    flat = reading.flat
    assert codes(reading, Level.ERROR) == set()
    # Embedding and head count as a layer each.
    assert flat["parallel.pipeline.layer_split"] == [5, *[6] * 10, 5]
    assert (flat["model.vocab_padded"], flat["batch.ramp_up"]) == (250880, [192, 16, 9765625])
    assert (flat["data.tokenizer"], flat["data.tokenizer_type"]) == ("tok", "HuggingFaceTokenizer")
    assert flat["model.positions"] is None


def test_alibi_is_said_to_be_lost() -> None:
    done = api.convert(Source("train.sh", script(model=BLOOM, config=BLOOM_CONFIG, gpus=384)), "megatron")
    line = next(line for line in done.ledger if line.option == "--position-embedding-type")
    assert (line.entry, line.alters_training) == (Entry.UNSUPPORTED, True)
    assert "ALiBi" in line.note


def test_geglu_is_a_gated_gelu() -> None:
    more = f"{BLOOM.replace('alibi', 'rotary')} --glu-activation geglu --no-bias-gelu-fusion"
    flat = read(script(model=more, config=BLOOM_CONFIG, gpus=384)).flat
    assert (flat["model.gated"], flat["model.activation"], flat["model.positions"]) == (True, "gelu", "rope")


def test_precision_must_agree_there() -> None:
    model = BLOOM.replace("--bf16", "")
    assert said(read(script(model=model, config=BLOOM_CONFIG, gpus=384)), "S219").level is Level.ERROR


def test_a_pyramid_of_experts_is_said_to_be_lost() -> None:
    done = api.convert(
        Source("train.sh", script("--num-experts 32 32 32 32 64 64 64 64 --no-pipeline-parallel")), "megatron"
    )
    line = next(line for line in done.ledger if line.option == "--num-experts")
    assert (line.entry, done.source.flat["model.moe.experts"]) == (Entry.UNSUPPORTED, 64)


# -- tables and stages


@pytest.mark.parametrize("version", ["0.16.9", "0.19.2", "0.19.8"])
def test_every_argument_and_every_leaf_has_its_row(version: str) -> None:
    found = table(Native("deepspeed", version, values={forks.FORK: forks.DEEPSPEEDAI}))
    addresses = {forks.address(dest) for dest in forks.destinations()}
    assert addresses <= found.row_of_option.keys()
    assert set(leaves()) == set(found.row_of_field)
    notes = [row.note for row in found.rows if not row.fields]
    assert all(notes)


def test_spellings_and_defaults_of_the_forks_arguments() -> None:
    from translator.frameworks.deepspeed.framework import FRAMEWORK

    assert FRAMEWORK.spelling("@fork.rope_theta", "0.19.2") == "--rotary-position-embeddings-theta"
    assert FRAMEWORK.default("@fork.hidden_dropout", "0.19.2") == 0.1


@pytest.mark.parametrize(("layers", "stages"), [(5, 2), (7, 3), (10, 4), (9, 5)])
def test_stages_differ_as_little_as_they_can(layers: int, stages: int) -> None:
    found = partition(layers, stages, "type:transformer")
    assert found is not None
    assert sum(found) == layers
    spreads = []
    for cuts in combinations(range(1, layers), stages - 1):
        parts = [end - start for start, end in pairwise((0, *cuts, layers))]
        spreads.append(max(parts) - min(parts))
    assert max(found) - min(found) == min(spreads)


def test_other_ways_to_partition_stay_open() -> None:
    assert partition(10, 4, "parameters") is None
    assert partition(10, 4, "type:(") is None
