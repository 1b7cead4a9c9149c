"""Our reading and settling of torchtitan TOML, judged by the real torchtitan 0.2.2 and 0.1.0."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer
from parameter_count import parameter_count

from translator.catalogue import load
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import flavors, stages
from translator.frameworks.torchtitan.custom_model import render_custom_model
from translator.frameworks.torchtitan.models import families
from translator.frameworks.torchtitan.settle import settle
from translator.frameworks.torchtitan.syntax_toml import read_source, write_toml
from translator.native import Native

P = "parallelism."
DEGREES = {
    "dp_replicate": f"{P}data_parallel_replicate_degree",
    "dp_shard": f"{P}data_parallel_shard_degree",
    "cp": f"{P}context_parallel_degree",
    "tp": f"{P}tensor_parallel_degree",
    "pp": f"{P}pipeline_parallel_degree",
    "ep": f"{P}expert_parallel_degree",
    "etp": f"{P}expert_tensor_parallel_degree",
}
LLAMA: dict[str, object] = {"model.name": "llama3", "model.flavor": "8B", "training.seq_len": 8192}
LISTS = [
    ["tok_embeddings", *(f"layers.{n}" for n in range(20))],
    [*(f"layers.{n}" for n in range(20, 32)), "norm", "output"],
]

# Options and world size; the model is llama3 8B where nothing else is said.
VARIATIONS: dict[str, tuple[dict[str, object], int]] = {
    "plain": ({}, 8),
    "tensor": ({f"{P}tensor_parallel_degree": 8}, 64),
    "hsdp": ({f"{P}data_parallel_replicate_degree": 4}, 64),
    "context": ({f"{P}context_parallel_degree": 4, f"{P}tensor_parallel_degree": 2}, 32),
    "pipeline": ({f"{P}pipeline_parallel_degree": 4, "training.local_batch_size": 8}, 32),
    "pipeline, even": (
        {f"{P}pipeline_parallel_degree": 4, stages.FIRST_LESS: 0, stages.LAST_LESS: 0, "training.local_batch_size": 4},
        16,
    ),
    "pipeline, micro batches of two": (
        {f"{P}pipeline_parallel_degree": 2, f"{P}pipeline_parallel_microbatch_size": 2, "training.local_batch_size": 8},
        8,
    ),
    "interleaved": ({f"{P}pipeline_parallel_degree": 4, f"{P}pipeline_parallel_schedule": "Interleaved1F1B"}, 8),
    "interleaved, many stages": (
        {
            f"{P}pipeline_parallel_degree": 2,
            f"{P}pipeline_parallel_schedule": "interleaved1f1b",
            stages.LAYERS_PER_STAGE: 5,
            stages.LAST_LESS: 4,
            "training.local_batch_size": 16,
        },
        4,
    ),
    "zero bubble": ({f"{P}pipeline_parallel_degree": 4, f"{P}pipeline_parallel_schedule": "ZBVZeroBubble"}, 8),
    "lists of modules": ({f"{P}pipeline_parallel_degree": 2, stages.MODULE_NAMES: LISTS}, 2),
    "405B": ({"model.flavor": "405B", f"{P}pipeline_parallel_degree": 8, f"{P}tensor_parallel_degree": 8}, 512),
    "batch": ({"training.global_batch_size": 512, "training.local_batch_size": 4}, 32),
    "cosine": (
        {
            "training.steps": 50,
            "lr_scheduler.warmup_steps": 7,
            "lr_scheduler.decay_type": "cosine",
            "lr_scheduler.min_lr_factor": 0.1,
        },
        8,
    ),
    "plateau": (
        {
            "training.steps": 45,
            "lr_scheduler.warmup_steps": 3,
            "lr_scheduler.decay_ratio": 0.1,
            "lr_scheduler.decay_type": "sqrt",
        },
        8,
    ),
    "no decay": ({"training.steps": 20, "lr_scheduler.warmup_steps": 5, "lr_scheduler.decay_ratio": 0.0}, 8),
    "long warm-up": ({"training.steps": 10, "lr_scheduler.warmup_steps": 50}, 8),
    "longer schedule": ({"training.steps": 10, "lr_scheduler.warmup_steps": 2, "lr_scheduler.total_steps": 40}, 8),
    "crowded schedule": ({"training.steps": 30, "lr_scheduler.warmup_steps": 20, "lr_scheduler.decay_ratio": 0.8}, 8),
    "experts": (
        {
            "model.name": "llama4",
            "model.flavor": "17bx16e",
            f"{P}expert_parallel_degree": 4,
            f"{P}tensor_parallel_degree": 2,
            f"{P}expert_tensor_parallel_degree": 2,
        },
        32,
    ),
    "latent attention": (
        {
            "model.name": "deepseek_v3",
            "model.flavor": "671B",
            f"{P}pipeline_parallel_degree": 8,
            "training.local_batch_size": 8,
        },
        64,
    ),
    "deprecated": ({"model.tokenizer_path": "./tokenizer"}, 8),
    "indivisible batch": ({"training.global_batch_size": 100, "training.local_batch_size": 4}, 32),
    "odd length": ({"training.seq_len": 8190, f"{P}tensor_parallel_degree": 4}, 32),
}
REFUSED: dict[str, tuple[dict[str, object], int, str, str]] = {
    "no such degree": ({f"{P}tensor_parallel_degree": 0}, 8, "dims", "S150"),
    "product": ({f"{P}tensor_parallel_degree": 3}, 8, "dims", "S151"),
    "too few ranks": ({f"{P}tensor_parallel_degree": 16}, 8, "dims", "S151"),
    "expert tensor": (
        {f"{P}tensor_parallel_degree": 8, f"{P}expert_parallel_degree": 2, f"{P}expert_tensor_parallel_degree": 4},
        64,
        "dims",
        "S152",
    ),
    "experts over too few ranks": ({f"{P}expert_parallel_degree": 16}, 8, "dims", "S153"),
    "micro batch": (
        {f"{P}pipeline_parallel_degree": 2, f"{P}pipeline_parallel_microbatch_size": 3, "training.local_batch_size": 8},
        8,
        "stages",
        "S156",
    ),
    "no such schedule": (
        {f"{P}pipeline_parallel_degree": 2, f"{P}pipeline_parallel_schedule": "ZB1"},
        8,
        "stages",
        "S157",
    ),
    "stages": ({f"{P}pipeline_parallel_degree": 4, stages.LAYERS_PER_STAGE: 4}, 8, "stages", "S158"),
    "weights": ({f"{P}pipeline_parallel_degree": 4, stages.FIRST_LESS: 12}, 8, "stages", "S158"),
    "too many stages": ({f"{P}pipeline_parallel_degree": 64}, 64, "stages", "S158"),
    "flavor": ({"model.flavor": "9B"}, 8, "nparams", "R102"),
    "optimizer": ({"optimizer.name": "SGD"}, 8, "lr", "S169"),
    "varlen under context": ({"model.flavor": "8B_varlen", f"{P}context_parallel_degree": 2}, 8, "nparams", "S172"),
    "gpt-oss under context": (
        {"model.name": "gpt_oss", "model.flavor": "20b", f"{P}context_parallel_degree": 2},
        8,
        "nparams",
        "S172",
    ),
}


def settled(text: str, version: str, world_size: int | None, name: str = "run.toml") -> Native:
    native = read_source(name, text, version=version, world_size=world_size)
    settle(native, load("torchtitan", version))
    return native


def flat(tables: dict[str, Any], catalogue: Any, above: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in tables.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and path not in catalogue:
            found.update(flat(value, catalogue, f"{path}."))
        else:
            found[path] = value
    return found


def toml(options: dict[str, object]) -> str:
    return write_toml([(address, value, None) for address, value in {**LLAMA, **options}.items()], [])


def rates(native: Native, count: int) -> list[float]:
    """The learning rates that the settled lengths mean, by the documented curve."""
    import math

    v = {address: native.values[address] for address in (at.WARMUP_STEPS, at.STABLE_STEPS, at.DECAY_STEPS)}
    warmup, stable, decay = (int(str(value)) for value in v.values())
    lr = float(str(native.values["optimizer.lr"]))
    floor = float(str(native.values["lr_scheduler.min_lr_factor"]))
    shape = {
        "linear": lambda p: 1 - p,
        "sqrt": lambda p: 1 - math.sqrt(p),
        "cosine": lambda p: (1 + math.cos(math.pi * p)) / 2,
    }[str(native.values["lr_scheduler.decay_type"])]
    factors = []
    for step in range(count):
        if step < warmup:
            factors.append((step + 1) / warmup)
        elif step < warmup + stable:
            factors.append(1.0)
        else:
            factors.append(floor + (1 - floor) * shape((step + 1 - warmup - stable) / decay))
    return [lr * factor for factor in factors]


def check_resolved(native: Native, answer: dict[str, Any]) -> None:
    assert answer["ok"], answer
    catalogue = load("torchtitan", native.version)
    real = flat(answer["config"], catalogue)
    real.pop("job.config_file")
    ours = {
        address: native.given[address].value
        if address in native.derived and address in native.given
        else catalogue.default(address)
        if address in native.derived and not address.startswith(("job.", "model."))
        else native.values[address]
        for address in catalogue.addresses()
        if address != "job.config_file"
    }
    assert ours == real


def check_dims(native: Native, answer: dict[str, Any]) -> None:
    assert answer["ok"], answer
    for name, address in DEGREES.items():
        if name in answer["dims"]:
            assert native.values[address] == answer["dims"][name], name
    batch = answer["batch"]
    assert native.values[at.DP_DEGREE] == batch["data_parallel"]
    assert native.values["training.global_batch_size"] == batch["global_batch_size"]
    assert native.values[at.ACCUMULATION] == batch["gradient_accumulation_steps"]
    assert ("S155" in {finding.code for finding in native.findings}) != batch["divisible"]
    assert native.values.get(at.SEQ_LEN_DIVISOR) == answer["seq_len_divisor"]
    if "fsdp" in answer["meshes"]:
        sharded = answer["meshes"]["fsdp"]
        assert native.values[at.FSDP] == (sharded > 1 or native.values[DEGREES["ep"]] != 1)


def check_stages(native: Native, answer: dict[str, Any]) -> None:
    assert answer["ok"], answer
    counts = native.values[at.LAYER_SPLIT]
    assert isinstance(counts, list)
    assert counts == [len(layers) for layers in answer["layers"]]
    assert stages.modules(counts) == answer["stages"]
    assert native.values[at.PIPELINE_MICRO_BATCHES] == answer["n_microbatches"]


@pytest.mark.parametrize("case", VARIATIONS)
def test_variations_settle_as_the_real_code_does(torchtitan_022: OracleServer, case: str) -> None:
    options, world_size = VARIATIONS[case]
    text = toml(options)
    native = settled(text, "0.2.2", world_size)
    check_resolved(native, torchtitan_022.request("resolve", text=text))
    check_dims(native, torchtitan_022.request("dims", text=text, world_size=world_size))
    if native.values[DEGREES["pp"]] != 1:
        check_stages(native, torchtitan_022.request("stages", text=text, world_size=world_size))
    count = min(int(str(native.values["training.steps"])), 60)
    real = torchtitan_022.request("lr", text=text, steps=count)
    assert real["ok"], real
    assert real["lr"] == pytest.approx(rates(native, count), rel=1e-12)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_real_code_refuses_is_a_finding(torchtitan_022: OracleServer, case: str) -> None:
    options, world_size, command, code = REFUSED[case]
    text = toml(options)
    asked = {} if command in {"nparams", "lr"} else {"world_size": world_size}
    answer = torchtitan_022.request(command, text=text, **asked)
    assert not answer["ok"], answer
    assert code in {finding.code for finding in settled(text, "0.2.2", world_size).findings}


@pytest.mark.corpus
def test_shipped_files_settle_as_the_real_code_does(torchtitan_022: OracleServer, corpus: Path) -> None:
    loaded = 0
    for file in sorted((corpus / "torchtitan" / "0.2.2").glob("*.toml")):
        text = file.read_text(encoding="utf-8")
        native = settled(text, "0.2.2", 512, file.name)
        answer = torchtitan_022.request("resolve", text=text)
        extended = bool(tomllib.loads(text)["job"].get("custom_config_module"))
        if not answer["ok"] or extended:
            # Another section than JobConfig's: torchtitan refuses it, or imports the module that adds it.
            assert native.unknown, file.name
            continue
        loaded += 1
        check_resolved(native, answer)
        check_dims(native, torchtitan_022.request("dims", text=text, world_size=512))
        if native.values[DEGREES["pp"]] != 1:
            check_stages(native, torchtitan_022.request("stages", text=text, world_size=512))
        count = min(int(str(native.values["training.steps"])), 300)
        real = torchtitan_022.request("lr", text=text, steps=count)
        assert real["lr"] == pytest.approx(rates(native, count), rel=1e-12), file.name
    assert loaded >= 15


@pytest.mark.corpus
def test_files_of_0_1_0_settle_as_the_real_code_does(torchtitan_010: OracleServer, corpus: Path) -> None:
    loaded = 0
    for file in sorted((corpus / "torchtitan" / "0.1.0").glob("*.toml")):
        text = file.read_text(encoding="utf-8")
        native = settled(text, "0.1.0", 512, file.name)
        answer = torchtitan_010.request("resolve", text=text)
        if not answer["ok"] or native.unknown:
            assert native.unknown or "R092" in {finding.code for finding in native.findings}, (file.name, answer)
            continue
        loaded += 1
        check_resolved(native, answer)
        check_dims(native, torchtitan_010.request("dims", text=text, world_size=512))
        if native.values[DEGREES["pp"]] != 1:
            check_stages(native, torchtitan_010.request("stages", text=text, world_size=512))
    assert loaded >= 6


@pytest.mark.parametrize(
    "points", [None, ["layers.8", "layers.16", "layers.24"], ["layers.1", "layers.2", "layers.31"]]
)
def test_split_points_of_0_1_0(torchtitan_010: OracleServer, points: list[str] | None) -> None:
    text = toml({f"{P}pipeline_parallel_degree": 4, stages.SPLIT_POINTS: points})
    native = settled(text, "0.1.0", 8)
    check_stages(native, torchtitan_010.request("stages", text=text, world_size=8))


REAL_NAMES = {
    "dim": "model.hidden",
    "n_layers": "model.layers",
    "n_heads": "model.heads",
    "vocab_size": "model.vocab",
    "norm_eps": "model.norm_eps",
    "rope_theta": "model.rope_base",
    "head_dim": "model.head_dim",
    "enable_weight_tying": "model.tied_embeddings",
    "q_lora_rank": "model.mla.q_rank",
    "kv_lora_rank": "model.mla.kv_rank",
    "qk_nope_head_dim": "model.mla.qk_nope_dim",
    "qk_rope_head_dim": "model.mla.qk_rope_dim",
    "v_head_dim": "model.mla.v_dim",
    "sliding_window_size": "model.attention_window",
}


def first_shape(shapes: dict[str, list[int]], *endings: str) -> list[int] | None:
    return next((shape for name, shape in shapes.items() if name.endswith(endings)), None)


@pytest.mark.parametrize(
    ("name", "flavor"), [(name, flavor) for name in families("0.2.2") for flavor in flavors.flavor_names(name, "0.2.2")]
)
def test_leaves_of_flavors_agree_with_the_real_models(torchtitan_022: OracleServer, name: str, flavor: str) -> None:
    text = toml({"model.name": name, "model.flavor": flavor})
    native = settled(text, "0.2.2", 8)
    leaves = {address[1:]: value for address, value in native.values.items() if address.startswith(at.MODEL)}
    answer = torchtitan_022.request("nparams", text=text)
    assert answer["ok"], answer
    arguments, shapes = answer["args"], answer["shapes"]
    for argument, leaf in REAL_NAMES.items():
        if argument in arguments:
            assert (leaves[leaf] or 0) == arguments[argument], leaf
    assert parameter_count(leaves) == answer["total"]
    assert leaves["model.max_positions"] == arguments["max_seq_len"] == 8192
    assert any("bias" in shape for shape in shapes) == leaves["model.bias_linear"]
    # The widths, from the weights of the real model.
    dense = first_shape(shapes, ".feed_forward.w1.weight")
    assert (dense[0] if dense else None) == leaves.get("model.ffn")
    expert = first_shape(shapes, ".moe.experts.w2", ".moe.experts.mlp2_weight")
    assert (expert or [0])[0] == leaves["model.moe.experts"]
    if expert:
        assert expert[2] == leaves["model.moe.ffn"]
        shared = first_shape(shapes, ".moe.shared_experts.w1.weight")
        assert (shared[0] if shared else 0) == leaves["model.moe.shared_ffn"]
    if not leaves["model.mla.enabled"]:
        key = first_shape(shapes, ".attention.wk.weight")
        assert key is not None
        assert key[0] == int(str(leaves["model.kv_heads"])) * int(str(leaves["model.head_dim"]))


OWN = {
    "model.layers": 5,
    "model.hidden": 640,
    "model.heads": 10,
    "model.kv_heads": 2,
    "model.head_dim": 64,
    "model.ffn": 1732,
    "model.vocab": 5000,
    "model.norm_eps": 1e-6,
    "model.rope_base": 12345.0,
    "model.rope.scaling": "none",
    "model.tied_embeddings": False,
}
EXPERTS = {
    **OWN,
    "model.moe.experts": 6,
    "model.moe.top_k": 2,
    "model.moe.ffn": 300,
    "model.moe.shared_ffn": 600,
    "model.moe.router_score": "softmax",
    "model.moe.router_normalize": True,
    "model.moe.router_bias": False,
    "model.moe.scores_on_input": False,
}
LATENT = {
    **EXPERTS,
    "model.kv_heads": 10,
    "model.mla.enabled": True,
    "model.mla.q_rank": 96,
    "model.mla.kv_rank": 64,
    "model.mla.qk_nope_dim": 32,
    "model.mla.qk_rope_dim": 16,
    "model.mla.v_dim": 48,
    "model.moe.dense_layers": [0, 1],
    "model.ffn": 1234,
}
OWN_MODELS: dict[str, tuple[str, dict[str, object], str]] = {
    "llama": ("llama3", OWN, "0.2.2"),
    "llama in 0.1.0": ("llama3", OWN, "0.1.0"),
    "qwen": (
        "qwen3",
        {**OWN, "model.head_dim": 32, "model.qk_norm": "rmsnorm", "model.tied_embeddings": True},
        "0.2.2",
    ),
    "qwen with experts": ("qwen3", EXPERTS, "0.2.2"),
    "llama with experts": ("llama4", EXPERTS, "0.2.2"),
    "latent": ("deepseek_v3", LATENT, "0.2.2"),
    "gpt-oss": ("gpt_oss", {**EXPERTS, "model.moe.shared_ffn": 0, "model.attention_window": 64}, "0.2.2"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", OWN_MODELS)
def test_a_registered_flavor_is_the_model_that_was_asked_for(
    request: pytest.FixtureRequest, tmp_path: Path, case: str
) -> None:
    name, model, version = OWN_MODELS[case]
    server: OracleServer = request.getfixturevalue(f"torchtitan_{version.replace('.', '')}")
    custom = flavors.native_args(name, model, version, seq_len=2048)
    assert custom is not None
    module = render_custom_model(name, "mine", custom.arguments, version, module="ttx_flavors")
    (tmp_path / "ttx_flavors.py").write_text(module, encoding="utf-8")
    options = {"model.name": name, "model.flavor": "mine", "training.seq_len": 2048}
    text = toml({**options, "experimental.custom_import": "ttx_flavors"})
    answer = server.request("nparams", text=text, path=[str(tmp_path)])
    assert answer["ok"], answer
    native = read_source("run.toml", text, version=version, read_sibling=lambda path: (tmp_path / path).read_text())
    settle(native, load("torchtitan", version))
    assert not [finding for finding in native.findings if finding.code.startswith("R")]
    shapes = answer["shapes"]
    leaves = {address[1:]: value for address, value in native.values.items() if address.startswith(at.MODEL)}
    # 0.1.0 takes the vocabulary from the tokenizer; the driver gives it Llama 3's.
    assert parameter_count({"model.vocab": 128256, **leaves}) == answer["total"]
    for leaf, wanted in model.items():
        if leaf not in custom.differences and leaf != "model.vocab" and not (leaf == "model.ffn" and "moe" in case):
            assert native.values.get(f"@{leaf}", wanted) == wanted, leaf
    wide = first_shape(shapes, ".feed_forward.w1.weight")
    if wide and "model.ffn" not in custom.differences:
        assert wide == [model["model.ffn"], model["model.hidden"]]
    expert = first_shape(shapes, ".moe.experts.w2", ".moe.experts.mlp2_weight")
    if expert:
        assert expert == [model["model.moe.experts"], model["model.hidden"], model["model.moe.ffn"]]
