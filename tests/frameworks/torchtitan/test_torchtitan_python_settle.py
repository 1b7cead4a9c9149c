"""What 0.3.0 makes of a configuration, what it refuses, and how its rows read and write."""

from __future__ import annotations

from typing import Any

import pytest
from torchtitan_python import VERSION, flat, native, write

from translator.compare import lost
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import groups, model_names
from translator.frameworks.torchtitan.codes import CODES
from translator.frameworks.torchtitan.framework import FRAMEWORK
from translator.frameworks.torchtitan.table_030.quantization import allow_list, native_name, skip_list
from translator.ledger import Entry
from translator.spec import leaves

ADAMW = {"pattern": ".*", "optimizer_name": "AdamW", "optimizer_kwargs": {"lr": 1e-3}}
BASE: dict[str, Any] = {
    "model_spec.name": "llama3",
    "model_spec.flavor": "8B",
    "loss": "CrossEntropyLoss",
    "dataloader": "HuggingFaceTextDataLoader",
    "optimizer.param_groups": [ADAMW],
    "@world_size": 8,
}
PIPELINE = {"parallelism.pipeline_parallel_degree": 2, "training.disable_cuda_graphs": True}
QWEN = {"model_spec.name": "qwen3", "model_spec.flavor": "30B-A3B"}


def codes(values: dict[str, Any]) -> set[str]:
    return {finding.code for finding in native({**BASE, **values}).findings}


def test_a_sound_configuration_has_no_findings() -> None:
    assert not native(BASE).findings


REFUSED: dict[str, dict[str, Any]] = {
    "R102": {"model_spec.flavor": "9B"},
    "R102 model": {"model_spec.name": "nobody", "model_spec.flavor": "9B"},
    "S150": {"parallelism.tensor_parallel_degree": 0},
    "S151": {"parallelism.tensor_parallel_degree": 3},
    "S153": {**QWEN, "parallelism.expert_parallel_degree": 16, "training.disable_cuda_graphs": True},
    "S155": {"training.global_batch_size": 100},
    "S156": {**PIPELINE, "parallelism.pipeline_parallel_microbatch_size": 3},
    "S157": {**PIPELINE, "parallelism.pipeline_parallel_schedule": "ZB1"},
    "S158": {**PIPELINE, "parallelism.pipeline_parallel_layers_per_stage": 3},
    "S160": {**PIPELINE, "parallelism.module_fqns_per_model_part": [["tok_embeddings"], ["norm", "output"]]},
    "S166": {"compile.enable_async_tensor_parallel": True},
    "S167": {"activation_checkpoint": "MemoryBudgetAC"},
    "S169": {"optimizer.param_groups": [{**ADAMW, "optimizer_name": "SGD"}]},
    "S170": {"checkpoint.keep_latest_k": 1},
    "S172": {"parallelism.context_parallel_degree": 2, "model_spec.attn_backend": "varlen"},
    "S173": {**PIPELINE, "model_spec.flavor": "1B"},
    "S180": {"parallelism.tensor_parallel_degree": 16, "@world_size": 16},
    "S181": {"training.seq_len": 262144},
    "S182": {"training.seq_len": 1026, "parallelism.tensor_parallel_degree": 4},
    "S183": {"parallelism.pipeline_parallel_degree": 2},
    "S183 experts": {**QWEN, "parallelism.expert_parallel_degree": 2},
    "S184": {"loss": "ChunkedLossWrapper", "loss.num_chunks": 7},
    "S187": {"loss": "BaseLoss"},
    "S188": {"optimizer.param_groups": []},
    "S188 nothing": {"optimizer.param_groups": [{**ADAMW, "pattern": "nothing_of_that_name"}, ADAMW]},
    "S188 stage": {**PIPELINE, "optimizer.param_groups": [{**ADAMW, "pattern": "tok_embeddings"}, ADAMW]},
    "S189": {"model_spec.attn_backend": "sdpa"},
    "S190": {"checkpoint.initial_load_path": "./seed"},
    "S190 model": {"checkpoint.exclude_from_loading": ["model"]},
    "S190 interval": {"checkpoint.interval": 0},
    "S191": {**QWEN, "model_spec.moe_comm_backend": "deepep"},
    "S178": {"training.steps": 100},
    "S186": {"training.max_norm": 0},
    "S193": {**PIPELINE, "training.local_batch_size": 1},
    "S194": {"model_spec.converters": [{"class": "MXFP8LinearConverter"}]},
    "S194 name": {"model_spec.converters": [{"class": "Float8LinearConverter", "filter_fqns": ["output"]}]},
    "S195": {"checkpoint.enable": True},
    "S196": {"parallelism.context_parallel_load_balancer": ""},
    "S197": {
        "model_spec.name": "qwen3",
        "model_spec.flavor": "30B-A3B",
        "parallelism.expert_parallel_degree": 3,
        "@world_size": 3,
        "training.disable_cuda_graphs": True,
    },
    "S199": {"debug.batch_invariant": True},
    "S199 pipeline": {**PIPELINE, "debug.spmd_typechecking": True},
    "S199 recomputation": {"debug.spmd_typechecking": True},
}
SOUND: tuple[dict[str, Any], ...] = (
    {"model_spec.converters": [{"class": "MXFP8LinearConverter", "fqns": ["layers"]}]},
    {"model_spec.converters": [{"class": "Float8LinearConverter", "filter_fqns": ["lm_head", "qkv_linear.wqkv"]}]},
    {"model_spec.converters": [{"class": "Float8LinearConverter", "filter_fqns": ["auto_filter_small_kn"]}]},
    {"debug.spmd_typechecking": True, "parallelism.spmd_backend": "partial_dtensor"},
    {"debug.spmd_typechecking": True, "activation_checkpoint": "FullAC"},
    {"checkpoint.enable": True, "checkpoint.last_save_model_only": False},
)


