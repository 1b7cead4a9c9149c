"""Python configurations of torchtitan 0.3.0: what is read from their text, and what is said about it."""

from __future__ import annotations

import json
import time
from textwrap import dedent

import pytest

from translator import api
from translator.catalogue import load
from translator.errors import SourceError
from translator.findings import Level
from translator.frameworks.torchtitan import settle_python, syntax_python
from translator.ledger import Entry
from translator.native import ENVIRONMENT, NODES, WORLD_SIZE, Native
from translator.reading import ReadOptions
from translator.source import Source

HEAD = """
import os
from dataclasses import dataclass, replace
from torchtitan.components.checkpoint import CheckpointManager
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.optimizer import OptimizersContainer, ParamGroupConfig, default_adamw
from torchtitan.components.quantization import Float8LinearConverter
from torchtitan.components.validate import Validator
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC, MemoryBudgetAC, SelectiveAC
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer
"""
RUN = """
def run() -> Trainer.Config:
    spec = model_registry("8B")
    return Trainer.Config(
        model_spec=spec,
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec))),
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(local_batch_size=4, seq_len=4096, steps=100),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
    )
"""


def read(body: str, function: str | None = None, *, siblings: dict[str, str] | None = None, path: str = "run.py",
         **more: object) -> Native:  # fmt: skip
    text = dedent(HEAD) + dedent(body)
    source = Source(path, text, siblings=siblings or {})
    found = syntax_python.read_source(path, text, function=function, read_sibling=source.read_sibling, **more)  # type: ignore[arg-type]
    settle_python.settle(found, load("torchtitan", "0.3.0"))
    return found


def stated(native: Native) -> dict[str, object]:
    return {name: given.value for name, given in native.given.items() if not name.startswith("@")}


def codes(native: Native) -> list[str]:
    return [finding.code for finding in native.findings if finding.code.startswith("R")]


def config(fields: str, before: str = "") -> str:
    """A function that returns a configuration of these fields."""
    return f"def run() -> Trainer.Config:\n    {before}\n    return Trainer.Config({fields})\n"


def changed(statement: str) -> str:
    """The plain run, with a statement about its configuration ``c`` after it."""
    return f"{RUN}\ndef two() -> Trainer.Config:\n    c = run()\n    {statement}\n    return c\n"


def test_every_stated_field_at_its_place() -> None:
    native = read(RUN)
    assert stated(native) == {
        "model_spec.name": "llama3",
        "model_spec.flavor": "8B",
        "loss": "ChunkedLossWrapper",
        "loss.loss_fn": "CrossEntropyLoss",
        "loss.loss_fn.global_vocab_size": 128256,
        "optimizer": "OptimizersContainer",
        "optimizer.param_groups": [
            {
                "pattern": ".*",
                "optimizer_name": "AdamW",
                "optimizer_kwargs": {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1},
            }
        ],
        "training.local_batch_size": 4,
        "training.seq_len": 4096,
        "training.steps": 100,
        "dataloader": "HuggingFaceTextDataLoader",
        "dataloader.dataset": "c4",
    }
    place = native.given["training.seq_len"].place
    assert place is not None
    line = dedent(HEAD + RUN).splitlines()[place.line - 1]
    assert place.file == "run.py"
    assert line[place.column - 1 :].startswith("4096, steps=100")
    assert not codes(native)
    assert native.values["activation_checkpoint"] == "SelectiveAC"
    assert native.values["@model.layers"] == 32


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("c.training.steps = 7", {"training.steps": 7}),
        ("c.training = TrainingConfig(steps=7)", {"training.steps": 7, "training.seq_len": 2048}),
        ("c.activation_checkpoint = None", {"activation_checkpoint": None}),
        ("c.activation_checkpoint = FullAC.Config(debug=True)", {"activation_checkpoint": "FullAC",
                                                                  "activation_checkpoint.debug": True}),
        ("c = replace(c, training=replace(c.training, seq_len=c.training.seq_len * 2))", {"training.seq_len": 8192}),
        ("c.compile.components.append('x')", {"compile.components": ["model", "loss", "x"]}),
        ("c.validator.dataloader.num_workers = 2", {"validator.dataloader.num_workers": 2,
                                                    "validator.dataloader.dataset": "c4_validation"}),
        ("c.validator = Validator.Config(dataloader=HuggingFaceTextDataLoader.Config())",
         {"validator.dataloader.dataset": "c4_test", "validator.dataloader.infinite": True}),
        ("c.optimizer.param_groups[0].optimizer_kwargs['lr'] = 1", {"@optimizer.lr": 1}),
        ("c.model_spec = model_registry('70B', attn_backend='varlen')", {"model_spec.flavor": "70B",
                                                                          "model_spec.attn_backend": "varlen"}),
        ("c.model_spec = model_registry('8B', converters=[Float8LinearConverter.Config(filter_fqns=['lm_head'])])",
         {"model_spec.converters": [{"class": "Float8LinearConverter", "filter_fqns": ["lm_head"]}]}),
        ("if c.training.steps > 50: c.training.max_norm = 0.5", {"training.max_norm": 0.5}),
        ("c.training.steps = len(c.model_spec.model.layers)", {"training.steps": 32}),
    ],
)  # fmt: skip
def test_what_is_in_force_after_changes(statement: str, expected: dict[str, object]) -> None:
    native = read(changed(statement), "two")
    assert {name: native.values.get(name, "absent") for name in expected} == expected
    assert not codes(native)


