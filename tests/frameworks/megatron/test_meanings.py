"""Values that mean "none" or "no change", however they are written."""

from __future__ import annotations

from typing import Any

import pytest

from translator import api
from translator.errors import SourceError
from translator.ledger import Entry
from translator.reading import ReadOptions
from translator.source import Source

RUN = """--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 512 --max-position-embeddings 512
--vocab-size 1024 --lr 1e-3 --train-iters 10 --bf16 --micro-batch-size 1 --global-batch-size 8 """
LATENT = """--multi-latent-attention --kv-lora-rank 64 --qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 32
--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --num-experts 8
--moe-router-topk 2 --moe-ffn-hidden-size 128 --moe-grouped-gemm --qk-layernorm """


def _convert(options: str, to: str = "torchtitan@0.2.2") -> Any:
    source = Source("run.args", RUN + options)
    return api.convert(source, to, framework="megatron@0.18.0", options=ReadOptions(world_size=8))


@pytest.mark.parametrize("option", ["save", "load", "tensorboard-dir", "tokenizer-model", "wandb-project"])
@pytest.mark.parametrize("to", ["torchtitan@0.2.2", "torchtitan@0.3.0", "megatron@0.18.0", "megatron@0.16.0"])
def test_an_empty_name_is_none(option: str, to: str) -> None:
    done = _convert(f"--{option} '' --save-interval 5", to)
    assert [finding for finding in done.findings if finding.code == "L290"] == []
    assert done.back.flat["checkpoint.save"] is None


@pytest.mark.parametrize("bound", ["inf", "0", "0.0"])
def test_a_bound_that_clips_nothing_is_no_clipping(bound: str) -> None:
    done = _convert(f"--clip-grad {bound}")
    assert done.source.flat["optimizer.clip_grad_norm"] == 0
    assert done.sink.values["training.max_norm"] >= 1e9
    assert [finding for finding in done.findings if finding.code == "L290"] == []


@pytest.mark.parametrize("to", ["torchtitan@0.2.2", "megatron@0.12.0", "megatron@0.18.0"])
def test_yarn_by_a_factor_of_one_is_no_yarn(to: str) -> None:
    done = _convert(f"{LATENT} --rope-type yarn --rotary-scaling-factor 1.0 --mscale 1.0 --mscale-all-dim 1.0", to)
    assert done.source.flat["model.rope.scaling"] == "none"
    options = ("--rope-type", "--rotary-scaling-factor", "--mscale", "--mscale-all-dim")
    lost = [line.option for line in done.ledger if line.option in options and line.entry.is_loss]
    assert lost == []


def test_yarn_that_stretches_is_told_apart() -> None:
    done = _convert(f"{LATENT} --rope-type yarn --rotary-scaling-factor 40")
    assert done.source.flat["model.rope.scaling"] == "yarn"


@pytest.mark.parametrize(
    ("option", "entry"), [("", Entry.UNSUPPORTED), ("--no-check-for-nan-in-loss-and-grad", Entry.DEFAULT)]
)
def test_what_is_off_is_not_lost_where_it_does_not_exist(option: str, entry: Entry) -> None:
    done = _convert(option)
    name = option or "check_for_nan_in_loss_and_grad"
    line = next(line for line in done.ledger if line.option == name)
    assert line.entry is entry


@pytest.mark.parametrize(("over", "launches"), [("--node_rank", 1), ("--nnodes", 3)])
def test_a_loop_over_nodes_is_one_launch(over: str, launches: int) -> None:
    command = f"torchrun --nproc_per_node 8 {over} $i pretrain_gpt.py {RUN.replace(chr(10), ' ')}"
    text = f'for i in 1 2 3; do\n  ssh host$i "cd /w && {command}" &\ndone\nwait\n'
    done = api.convert(Source("run.sh", text), "torchtitan@0.2.2")
    several = [finding for finding in done.findings if finding.code == "R023"]
    assert len(several) == (launches > 1)


@pytest.mark.parametrize(
    "options",
    [
        "--lr-warmup-iters 10",
        "--lr-warmup-fraction 1.5",
        "--lr-warmup-iters 6 --lr-decay-iters 5",
        "--lr-warmup-init 1 --lr-warmup-iters 2",
        "--lr-decay-style WSD",
    ],
)
def test_a_schedule_that_the_scheduler_refuses_is_said(options: str) -> None:
    done = _convert(options)
    assert [finding.code for finding in done.findings if finding.code == "S114"] == ["S114"]


@pytest.mark.parametrize("options", ["--lr-warmup-iters 9", "--lr-warmup-fraction 0.5", "--lr-warmup-iters 0"])
def test_a_schedule_that_runs_is_not_refused(options: str) -> None:
    assert [finding for finding in _convert(options).findings if finding.code == "S114"] == []


def test_a_batch_that_does_not_divide_is_said_of_training() -> None:
    done = _convert("--global-batch-size 12")
    said = [finding.message for finding in done.findings if finding.code == "S101"]
    assert len(said) == 1
    assert said[0].startswith("global batch (12)")


@pytest.mark.parametrize("option", ["--lr inf", "--adam-beta1 1.5", "--weight-decay -0.1", "--adam-eps -1"])
def test_numbers_that_train_nothing_are_refused(option: str) -> None:
    with pytest.raises(SourceError, match=option.split(maxsplit=1)[0]):
        _convert(option)