@pytest.mark.parametrize("changes", SOUND)
def test_sound_neighbours_of_traps(changes: dict[str, Any]) -> None:
    assert codes(changes) == set()


@pytest.mark.parametrize("name", REFUSED)
def test_what_torchtitan_refuses_is_a_finding(name: str) -> None:
    code = name.partition(" ")[0]
    assert code in codes(REFUSED[name])
    assert code in CODES


def test_every_refusal_of_python_is_tested() -> None:
    # Those of TOML alone, and that of a launch line.
    elsewhere = {"S185", "S192", "S198"}
    assert {code for code in CODES if code >= "S181"} - elsewhere <= {name.partition(" ")[0] for name in REFUSED}


def test_sequence_parallelism_decides_what_the_sequence_divides_by() -> None:
    tensor = {"parallelism.tensor_parallel_degree": 4}
    off = {**tensor, "parallelism.enable_sequence_parallel": False}
    context = {"parallelism.context_parallel_degree": 2}
    found = [
        native({**BASE, **changes}).values[at.SEQ_LEN_DIVISOR] for changes in ({}, tensor, off, {**tensor, **context})
    ]
    assert found == [1, 4, 1, 16]


def test_mixed_precision_applies_at_every_degree() -> None:
    values = native({**BASE, "@world_size": 1}).values
    assert (values[at.FSDP], values[at.COMPUTE_DTYPE]) == (True, "bfloat16")
    assert native({**BASE, **PIPELINE}).values[at.RESHARD_AFTER_FORWARD] is False


def test_a_class_brings_its_own_fields_only() -> None:
    values = native({**BASE, "activation_checkpoint": "MemoryBudgetAC", "compile.enable": True}).values
    assert values["activation_checkpoint.memory_budget"] == 0.5
    assert "activation_checkpoint.force_recompute_mm_shapes_by_fqns" not in values
    values = native({**BASE, "activation_checkpoint": None}).values
    assert not [address for address in values if address.startswith("activation_checkpoint.")]
    assert native(BASE).values["dataloader.dataset"] == "c4_test"
    assert native(BASE).values["validator.dataloader.dataset"] == "c4_validation"


def test_every_leaf_and_every_option_has_one_row() -> None:
    table = FRAMEWORK.table(VERSION)
    assert set(table.row_of_field) == set(leaves())


def test_the_last_stage_holds_lm_head() -> None:
    split = [4, 4, 12, 12]
    changes = {
        "parallel.pipeline.degree": 4,
        "parallel.pipeline.schedule": "1f1b",
        "parallel.pipeline.layer_split": split,
        "parallel.data.degree": 2,
        "launch.cuda_graphs": "none",
    }
    written = write(flat("llama3/8B", changes))
    parts = written.sink.values["parallelism.module_fqns_per_model_part"]
    assert parts[-1][-2:] == ["norm", "lm_head"]
    assert written.settled.values[at.LAYER_SPLIT] == split


def test_graphs_are_turned_off_where_they_are_refused() -> None:
    changes = {"parallel.pipeline.degree": 2, "parallel.pipeline.schedule": "1f1b", "parallel.data.degree": 4}
    written = write(flat("llama3/8B", {**changes, "launch.cuda_graphs": "full"}))
    assert written.sink.values["training.disable_cuda_graphs"] is True
    assert written.sink.shortfalls["launch.cuda_graphs"].entry is Entry.APPROXIMATED
    assert write(flat("llama3/8B", {})).sink.values.get("training.disable_cuda_graphs") is None


@pytest.mark.parametrize("scope", ["all", "matrices", "matrices_and_qk_norm"])
@pytest.mark.parametrize("model", ["llama3/8B", "qwen3/8B", "qwen3/30B-A3B", "deepseek_v3/671B", "gpt_oss/20b"])
def test_the_scope_of_weight_decay_reads_back(model: str, scope: str) -> None:
    written = write(flat(model, {"optimizer.decay_scope": scope}))
    found = FRAMEWORK.table(VERSION).read(written.settled.values)["optimizer.decay_scope"]
    has_qk_norm = model.startswith("qwen3") or model == "deepseek_v3/671B"
    assert found == (scope if has_qk_norm or scope == "all" else "matrices")
    assert not groups.unmatched(
        written.sink.values["optimizer.param_groups"],
        model_names.parameters(lambda leaf: written.settled.values.get(f"{at.MODEL}{leaf}")),
        [1, 1, 1, 0],
    )


