"""What torchtitan makes of a configuration, and what it would refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.catalogue import load
from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan.codes import CODES
from translator.frameworks.torchtitan.settle import settle
from translator.frameworks.torchtitan.syntax_toml import read_source
from translator.native import WORLD_SIZE, Native, Origin

LLAMA = "model.name = 'llama3'\nmodel.flavor = '8B'\n"


def settled(text: str, world_size: int | None = 64, version: str = "0.2.2") -> Native:
    native = read_source("run.toml", LLAMA + text, version=version, world_size=world_size)
    settle(native, load("torchtitan", version))
    return native


def codes(native: Native) -> set[str]:
    return {finding.code for finding in native.findings}


def test_defaults_are_in_force_and_belong_to_this_configuration_alone() -> None:
    native, other = settled(""), settled("")
    catalogue = load("torchtitan", "0.2.2")
    for address in catalogue.addresses():
        if address not in native.derived and address not in native.given:
            assert native.values[address] == catalogue.default(address)
    assert native.values["compile.components"] is not other.values["compile.components"]
    assert native.findings == []


def test_what_is_left_of_the_ranks_shards() -> None:
    native = settled("[parallelism]\ntensor_parallel_degree = 8\ndata_parallel_replicate_degree = 2\n")
    assert native.values["parallelism.data_parallel_shard_degree"] == 4
    assert native.origin("parallelism.data_parallel_shard_degree") is Origin.DERIVED
    assert "parallel_dims.py:50" in native.derived["parallelism.data_parallel_shard_degree"]
    assert native.values[at.DP_DEGREE] == 8
    assert native.values["training.global_batch_size"] == 64
    assert native.values[at.ACCUMULATION] == 1
    assert native.values[at.SEQ_LEN_DIVISOR] == 16


def test_a_stated_shard_degree_gives_the_world_size() -> None:
    native = settled("[parallelism]\ntensor_parallel_degree = 8\ndata_parallel_shard_degree = 4\n", None)
    assert native.values[WORLD_SIZE] == 32
    assert "product of the degrees" in native.derived[WORLD_SIZE]


def test_without_world_size_what_depends_on_it_is_left_out() -> None:
    native = settled("", None)
    for address in (
        "parallelism.data_parallel_shard_degree",
        "training.global_batch_size",
        WORLD_SIZE,
        at.DP_DEGREE,
        at.ACCUMULATION,
        at.COMPUTE_DTYPE,
        at.FSDP,
    ):
        assert address not in native.values
    missing = native.given[WORLD_SIZE].missing
    assert missing is not None
    assert missing.supply == "--world-size N"
    assert native.origin(WORLD_SIZE) is Origin.UNKNOWN
    assert native.values[at.WARMUP_STEPS] == 200
    assert native.findings == []


def test_nodes_and_gpus_give_the_world_size() -> None:
    native = read_source("run.toml", f"# ttx: nodes=4 gpus_per_node=8\n{LLAMA}")
    settle(native, load("torchtitan", "0.2.2"))
    assert native.values[at.DP_DEGREE] == 32


def test_under_pipeline_the_local_batch_is_cut_into_micro_batches() -> None:
    native = settled(
        "[training]\nlocal_batch_size = 16\nglobal_batch_size = 256\n"
        "[parallelism]\npipeline_parallel_degree = 8\npipeline_parallel_microbatch_size = 2\n"
    )
    assert native.values[at.MICRO_BATCH] == 2
    assert native.values[at.PIPELINE_MICRO_BATCHES] == 8
    assert native.values[at.DP_DEGREE] == 8
    assert native.values[at.ACCUMULATION] == 2
    assert native.values[at.LAYER_SPLIT] == [4, 5, 4, 4, 4, 4, 4, 3]
    assert native.values[at.STAGES_PER_RANK] == 1


def test_stages_of_a_looped_schedule() -> None:
    native = settled(
        "[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = 'interleaved1f1b'\n"
        "pipeline_parallel_layers_per_stage = 3\n"
        "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 2\n"
    )
    assert native.values[at.STAGES] == 12
    assert native.values[at.LAYER_SPLIT] == [3] * 10 + [2, 0]


def test_given_modules_are_the_split() -> None:
    native = settled(
        "[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [['tok_embeddings', 'layers.0'], "
        + "['norm', 'output']]\n"
    )
    assert native.values[at.LAYER_SPLIT] == [1, 0]
    assert codes(native) == {"S160"}
    assert "layers.1" in native.findings[0].message


@pytest.mark.parametrize(
    ("text", "warmup", "decay", "stable"),
    [
        ("steps = 1000", 200, 800, 1),
        ("steps = 100", 100, 0, 1),
        ("steps = 1000\n[lr_scheduler]\ndecay_ratio = 0.8", 200, 800, 1),
        ("steps = 1000\n[lr_scheduler]\ndecay_ratio = 0.9", 200, 800, 1),
        ("steps = 1000\n[lr_scheduler]\ndecay_ratio = 0.1", 200, 100, 701),
        ("steps = 1000\n[lr_scheduler]\ndecay_ratio = 0.0", 200, 0, 801),
        ("steps = 5\n[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.5", 0, 2, 4),
        ("steps = 10\n[lr_scheduler]\nwarmup_steps = 2\ntotal_steps = 100", 2, 98, 1),
    ],
)
def test_lengths_of_the_schedule(text: str, warmup: int, decay: int, stable: int) -> None:
    values = settled(f"[training]\n{text}\n").values
    assert (values[at.WARMUP_STEPS], values[at.DECAY_STEPS], values[at.STABLE_STEPS]) == (warmup, decay, stable)


@pytest.mark.parametrize(
    ("text", "world_size", "fsdp", "compute", "reshard"),
    [
        ("", 64, True, "bfloat16", True),
        ("", 1, False, "bfloat16", False),
        ("parallelism.tensor_parallel_degree = 8", 8, False, "float32", False),
        ("parallelism.pipeline_parallel_degree = 8", 8, False, "float32", False),
        ("parallelism.tensor_parallel_degree = 8\ntraining.dtype = 'bfloat16'", 8, False, "bfloat16", False),
        ("parallelism.context_parallel_degree = 8", 8, True, "bfloat16", True),
        ("parallelism.pipeline_parallel_degree = 8", 64, True, "bfloat16", False),
        (
            "parallelism.pipeline_parallel_degree = 8\nparallelism.fsdp_reshard_after_forward = 'always'",
            64,
            True,
            "bfloat16",
            True,
        ),
        ("parallelism.fsdp_reshard_after_forward = 'never'", 64, True, "bfloat16", False),
        (
            "parallelism.data_parallel_replicate_degree = 8\nparallelism.data_parallel_shard_degree = 1",
            8,
            False,
            "bfloat16",
            False,
        ),
    ],
)
def test_precision_and_resharding(text: str, world_size: int, fsdp: bool, compute: str, reshard: bool) -> None:
    values = settled(text, world_size).values
    assert (values[at.FSDP], values[at.COMPUTE_DTYPE], values[at.RESHARD_AFTER_FORWARD]) == (fsdp, compute, reshard)


def test_experts_alone_bring_fsdp() -> None:
    text = "model.name = 'llama4'\nmodel.flavor = '17bx16e'\nparallelism.tensor_parallel_degree = 8\n"
    text += "parallelism.expert_parallel_degree = 8\n"
    native = read_source("run.toml", text, world_size=8)
    settle(native, load("torchtitan", "0.2.2"))
    assert native.values[at.FSDP] is True
    assert codes(native) == set()


@pytest.mark.parametrize(("name", "flavor"), [("flux", "flux-dev"), ("vlm", "debugmodel")])
def test_a_model_that_is_no_language_model_is_named(name: str, flavor: str) -> None:
    native = read_source("run.toml", f"model.name = '{name}'\nmodel.flavor = '{flavor}'\n", world_size=8)
    settle(native, load("torchtitan", "0.2.2"))
    assert codes(native) == {"R102"}
    assert native.findings[0].level is Level.WARNING
    assert not [address for address in native.values if address.startswith(at.MODEL)]


def test_deprecated_options_move() -> None:
    native = settled("model.tokenizer_path = 'x'\nexperimental.custom_args_module = 'm'\n")
    assert native.values["model.hf_assets_path"] == "x"
    assert native.values["job.custom_config_module"] == "m"


P = "parallelism."
# A configuration per code, on 64 ranks, and the only codes that it may bring.
REFUSED = {
    "S140": ("training.dataset = 'wikitext'", {"S140"}),
    "S140 evaluation": ("validation.enable = true\nvalidation.dataset = 'pile'", {"S140"}),
    "S141": ("optimizer.beta2 = 1.0", {"S141"}),
    "S141 rate": ("optimizer.lr = -1.0", {"S141"}),
    "S141 seed": (f"debug.seed = {2**70}", {"S141"}),
    "S142": ("metrics.log_freq = 0", {"S142"}),
    "S142 collection": ("training.gc_freq = 0", {"S142"}),
    "S142 evaluation": ("validation.steps = 0", {"S142"}),
    "S142 profile": ("profiling.enable_profiling = true\nprofiling.profile_freq = 3", {"S142"}),
    "S143": ("checkpoint.enable = true\ncheckpoint.exclude_from_loading = ['scheduler']", {"S143", "S195"}),
    "S144": (
        "training.steps = 100\nlr_scheduler.total_steps = 50\nlr_scheduler.warmup_steps = 0\n"
        "lr_scheduler.decay_ratio = 0.0",
        {"S144"},
    ),
    "S150": (f"{P}tensor_parallel_degree = 0", {"S150"}),
    "S151": (f"{P}tensor_parallel_degree = 7", {"S151", "S154", "S180"}),
    "S151 too few ranks": (f"{P}tensor_parallel_degree = 4\n{P}context_parallel_degree = 32", {"S151"}),
    "S152": (
        f"{P}tensor_parallel_degree = 8\n{P}expert_parallel_degree = 2\n{P}expert_tensor_parallel_degree = 4",
        {"S152"},
    ),
    "S153": (f"{P}expert_parallel_degree = 128", {"S153"}),
    "S154": (f"{P}context_parallel_degree = 4\ntraining.seq_len = 2044", {"S154"}),
    "S155": ("training.global_batch_size = 100", {"S155"}),
    "S156": (f"{P}pipeline_parallel_degree = 4\n{P}pipeline_parallel_microbatch_size = 3", {"S156"}),
    "S157": (f"{P}pipeline_parallel_degree = 4\n{P}pipeline_parallel_schedule = 'ZB1'", {"S157"}),
    "S158": (f"{P}pipeline_parallel_degree = 4\n{P}pipeline_parallel_layers_per_stage = 4", {"S158"}),
    "S159": (f"{P}pipeline_parallel_degree = 4\nmodel.name = 'qwen3'\nmodel.flavor = '8B'", {"S159"}),
    "S160": (
        f"{P}pipeline_parallel_degree = 2\n{P}module_fqns_per_model_part = [['tok_embeddings'], ['norm']]",
        {"S160"},
    ),
    "S161": ("model.converters = ['float8']", {"S161"}),
    "S162": ("model.converters = ['quantize.linear.float8', 'quantize.grouped_mm.mx']", {"S162", "S185"}),
    "S163": (
        "model.converters = ['quantize.linear.float8']\nquantize.linear.float8.recipe_name = 'rowwise'\n"
        "quantize.linear.float8.enable_fsdp_float8_all_gather = true",
        {"S163"},
    ),
    "S164": (f"model.converters = ['quantize.grouped_mm.float8']\n{P}context_parallel_degree = 2", {"S164", "S185"}),
    "S165": (
        f"{P}data_parallel_replicate_degree = 8\n{P}data_parallel_shard_degree = 1\n{P}tensor_parallel_degree = 8",
        {"S165", "S176"},
    ),
    "S166": (f"{P}tensor_parallel_degree = 8\n{P}enable_async_tensor_parallel = true", {"S166"}),
    "S167": ("activation_checkpoint.mode = 'memory_budget'", {"S167"}),
    "S168": (f"optimizer.early_step_in_backward = true\n{P}pipeline_parallel_degree = 2", {"S168"}),
    "S169": ("optimizer.name = 'SGD'", {"S169"}),
    "S170": ("checkpoint.enable = true\ncheckpoint.keep_latest_k = 1", {"S170", "S195"}),
    "S171": ("activation_checkpoint.selective_ac_option = 'attn'", {"S171"}),
    "S172": (f"{P}context_parallel_degree = 2\nmodel.flavor = '8B_varlen'", {"S172"}),
    "S174": (
        f"{P}pipeline_parallel_degree = 2\n{P}expert_parallel_degree = 2\n{P}pipeline_parallel_schedule = 'DualPipeV'",
        {"S174"},
    ),
    "S175": (
        f"model.name = 'deepseek_v3'\nmodel.flavor = '16B'\n{P}expert_parallel_comm_backend = 'deepep'",
        {"S175"},
    ),
    "S176": (f"{P}tensor_parallel_degree = 8\n{P}pipeline_parallel_degree = 8", {"S176"}),
    "S177": (
        f"model.converters = ['quantize.linear.mx']\ncompile.enable = true\n{P}tensor_parallel_degree = 2",
        {"S177"},
    ),
    "S178": ("training.steps = 100", {"S178"}),
    "S178 decay": ("training.steps = 1000\nlr_scheduler.decay_ratio = 0.9", {"S178"}),
    "S179": ("training.seq_len = 262144", {"S179"}),
    "S180": (f"{P}tensor_parallel_degree = 16", {"S180"}),
    "S185 rotation": (f"{P}context_parallel_degree = 2\n{P}context_parallel_rotate_method = 'alltoall'", {"S185"}),
    "S185 section": ("quantize.linear.float8.enable_fsdp_float8_all_gather = true", {"S185"}),
    "S185 experts": ("model.converters = ['quantize.grouped_mm.float8']", {"S185"}),
    "S186": ("training.max_norm = 0", {"S186"}),
    "S190 load": (
        "checkpoint.enable = true\ncheckpoint.initial_load_in_hf = true\ncheckpoint.initial_load_model_only = false\n"
        "checkpoint.last_save_model_only = true",
        {"S190"},
    ),
    "S190 save": (
        "checkpoint.enable = true\ncheckpoint.last_save_in_hf = true\ncheckpoint.last_save_model_only = false",
        {"S190"},
    ),
    "S192": (f"model.converters = ['quantize.linear.float8']\n{P}tensor_parallel_degree = 8", {"S192"}),
    "S193": (f"{P}pipeline_parallel_degree = 4\ntraining.local_batch_size = 3", {"S193"}),
    "S193 rounds": (
        f"{P}pipeline_parallel_degree = 2\n{P}pipeline_parallel_schedule = 'Interleaved1F1B'\n"
        "training.local_batch_size = 5",
        {"S193"},
    ),
    "S193 idle": (
        f"{P}pipeline_parallel_degree = 2\n{P}pipeline_parallel_schedule = 'GPipe'\ntraining.local_batch_size = 1",
        {"S193"},
    ),
    "S195": ("checkpoint.enable = true", {"S195"}),
    "S196": (f"{P}context_parallel_load_balancer = ''", {"S196"}),
    "S196 name": (f"{P}context_parallel_degree = 2\n{P}context_parallel_load_balancer = 'zigzag'", {"S196"}),
    "S196 masks": (f"{P}context_parallel_degree = 2\n{P}context_parallel_load_balancer = 'ptrr'", {"S196"}),
    "S197": (f"model.name = 'gpt_oss'\nmodel.flavor = 'debugmodel'\n{P}expert_parallel_degree = 64", {"S197"}),
    "R102": ("model.flavor = '9B'", {"R102"}),
}
# Sound neighbours of the above.
ALLOWED = (
    f"{P}context_parallel_rotate_method = 'alltoall'",
    f"{P}context_parallel_load_balancer = 'ptrr'",
    f"{P}context_parallel_load_balancer = 'zigzag'",
    "model.converters = ['quantize.linear.float8']\nquantize.linear.float8.filter_fqns = ['output']",
    "model.converters = ['quantize.linear.float8']\nquantize.linear.float8.recipe_name = 'rowwise'\n"
    f"{P}tensor_parallel_degree = 8",
    "model.converters = ['quantize.grouped_mm.mx']\nquantize.grouped_mm.mx.fqns = ['experts']",
    "quantize.linear.float8.enable_fsdp_float8_all_gather = false\nquantize.linear.float8.filter_fqns = ['output']",
    "training.max_norm = 0.1",
    "training.steps = 1000\nlr_scheduler.decay_ratio = 0.8",
    "checkpoint.enable = true\ncheckpoint.last_save_model_only = true",
    f"{P}pipeline_parallel_degree = 4\ntraining.local_batch_size = 4",
    f"{P}pipeline_parallel_degree = 2\n{P}pipeline_parallel_schedule = 'Interleaved1F1B'\n"
    "training.local_batch_size = 6",
)


@pytest.mark.parametrize("code", sorted(REFUSED))
def test_refusals(code: str) -> None:
    text, allowed = REFUSED[code]
    code = code.partition(" ")[0]
    lines = {line.partition(" = ")[0]: line for line in (LLAMA + text).splitlines()}
    native = read_source("run.toml", "\n".join(lines.values()), world_size=64)
    settle(native, load("torchtitan", "0.2.2"))
    assert code in codes(native)
    assert codes(native) <= allowed, [finding.as_text() for finding in native.findings]
    finding = next(finding for finding in native.findings if finding.code == code)
    assert finding.option is not None
    assert finding.message


@pytest.mark.parametrize("text", ALLOWED)
def test_sound_neighbours_of_traps(text: str) -> None:
    assert codes(settled(text)) == set()


def test_only_schedules_that_refuse_few_micro_batches_make_it_an_error() -> None:
    def level(name: str) -> Level:
        text = (
            f"{P}pipeline_parallel_degree = 2\n{P}pipeline_parallel_schedule = '{name}'\ntraining.local_batch_size = 1"
        )
        return next(finding.level for finding in settled(text).findings if finding.code == "S193")

    assert [level(name) for name in ("1F1B", "DualPipeV")] == [Level.ERROR] * 2
    assert [level(name) for name in ("GPipe", "Interleaved1F1B", "ZBVZeroBubble")] == [Level.WARNING] * 3


def test_the_name_of_0_1_0_brings_float8_gathers_there() -> None:
    text = f"model.converters = ['float8']\n{P}tensor_parallel_degree = 8"
    assert codes(settled(text, version="0.1.0")) == set()


def test_every_refusal_of_a_toml_is_tested_and_documented() -> None:
    # These are about Python configurations alone.
    python = {"S145", "S181", "S182", "S183", "S184", "S187", "S188", "S189", "S191", "S194", "S198", "S199"}
    documented = {code for code in CODES if code > "S"} - python
    # No family of 0.2.2 that ties embeddings can be split at all, so the narrower finding never shows.
    tested = {code.partition(" ")[0] for code in REFUSED}
    assert documented - tested == {"S173"}
    assert tested <= set(CODES)


def test_a_finding_points_to_the_option_that_is_stated() -> None:
    native = settled("[training]\nseq_len = 1001\n")
    finding = native.findings[0]
    assert (finding.code, finding.option, str(finding.place)) == ("S154", "training.seq_len", "run.toml:4:1")
    assert finding.level is Level.ERROR


def test_0_1_0() -> None:
    text = (
        f"{P}pipeline_parallel_degree = 4\n{P}pipeline_parallel_split_points = ['layers.8', 'layers.16', 'layers.24']\n"
    )
    native = settled(f"{text}training.seq_len = 1001\n", 32, "0.1.0")
    assert codes(native) == set()
    assert native.values[at.LAYER_SPLIT] == [8, 8, 8, 8]
    assert native.values["@model.rope.scaling"] == "none"
    assert "@model.vocab" not in native.values
    assert at.SEQ_LEN_DIVISOR not in native.values
    bad = settled(
        f"model.converters = ['quantize.linear.float8']\n{text.replace('layers.8', 'layers.20')}", 32, "0.1.0"
    )
    assert codes(bad) == {"S161", "S158"}


NUMBERS = st.one_of(st.integers(-3, 70), st.integers(-(2**70), 2**70))
NUMBERED = (
    *(f"{P}{axis}_parallel_degree" for axis in ("tensor", "context", "pipeline", "expert", "expert_tensor")),
    f"{P}data_parallel_shard_degree",
    f"{P}data_parallel_replicate_degree",
    f"{P}pipeline_parallel_layers_per_stage",
    f"{P}pipeline_parallel_first_stage_less_layers",
    f"{P}pipeline_parallel_last_stage_less_layers",
    f"{P}pipeline_parallel_microbatch_size",
    "training.seq_len",
    "training.local_batch_size",
    "training.global_batch_size",
    "training.steps",
    "lr_scheduler.warmup_steps",
    "lr_scheduler.total_steps",
)
HOSTILE = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NUMBERED, NUMBERS),
        "lr_scheduler.decay_ratio": st.one_of(st.floats(0, 1), st.just(float("inf")), st.just(float("nan"))),
        f"{P}module_fqns_per_model_part": st.lists(st.lists(st.sampled_from(["layers.0", "norm", ""])), max_size=4),
        f"{P}pipeline_parallel_schedule": st.sampled_from(["1F1B", "Interleaved1F1B", "DualPipeV", "x", ""]),
        "model.flavor": st.sampled_from(["8B", "405B", "", "x"]),
    },
)


@given(HOSTILE, st.one_of(st.none(), st.integers(1, 5000)))
def test_no_value_makes_it_raise(values: dict[str, object], world_size: int | None) -> None:
    from translator.frameworks.torchtitan.syntax_toml import write_toml

    native = read_source("run.toml", write_toml([(*row, None) for row in values.items()], []), world_size=world_size)
    settle(native, load("torchtitan", "0.2.2"))
    assert all(finding.code in CODES for finding in native.findings)


@pytest.mark.parametrize(
    ("text", "used", "code"),
    [
        ("checkpoint.export_dtype = 'int8'", "checkpoint.enable = true", "R097"),
        ("activation_checkpoint.selective_ac_option = 2", "activation_checkpoint.mode = 'selective'", "R095"),
        ("quantize.linear.float8.recipe_name = 'blockwise'", "model.converters = ['quantize.linear.float8']", "R097"),
        ("validation.freq = 'often'", "validation.enable = true", "R096"),
    ],
)
def test_a_bad_value_that_is_not_read_is_no_error(text: str, used: str, code: str) -> None:
    def level(stated: str) -> Level:
        return next(finding.level for finding in settled(stated).findings if finding.code == code)

    assert level(f"{text}\nactivation_checkpoint.mode = 'full'" if "mode" in used else text) is Level.WARNING
    assert level(f"{text}\n{used}") is Level.ERROR