@pytest.mark.parametrize(
    ("fields", "code", "level", "said"),
    [
        ("training=TrainingConfig(seq_length=1)", "R090", Level.ERROR, "TrainingConfig has no field seq_length"),
        ("trainig=TrainingConfig()", "R090", Level.ERROR, "training"),
        ("activation_checkpoint=FullAC.Config(memory_budget=1.0)", "R090", Level.ERROR, "FullAC.Config has no field"),
        ("training=TrainingConfig(seq_len='long')", "R096", Level.ERROR, "cannot be 'long'"),
        ("training=TrainingConfig(seq_len='4096')", "R095", Level.ERROR, "'4096'"),
        ("training=TrainingConfig(dtype='bf16')", "R097", Level.ERROR, "bfloat16"),
        ("training=TrainingConfig(seq_len=None)", "R096", Level.ERROR, "None"),
        ("training=TrainingConfig(seq_len=int(os.environ['SEQ']))", "R111", Level.WARNING, "--set NAME=value"),
        ("training=TrainingConfig(seq_len=unknown())", "R114", Level.WARNING, "unknown is not defined"),
        ("loss=5", "R096", Level.ERROR, "a configuration object"),
        ("model_spec=model_registry('8B', attn='flex')", "R090", Level.ERROR, "attn_backend"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(fields: str, code: str, level: Level, said: str) -> None:
    native = read(config(f"{fields}, dump_folder='out'"))
    found = next(finding for finding in native.findings if finding.code == code)
    assert found.level is level
    assert said in found.as_text()
    assert found.place is not None
    assert found.place.line == len(HEAD.splitlines()) + 3
    assert native.values["dump_folder"] == "out"


def test_an_open_value_is_missing_and_names_what_supplies_it() -> None:
    body = config("training=TrainingConfig(seq_len=int(os.environ['SEQ']), steps=5)")
    native = read(body)
    missing = native.given["training.seq_len"].missing
    assert missing is not None
    assert "SEQ" in missing.expression
    assert native.given["training.steps"].value == 5
    assert read(body, variables={"SEQ": "512"}).values["training.seq_len"] == 512


def test_one_open_value_in_the_parameter_groups_opens_them() -> None:
    native = read(config("optimizer=default_adamw(lr=unknown)"))
    assert native.given["optimizer.param_groups"].missing is not None


def test_which_function() -> None:
    two = RUN + "\n".join(f"def {name}() -> Trainer.Config:\n    return run()\n" for name in ("other", "_helper"))
    with pytest.raises(SourceError, match=r"2 configuration functions .*run\.py:run; it has run, other"):
        read(two)
    assert read(two, "other").given["training.steps"].value == 100
    with pytest.raises(SourceError, match=r"has no function absent .*it has: run, other"):
        read(two, "absent")
    with pytest.raises(SourceError, match="takes arguments"):
        read("def run(x) -> Trainer.Config:\n    return Trainer.Config()\n", "run")
    helper = "def number():\n    return 3\n\ndef run():\n    return Trainer.Config(dump_folder='x')\n"
    assert read(helper).given["dump_folder"].value == "x"
    with pytest.raises(SourceError, match=r"returns a int, not a Trainer\.Config"):
        read(helper, "number")


def test_modules_beside_the_file() -> None:
    siblings = {
        "parts.py": "from torchtitan.config import TrainingConfig\nSTEPS = 5\n\ndef training(n):\n"
        "    return TrainingConfig(steps=n * STEPS)\n",
        "sub/__init__.py": "from .deep import NAME\n",
        "sub/deep.py": "NAME = 'deep'\n",
    }
    body = "from parts import training\nfrom sub import NAME\n" + config("training=training(4), dump_folder=NAME")
    native = read(body, siblings=siblings)
    assert (native.values["training.steps"], native.values["dump_folder"]) == (20, "deep")
    place = native.given["training.steps"].place
    assert place is not None
    assert (place.file, place.line) == ("parts.py", 5)
    relative = "from .parts import training\n" + config("training=training(4)")
    assert read(relative, siblings=siblings).values["training.steps"] == 20
    absent = read(body, siblings={})
    assert absent.given["training.steps" if "training.steps" in absent.given else "training"].missing is not None
    assert "R112" in codes(absent)


def test_a_registry_of_torchtitans_own_is_known_by_its_folder_or_imports() -> None:
    body = RUN.replace("8B", "debugmodel")
    text = HEAD.replace("from torchtitan.models.llama3 import", "from . import")
    for path, extra in (
        ("torchtitan/models/llama3/config_registry.py", ""),
        ("copied.py", "from .model import Llama3Model\n"),
    ):
        native = syntax_python.read_source(path, text + extra + body)
        assert native.given["model_spec.name"].value == "llama3"
        assert native.given["loss.loss_fn.global_vocab_size"].value == 2048


def test_a_class_of_ones_own() -> None:
    native = read(
        "@dataclass(kw_only=True, slots=True)\nclass Mine(Trainer.Config):\n    curriculum: int = 3\n\n"
        "def run() -> Mine:\n    return Mine(curriculum=4, dump_folder='out')\n",
        "run",
    )
    assert native.values["dump_folder"] == "out"
    assert [(given.address, given.value) for given in native.unknown] == [("curriculum", 4)]
    assert codes(native) == ["R104"]


def test_hints() -> None:
    native = read("# ttx: world_size=64 nodes=8 env:NCCL_DEBUG=INFO\n" + RUN)
    assert (native.given[WORLD_SIZE].value, native.given[NODES].value) == (64, 8)
    assert native.given[ENVIRONMENT].value == {"NCCL_DEBUG": "INFO"}
    assert read("# ttx: world_size=64\n" + RUN, world_size=16).given[WORLD_SIZE].value == 16
    assert "R103" in codes(read("# ttx: world_size=many\n" + RUN))


def test_custom_model_from_its_classes() -> None:
    native = read(CUSTOM, "run")
    facts = native.given["@model_arguments"].value
    assert isinstance(facts, dict)
    expected = {"dim": 2560, "n_layers": 20, "n_heads": 20, "n_kv_heads": 4, "hidden_dim": 6912, "vocab_size": 50304,
                "norm_eps": 1e-6, "init_std": 0.02, "output_init": "layer_index"}  # fmt: skip
    assert {name: facts[name] for name in expected} == expected
    assert facts["rope"]["theta"] == 1e4
    assert native.values["model_spec.flavor"] == "mine"
    assert native.values["model_spec.attn_backend"] == "flex"
    assert native.values["@model.ffn"] == 6912
    assert native.values["model_spec.converters"] == [{"class": "Float8LinearConverter"}]


def test_a_custom_model_with_open_parts_is_said() -> None:
    native = read(CUSTOM.replace("DIM, FFN = 2560, 6912", "DIM, FFN = int(os.environ['DIM']), 6912"), "run")
    assert native.given["@model_arguments"].missing is not None
    assert "R105" in codes(native)


def test_a_model_that_is_changed_after_the_registry_is_said() -> None:
    assert "R105" in codes(read(changed("c.model_spec.model.vocab_size = 5"), "two"))


CUSTOM = """
from functools import partial
import torch.nn as nn
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.common.config_utils import get_attention_config, make_ffn_config, make_gqa_config
from torchtitan.models.common.param_init import depth_scaled_std
from torchtitan.models.llama3 import Llama3Model, parallelize_llama
from torchtitan.models.llama3.model import Llama3TransformerBlock
from torchtitan.protocols.model_spec import ModelSpec

DIM, FFN = 2560, 6912

def _lin(std):
    return {"weight": partial(nn.init.trunc_normal_, std=std), "bias": nn.init.zeros_}

def _model():
    rope = ComplexRoPE.Config(dim=DIM // 20, max_seq_len=8192, theta=10000.0, scaling="none")
    norm = RMSNorm.Config(normalized_shape=DIM, eps=1e-6, param_init={"weight": nn.init.ones_})
    layers = [
        Llama3TransformerBlock.Config(
            attention_norm=norm, ffn_norm=norm,
            attention=make_gqa_config(
                dim=DIM, n_heads=20, n_kv_heads=4, wqkv_param_init=_lin(0.02),
                wo_param_init=_lin(depth_scaled_std(0.02, i)), inner_attention=get_attention_config("flex"),
                fuse_qkv=True, rope=rope,
            ),
            feed_forward=make_ffn_config(
                dim=DIM, hidden_dim=FFN, w1_param_init=_lin(0.02), w2w3_param_init=_lin(depth_scaled_std(0.02, i)),
            ),
        )
        for i in range(20)
    ]
    return Llama3Model.Config(
        dim=DIM, vocab_size=50304, tok_embeddings=Embedding.Config(num_embeddings=50304, embedding_dim=DIM),
        norm=norm, layers=layers,
        lm_head=Linear.Config(in_features=DIM, out_features=50304, param_init=_lin(DIM**-0.5)),
    )

def run() -> Trainer.Config:
    spec = ModelSpec(name="llama3", flavor="mine", model=_model(), parallelize_fn=parallelize_llama,
                     pipelining_fn=pipeline_llm, post_optimizer_build_fn=None, state_dict_adapter=None)
    for converter in [Float8LinearConverter.Config()]:
        spec.model = converter.build().convert(spec.model)
    return Trainer.Config(
        model_spec=spec,
        loss=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec)),
        optimizer=default_adamw(lr=1e-3),
        training=TrainingConfig(seq_len=4096),
    )
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def run() -> Trainer.Config:\n    return Trainer.Config(\n", "not Python"),
        ("def run() -> Trainer.Config:\n    return other()\ndef other():\n    return run()\n", "without end"),
        ("def run() -> Trainer.Config:\n    return exec('x')\n", "exec is not run"),
        ("def run() -> Trainer.Config:\n    raise ValueError('no')\n", "no"),
        ("def run() -> Trainer.Config:\n    while True:\n        pass\n", "steps|seconds"),
        ("x = " + "[" * 10_000 + "]" * 10_000 + "\n", "deep"),
        ("x = 1\n" * 400_000, "characters"),
        ("def run() -> Trainer.Config:\n    return " + "(" * 150 + "1" + ")" * 150 + "\n", "returns a int"),
        ("def run() -> Trainer.Config:\n    return 'a' * 10**9\n", "too large"),
        ("def run() -> Trainer.Config:\n    return Trainer.Config\n", "not a Trainer.Config"),
        ("\n", "no configuration function"),
    ],
)
def test_bad_python_ends_in_one_line_in_bounded_time(body: str, said: str) -> None:
    begun = time.monotonic()
    with pytest.raises(SourceError, match=said) as error:
        read(body)
    assert "\n" not in str(error.value)
    assert time.monotonic() - begun < 12


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("exec('import os')\n" + RUN, "R113"),
        ("from nowhere import *\n" + RUN, "R120"),
        ("from nowhere import helper\n" + changed("helper(c)"), "R115"),
        ("from loop import loop\n" + changed("c.training.steps = loop()"), "R116"),
    ],
)
def test_what_is_not_evaluated_is_a_finding_and_the_rest_is_read(body: str, code: str) -> None:
    siblings = {"loop.py": "def loop():\n    return loop()\n"}
    native = read(body, "two" if "def two" in body else "run", siblings=siblings)
    assert code in codes(native)
    assert native.values["training.seq_len"] == 4096


def test_sniff() -> None:
    assert syntax_python.sniff("run.py", HEAD + RUN) > 0.9
    assert syntax_python.sniff("<stdin>", HEAD + RUN) > 0.5
    assert syntax_python.sniff("pretrain_gpt.py", "import megatron\n") < 0.2
    assert syntax_python.sniff("train.toml", "[training]\nsteps = 1\n") == 0
    assert syntax_python.guess_version("# ttx: version=0.2.2\n") == "0.3.0"


@pytest.mark.parametrize("scaling", ["none", "depth", "layer_index"])
@pytest.mark.parametrize("family", ["gqa", "mla", "gpt_oss"])
def test_initial_scales_of_a_written_model_read_back(family: str, scaling: str) -> None:
    experts = {"experts": 8, "top_k": 2, "ffn": 1024, "shared_ffn": 0, "dense_layers": []}
    more = {
        "gqa": "head_dim: 64",
        "mla": "mla: {enabled: true, q_rank: 0, kv_rank: 512, qk_nope_dim: 128, qk_rope_dim: 64, v_dim: 128}, "
        f"moe: {json.dumps(experts)}",
        "gpt_oss": "head_dim: 64, attention_softmax: learnable, bias_linear: true, bias_qkv: true, "
        f"activation: quick_gelu, moe: {json.dumps({**experts, 'expert_bias_linear': True})}",
    }[family]
    text = (
        "model: {layers: 4, hidden: 512, ffn: 2816, heads: 8, kv_heads: 8, vocab: 32000, max_positions: 2048, "
        f"positions: rope, norm: rmsnorm, init_std: 0.02, init_output_scaling: {scaling}, {more}}}\n"
        "batch: {seq_len: 2048, micro_batch: 1, global_batch: 8}\nparallel: {world_size: 8}\n"
    )
    done = api.convert(Source("spec.yaml", text), "torchtitan@0.3.0", framework="spec")
    again = api.read(Source("written.py", done.rendered.files[done.rendered.main]))
    assert (again.flat["model.init_std"], again.flat["model.init_output_scaling"]) == (0.02, scaling)
    assert again.flat["model.attention_window"] is None


@pytest.mark.parametrize("section", ["training", "optimizer", "lr_scheduler"])
def test_a_section_that_cannot_be_read_is_a_loss(section: str) -> None:
    text = (
        "from nowhere import make\n"
        "from torchtitan.models.llama3 import model_registry\n"
        "from torchtitan.trainer import Trainer\n\n\n"
        "def run() -> Trainer.Config:\n"
        f'    return Trainer.Config(model_spec=model_registry("8B"), {section}=make(5))\n'
    )
    source = Source("run.py", text)
    done = api.convert(source, "torchtitan@0.2.2", options=ReadOptions(world_size=8))
    line = next(line for line in done.ledger if line.option == section)
    assert (line.entry, line.touches.value) == (Entry.NEEDS_INPUT, "training")
    assert done.alters_training


def test_the_class_that_stands_there_anyway_is_no_loss() -> None:
    text = (
        "from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw\n"
        "from torchtitan.models.llama3 import model_registry\n"
        "from torchtitan.trainer import Trainer\n\n\n"
        "def run() -> Trainer.Config:\n"
        "    return Trainer.Config(\n"
        '        model_spec=model_registry("8B"),\n'
        "        optimizer=default_adamw(lr=1e-3),\n"
        "        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=7),\n"
        "    )\n"
    )
    done = api.convert(Source("run.py", text), "torchtitan@0.2.2", options=ReadOptions(world_size=8))
    found = {line.option: line.entry for line in done.ledger if line.option in {"optimizer", "lr_scheduler"}}
    assert found == {"optimizer": Entry.IRRELEVANT, "lr_scheduler": Entry.IRRELEVANT}