def test_names_that_only_share_their_dashes_are_not_offered() -> None:
    said = next(f for f in _convert("--gbs 8 --zero-stage 1").findings if f.code == "R010")
    assert said.fix == "remove it, unless the program adds it to the parser"


@pytest.mark.parametrize(
    ("options", "recipe", "note"),
    [
        ("--fp8-format e4m3 --fp8-recipe tensorwise", "rowwise", "e4m3 for gradients"),
        ("--fp8-format hybrid --fp8-recipe delayed", "tensorwise", "per tensor at each step"),
    ],
)
def test_the_note_tells_of_the_recipe_that_is_written(options: str, recipe: str, note: str) -> None:
    done = _convert(options)
    assert done.sink.values["quantize.linear.float8.recipe_name"] == recipe
    assert note in next(line.note for line in done.ledger if line.option == "--fp8-recipe")


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("pretrain_t5.py", "T5"),
        ("/m/pretrain_bert.py", "BERT"),
        ("examples/multimodal/train_vlm.py", "vision-language"),
    ],
)
def test_another_kind_of_model_is_called_so(program: str, kind: str) -> None:
    text = f"torchrun --nproc_per_node 8 {program} {RUN.replace(chr(10), ' ')}\n"
    done = api.convert(Source("run.sh", text), "torchtitan@0.2.2")
    assert kind in next(finding.message for finding in done.findings if finding.code == "R038")


@pytest.mark.parametrize("program", ["pretrain_gpt.py", "pretrain_mamba.py", "train_verdict.py"])
def test_a_decoder_is_not_taken_for_another_kind(program: str) -> None:
    text = f"torchrun --nproc_per_node 8 {program} {RUN.replace(chr(10), ' ')}\n"
    assert [f for f in api.convert(Source("run.sh", text), "torchtitan@0.2.2").findings if f.code == "R038"] == []


def test_the_layers_of_a_decoder_beside_an_encoder_are_lost() -> None:
    done = _convert("--decoder-num-layers 6 --decoder-seq-length 128")
    lines = {line.option: line for line in done.ledger}
    for option in ("--decoder-num-layers", "--decoder-seq-length"):
        assert lines[option].entry is Entry.UNSUPPORTED
        assert lines[option].alters_training


def test_a_floor_that_is_held_is_said_of_the_schedule() -> None:
    done = _convert("--lr-decay-style cosine --lr-decay-iters 5 --min-lr 1e-4")
    line = next(line for line in done.ledger if line.option == "--lr-decay-iters")
    assert "holds the floor from step 6 on" in line.note or "holding the floor" in line.note


def test_no_training_is_not_one_step() -> None:
    line = next(line for line in _convert("--train-iters 0").ledger if line.option == "--train-iters")
    assert line.entry is Entry.APPROXIMATED


STEPWISE = "--step-batch-size-schedule '0:8 1B:16' --eval-global-batch-size 64 --eval-iters 10 --eval-interval 5"


@pytest.mark.parametrize("to", ["megatron@0.19.0", "torchtitan@0.2.2", "torchtitan@0.3.0"])
@pytest.mark.parametrize("more", ["", "--pipeline-model-parallel-size 2 --num-layers 4"])
def test_a_batch_that_grows_is_not_one_micro_batch(to: str, more: str) -> None:
    source = Source("run.args", RUN.replace("--global-batch-size 8", "") + f"{STEPWISE} {more}")
    done = api.convert(source, to, framework="megatron@0.18.0", options=ReadOptions(world_size=8))
    assert done.source.flat["batch.global_batch"] is None
    assert [finding for finding in done.findings if finding.code in ("L290", "S101")] == []
    if to.startswith("megatron"):
        assert done.sink.values["eval_iters"] == 10
        assert "global_batch_size" not in done.sink.values
    else:
        assert "batch.global_batch" in done.sink.needs


@pytest.mark.parametrize(("world", "nodes", "gpus"), [(64, 8, 8), (8, 1, 8), (4, 1, 4), (16, 2, 8)])
def test_a_world_size_given_by_hand_takes_the_nodes_along(world: int, nodes: int, gpus: int) -> None:
    text = f"torchrun --nproc_per_node 8 pretrain_gpt.py {RUN.replace(chr(10), ' ')} --global-batch-size 64\n"
    for to in ("torchtitan@0.2.2", "megatron@0.16.0"):
        done = api.convert(Source("run.sh", text), to, options=ReadOptions(world_size=world))
        assert (done.back.flat["launch.nodes"], done.back.flat["launch.gpus_per_node"]) == (nodes, gpus)
        assert [finding for finding in done.findings if finding.code == "L290"] == []


def test_sequence_parallelism_without_a_known_tensor_degree_is_admitted() -> None:
    text = f"torchrun --nproc_per_node 8 pretrain_gpt.py {RUN.replace(chr(10), ' ')} --sequence-parallel "
    done = api.convert(Source("run.sh", f"{text} --tensor-model-parallel-size $TP\n"), "megatron@0.16.0")
    assert [finding for finding in done.findings if finding.code == "L290"] == []