def test_a_stage_of_nothing_but_the_embedding_decays_whole() -> None:
    changes = {
        "parallel.pipeline.degree": 2,
        "parallel.pipeline.schedule": "1f1b",
        "parallel.pipeline.layer_split": [0, 32],
        "parallel.data.degree": 4,
        "optimizer.decay_scope": "matrices",
        "launch.cuda_graphs": "none",
    }
    written = write(flat("llama3/8B", changes))
    assert len(written.sink.values["optimizer.param_groups"]) == 1
    assert written.sink.shortfalls["optimizer.decay_scope"].entry is Entry.APPROXIMATED


def test_embedding_and_head_have_a_rate_of_their_own() -> None:
    written = write(flat("llama3/8B", {"optimizer.embedding_lr": 1e-5}))
    back = FRAMEWORK.table(VERSION).read(written.settled.values)
    assert (back["optimizer.lr"], back["optimizer.embedding_lr"]) == (3e-4, 1e-5)
    staged = {"parallel.pipeline.degree": 4, "parallel.pipeline.schedule": "1f1b", "parallel.data.degree": 2}
    refused = write(flat("llama3/8B", {**staged, "optimizer.embedding_lr": 1e-5, "launch.cuda_graphs": "none"}))
    assert refused.sink.shortfalls["optimizer.embedding_lr"].entry is Entry.UNSUPPORTED


LINEARS = ("attention.qkv_linear.wqkv", "attention.wo", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3")


@pytest.mark.parametrize(
    ("skip", "allowed"),
    [
        ([], []),
        (["lm_head"], ["layers"]),
        (["attention.wo"], [*LINEARS[:1], *LINEARS[2:], "lm_head"]),
        (["layers.1.", "lm_head"], ["layers.0.", "layers.2."]),
        (
            ["layers.0.attention.wo"],
            [*(f"layers.0.{n}" for n in LINEARS if n != "attention.wo"), "layers.1.", "layers.2.", "lm_head"],
        ),
    ],
)
def test_a_skip_list_becomes_an_allow_list_and_back(skip: list[str], allowed: list[str]) -> None:
    assert allow_list(skip, LINEARS, 3) == allowed
    assert sorted(skip_list(allowed, LINEARS, 3)) == sorted(skip)


def test_nothing_left_to_convert_is_no_empty_list() -> None:
    with pytest.raises(LookupError):
        allow_list(["layers", "lm_head"], LINEARS, 3)


def test_modules_have_the_names_of_this_version() -> None:
    names = [native_name(name) for name in ("output", "attention.wk", "wv", "attention.wo")]
    assert names == ["lm_head", "attention.qkv_linear.wqkv", "wqkv", "attention.wo"]


@pytest.mark.parametrize(
    "changes",
    [
        {"precision.fp8": "e4m3", "precision.fp8_recipe": "rowwise", "precision.fp8_skip": ["output"]},
        {"precision.fp8": "e4m3", "precision.fp8_recipe": "mxfp8", "precision.fp8_skip": ["output"]},
        {"precision.fp8": "e4m3", "precision.fp8_recipe": "mxfp8", "precision.fp8_skip": []},
    ],
)
def test_low_precision_reads_back(changes: dict[str, Any]) -> None:
    spec = flat("llama3/8B", {**changes, "precision.fp8_parameters": False})
    written = write(spec)
    back = FRAMEWORK.table(VERSION).read(written.settled.values)
    assert {leaf: back[leaf] for leaf in changes} == changes


def test_a_model_of_its_own_reads_back() -> None:
    spec = flat("qwen3/30B-A3B", {"model.moe.dense_layers": [2, 4], "model.ffn": 64, "model.moe.router_scaling": 2.5})
    written = write(spec)
    assert written.sink.values["model_spec.flavor"] == "custom"
    back = FRAMEWORK.table(VERSION).read(written.settled.values)
    assert not {
        leaf: pair for leaf, pair in lost(spec, back).items() if leaf.startswith("model.") and leaf != "model.name"
    }


def test_a_flavor_too_short_for_the_run_is_not_taken() -> None:
    spec = flat("qwen3/debugmodel", {"batch.seq_len": 8192})
    spec["model.max_positions"] = 8192
    written = write(spec)
    assert written.sink.values[at.MODEL_ARGUMENTS]["rope"]["max_seq_len"] == 8192
    assert not written.settled.findings


@pytest.mark.parametrize(("path", "written"), [("./assets/hf/Llama-3.1-8B", True), ("./tokenizer.model", False)])
def test_a_tokenizer_is_a_folder(path: str, written: bool) -> None:
    sink = write({**flat("llama3/8B", {}), "data.tokenizer": path}).sink
    assert (sink.values.get("hf_assets_path") == path) is written
    assert ("data.tokenizer" in {leaf for leaf, _ in sink.needs.items()}) is not written
