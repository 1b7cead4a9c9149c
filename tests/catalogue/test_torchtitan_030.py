"""torchtitan 0.3.0: what its Python configurations can state, which classes there are, which models have names."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from translator.catalogue import flavors, load
from translator.catalogue.classes import classes
from translator.catalogue.source_tree import SourceTree
from translator.errors import UsageError
from translator.frameworks.torchtitan.extract import extract, extract_flavors
from translator.frameworks.torchtitan.extract_python import generate_classes
from translator.pyconfig import MISSING, Node, Symbol

VERSION = "0.3.0"
# Parameters of the real models on the meta device.
PARAMETERS = {
    "llama3/debugmodel": 6_163_712,
    "llama3/1B": 1_235_814_400,
    "llama3/3B": 3_212_749_824,
    "llama3/8B": 8_030_261_248,
    "llama3/70B": 70_553_706_496,
    "llama3/405B": 405_853_388_800,
    "qwen3/debugmodel": 31_987_968,
    "qwen3/debugmodel_non_fused_qkv": 31_987_968,
    "qwen3/0.6B": 596_049_920,
    "qwen3/1.7B": 1_720_574_976,
    "qwen3/4B": 4_022_468_096,
    "qwen3/8B": 8_190_735_360,
    "qwen3/14B": 14_768_307_200,
    "qwen3/32B": 32_762_123_264,
    "qwen3/debugmodel_moe": 315_758_848,
    "qwen3/30B-A3B": 30_532_122_624,
    "qwen3/235B-A22B": 235_093_634_560,
    "deepseek_v3/debugmodel": 33_014_016,
    "deepseek_v3/16B": 15_706_484_224,
    "deepseek_v3/236B": 235_741_434_880,
    "deepseek_v3/671B": 671_026_404_352,
    "gpt_oss/debugmodel": 81_489_440,
    "gpt_oss/20b": 20_914_757_184,
    "gpt_oss/120b": 116_829_156_672,
    "kimi_k2_7/debugmodel": 36_651_776,
    "kimi_k2_7/moonlight-16B-A3B": 15_960_108_544,
    "kimi_k2_7/Kimi-VL-A3B": 16_407_654_384,
    "kimi_k2_7/Kimi-K2.5": 1_026_879_353_328,
    "muse_glimmer/debugmodel": 7_872_768,
    "muse_glimmer/30B": 27_854_780_928,
}


def attention_count(args: dict[str, Any]) -> int:
    dim, heads = args["dim"], args["n_heads"]
    if "kv_lora_rank" in args:
        rank, q_rank, rope = args["kv_lora_rank"], args["q_lora_rank"], args["qk_rope_head_dim"]
        width, value = args["qk_nope_head_dim"], args["v_head_dim"]
        query = dim * q_rank + q_rank + q_rank * heads * (width + rope) if q_rank else dim * heads * (width + rope)
        return query + dim * (rank + rope) + rank + rank * heads * (width + value) + heads * value * dim
    head, kv_heads = args["head_dim"], args["n_kv_heads"]
    projected = (heads + 2 * kv_heads) * head
    count = dim * projected + heads * head * dim
    count += projected if args.get("qkv_bias") else 0
    count += dim if args.get("wo_bias") else 0
    count += heads if args.get("sinks") else 0
    count += dim * heads * head if args.get("output_gate") else 0
    # muse_glimmer's norm of queries and keys has no weight
    return count + (2 * head if args["qk_norm"] == "rmsnorm" and not args.get("output_gate") else 0)


def experts_count(args: dict[str, Any]) -> int:
    dim, experts, width = args["dim"], args["num_experts"], args["moe_hidden_dim"]
    count = experts * 3 * dim * width + dim * experts + 3 * dim * args.get("shared_hidden_dim", 0)
    if args["experts_class"] == "GptOssGroupedExperts":
        count += experts * (2 * width + dim)
    return count + (experts if args.get("router_bias") else 0)


def vision_count(vision: dict[str, Any]) -> int:
    """The encoder of kimi_k2_7 (``models/kimi_k2_7/vision_encoder.py``) and its projector."""
    dim = vision["dim"]
    merged = dim * vision["merge_kernel_size"][0] * vision["merge_kernel_size"][1]
    patch = vision["in_channels"] * vision["patch_size"] ** 2
    ffn = vision["hidden_dim"]
    block = 4 * (dim * dim + dim) + 2 * dim * ffn + ffn + dim + 4 * dim
    embedded = patch * dim + dim + vision["init_pos_emb_height"] * vision["init_pos_emb_width"] * dim
    text = vision["text_hidden_size"]
    projector = 2 * dim + merged * merged + merged + merged * text + text
    return vision["num_layers"] * block + embedded + 2 * dim + projector


def count(args: dict[str, Any]) -> int:
    """Parameters of a model by its facts."""
    dim, layers = args["dim"], args["n_layers"]
    dense = set(args.get("dense_layers", range(args.get("n_dense_layers", 0))))
    if "num_experts" not in args:
        dense = set(range(layers))
    norms = 4 if args.get("output_gate") else 2
    total = args["vocab_size"] * dim * (1 if args["enable_weight_tying"] else 2) + dim
    for layer in range(layers):
        total += attention_count(args) + norms * dim
        total += 3 * dim * args["hidden_dim"] if layer in dense else experts_count(args)
    return total


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_named_models(name: str) -> None:
    family, flavor = name.split("/")
    args = dict(flavors("torchtitan", VERSION)[family][flavor]["args"])
    vision = vision_count(args["vision"]) if "vision" in args else 0
    assert count(args) + vision == PARAMETERS[name]


def test_every_named_model_is_there() -> None:
    found = flavors("torchtitan", VERSION)
    assert {name: len(table) for name, table in found.items()} == {
        "deepseek_v3": 4,
        "gpt_oss": 3,
        "kimi_k2_7": 4,
        "llama3": 6,
        "muse_glimmer": 4,
        "qwen3": 11,
        "qwen3_5": 10,
    }
    for table in found.values():
        for row in table.values():
            assert row["args_class"].startswith("torchtitan.models.")
            assert {"dim", "vocab_size", "n_layers", "norm_eps", "enable_weight_tying"} <= row["args"].keys()


def test_positions_of_named_models() -> None:
    found = flavors("torchtitan", VERSION)
    assert found["llama3"]["8B"]["args"]["rope"] == {
        "class": "ComplexRoPE",
        "dim": 128,
        "max_seq_len": 131072,
        "theta": 500000,
        "scaling": "llama",
        "scaling_factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert found["gpt_oss"]["20b"]["args"]["rope"]["truncate"] is False
    assert found["gpt_oss"]["20b"]["args"]["full_layers"] == list(range(1, 24, 2))
    kinds = found["qwen3_5"]["0.8B"]["args"]["layer_kinds"]
    assert [len(kind["layers"]) for kind in kinds] == [18, 6]


@pytest.mark.parametrize(
    ("address", "kind", "default", "choices", "conditional"),
    [
        ("training.seq_len", "int", 2048, None, None),
        ("training.disable_cuda_graphs", "bool", False, None, None),
        ("activation_checkpoint", "class", "SelectiveAC", ("FullAC", "MemoryBudgetAC", "SelectiveAC"), None),
        ("activation_checkpoint.memory_budget", "float", 0.5, None, "MemoryBudgetAC"),
        ("activation_checkpoint.debug", "bool", False, None, None),
        ("loss.loss_fn.global_vocab_size", "int", None, None, "CrossEntropyLoss|MTPLoss in ChunkedLossWrapper"),
        ("validator.dataloader.dataset", "str", "c4_validation", None, None),
        ("validator.dataloader.infinite", "bool", False, None, "ChatDataLoader|HuggingFaceTextDataLoader|MMDataLoader"),
        ("optimizer.param_groups", "list", [], None, None),
        ("model_spec.tp_gemm_backend", "str", "default", ("default", "dist_gemm"), "llama3"),
        ("model_spec.converters.LoRAConverter.rank", "int", 8, None, "LoRAConverter"),
    ],
)
def test_options(
    address: str, kind: str, default: object, choices: tuple[str, ...] | None, conditional: str | None
) -> None:
    (entry,) = load("torchtitan", VERSION).by_address(address)
    assert (entry.kind, entry.default, entry.choices, entry.conditional) == (kind, default, choices, conditional)


def test_what_the_command_line_does_not_have() -> None:
    catalogue = load("torchtitan", VERSION)
    bare = {entry.address.partition(".")[0] for entry in catalogue.entries if not entry.flags and entry.kind != "class"}
    assert bare == {"model_spec", "dataloader", "validator", "profiler"}
    (optional,) = catalogue.by_address("activation_checkpoint")
    assert optional.optional


def test_classes_by_every_name() -> None:
    known = classes("torchtitan", VERSION)
    canonical = "torchtitan.components.checkpointer.dcp.CheckpointManager.Config"
    assert known.canonical("torchtitan.components.checkpoint.CheckpointManager.Config") == canonical
    assert known.imports(canonical)[0] == "torchtitan.components.checkpoint.CheckpointManager"
    assert known.component(canonical) == "CheckpointManager"
    assert known.by_component("CheckpointManager") == canonical
    assert known.is_config("torchtitan.config.TrainingConfig")
    assert not known.is_config("torchtitan.config.ConfigManager")
    assert known.is_subclass("torchtitan.models.llama3.Llama3Model.Config", "torchtitan.models.common.Decoder.Config")
    assert known.is_subclass(canonical, "torchtitan.components.loss.BaseLoss.Config") is False
    assert known.is_subclass("mine.Config", canonical) is None
    assert known.fields("torchtitan.components.loss.ChunkedLossWrapper.Config") == ("num_chunks", "loss_fn")


def test_defaults_of_classes_are_fresh() -> None:
    known = classes("torchtitan", VERSION)
    loader = known.default("torchtitan.components.validate.Validator.Config", "dataloader")
    assert isinstance(loader, Node)
    assert loader.cls == "torchtitan.hf_datasets.text_datasets.HuggingFaceTextDataLoader.Config"
    assert loader.fields == {"dataset": "c4_validation", "infinite": False}
    assert known.default("torchtitan.components.validate.Validator.Config", "dataloader") is not loader
    assert known.default("torchtitan.models.common.RMSNorm.Config", "normalized_shape") is MISSING
    assert known.default("torchtitan.trainer.Trainer.Config", "nothing") is MISSING
    resize = known.default("torchtitan.hf_datasets.multimodal.mm_datasets.MMDataLoader.Config", "resize_fn")
    assert isinstance(resize, Symbol)


def test_helpers() -> None:
    known = classes("torchtitan", VERSION)
    assert known.parameters("torchtitan.components.optimizer.default_adamw") == {"lr": 8e-4, "**": MISSING}
    assert known.parameters("torchtitan.models.gpt_oss.model_registry") == {
        "flavor": MISSING,
        "moe_comm_backend": "standard",
        "attn_backend": "varlen",
        "converters": None,
    }


def test_versions_without_classes() -> None:
    with pytest.raises(UsageError, match="no configuration classes"):
        classes("torchtitan", "0.2.2")


FILES = {
    "torchtitan/__init__.py": "",
    "torchtitan/config/__init__.py": "from .configs import Train\n",
    "torchtitan/config/configs.py": """
        from dataclasses import dataclass, field
        from typing import Literal

        Kind = Literal["a", "b"]

        @dataclass(kw_only=True, slots=True)
        class Train:
            steps: int = 5 * 2
            kind: Kind = "a"
            names: list[str] = field(default_factory=lambda: ["out"])
        """,
    "torchtitan/protocols/__init__.py": "",
    "torchtitan/protocols/model.py": """
        from dataclasses import dataclass

        class ModelConfigConverter:
            @dataclass(kw_only=True, slots=True)
            class Config:
                on: bool = False

        class Halve(ModelConfigConverter):
            @dataclass(kw_only=True, slots=True)
            class Config(ModelConfigConverter.Config):
                factor: float = 0.5
        """,
    "torchtitan/components/__init__.py": "from .part import Fast, Slow\n",
    "torchtitan/components/part.py": """
        from dataclasses import dataclass

        class BasePart:
            @dataclass(kw_only=True, slots=True)
            class Config:
                size: int = 1

        class Fast(BasePart):
            @dataclass(kw_only=True, slots=True)
            class Config(BasePart.Config):
                turbo: bool = True

        class Slow(BasePart):
            @dataclass(kw_only=True, slots=True)
            class Config(BasePart.Config):
                size: int = 7
                delay: int | None = None
        """,
    "torchtitan/components/optimizer.py": "def default_adamw(lr: float = 1e-3, **kwargs):\n    return lr\n",
    "torchtitan/models/__init__.py": "",
    "torchtitan/models/ours/__init__.py": """
        from torchtitan.models.parts import Block, Model, Norm, Spec

        def _tiny(wide: bool = False):
            dim = 8 if wide else 4
            return Model.Config(dim=dim, vocab_size=16, norm=Norm.Config(), layers=[Block.Config() for _ in range(3)])

        ours_configs = {"tiny": _tiny, "wide": lambda: _tiny(wide=True)}

        def model_registry(flavor: str, converters: list | None = None):
            return Spec(name="ours", flavor=flavor, model=ours_configs[flavor]())
        """,
    "torchtitan/models/parts.py": """
        from dataclasses import dataclass

        class Norm:
            @dataclass(kw_only=True, slots=True)
            class Config:
                eps: float = 1e-5

        class Block:
            @dataclass(kw_only=True, slots=True)
            class Config:
                attention: object = None
                feed_forward: object = None
                moe: object = None

        class Model:
            @dataclass(kw_only=True, slots=True)
            class Config:
                dim: int
                vocab_size: int
                norm: Norm.Config
                layers: list
                enable_weight_tying: bool = False

        @dataclass
        class Spec:
            name: str
            flavor: str
            model: Model.Config
        """,
    "torchtitan/trainer.py": """
        from dataclasses import dataclass, field
        from torchtitan.components import Slow
        from torchtitan.components.part import BasePart
        from torchtitan.config import Train

        class Trainer:
            @dataclass(kw_only=True, slots=True)
            class Config:
                model_spec: object = None
                folder: str = "out"
                train: Train = field(default_factory=Train)
                part: BasePart.Config = field(default_factory=lambda: Slow.Config(delay=3))
                spare: BasePart.Config | None = None
        """,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upstream")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def test_extraction_rules(root: Path) -> None:
    entries = {entry.address: entry for entry in extract(SourceTree(root))}
    facts = {name: (item.kind, item.default, item.choices, item.conditional) for name, item in entries.items()}
    assert facts == {
        "folder": ("str", "out", None, None),
        "model_spec.converters": ("list", None, ("Halve",), None),
        "model_spec.converters.Halve.factor": ("float", 0.5, None, "Halve"),
        "model_spec.converters.Halve.on": ("bool", False, None, "Halve"),
        "model_spec.flavor": ("str", None, None, None),
        "model_spec.name": ("str", None, ("ours",), None),
        "part": ("class", "Slow", ("Fast", "Slow"), None),
        "part.delay": ("int", 3, None, "Slow"),
        "part.size": ("int", 7, None, None),
        "part.turbo": ("bool", True, None, "Fast"),
        "spare": ("class", None, ("Fast", "Slow"), None),
        "spare.delay": ("int", None, None, "Slow"),
        "spare.size": ("int", 1, None, "Fast|Slow"),
        "spare.turbo": ("bool", True, None, "Fast"),
        "train.kind": ("str", "a", ("a", "b"), None),
        "train.names": ("str", ["out"], None, None),
        "train.steps": ("int", 10, None, None),
    }
    assert entries["spare"].optional
    assert not entries["part"].optional
    assert entries["folder"].flags == ("--folder",)


def test_extraction_of_flavors(root: Path) -> None:
    families, aliases = extract_flavors(SourceTree(root))
    common = {"vocab_size": 16, "enable_weight_tying": False, "n_layers": 3, "norm_eps": 1e-5}
    assert aliases == {}
    assert families == {
        "ours": {
            name: {"args_class": "torchtitan.models.parts.Model.Config", "args": {"dim": dim, **common}}
            for name, dim in (("tiny", 4), ("wide", 8))
        }
    }


def test_extraction_of_classes(root: Path) -> None:
    text = generate_classes("9.9.9", root)
    assert '"torchtitan.components.part.Slow.Config": {"imports": ["torchtitan.components.Slow",' in text
    assert (
        '"torchtitan.components.optimizer.default_adamw": {"parameters": {"lr": {"default": 0.001}, "**": {}}}' in text
    )
