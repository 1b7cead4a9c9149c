"""The rules by which Megatron-LM's options are extracted, on small sources of our own."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError, UsageError
from translator.frameworks.catalogues import generate
from translator.frameworks.megatron.extract import extract

ENUMS = """
    import enum

    class Backend(enum.Enum):
        fast = 1
        exact = 2

    class Strictness(enum.Enum):
        LAX = "lax"
        HARD = "hard"
"""
BASE = """
    from dataclasses import dataclass
    from typing import ClassVar, Optional
    from megatron.enums import Backend
    from megatron.limits import LARGE

    @dataclass
    class Base:
        world: int = 1
        shared: bool = False
        ratio: Optional[float] = None
        kind_count: ClassVar[int] = 3
"""
CONFIG = """
    import signal
    from dataclasses import dataclass, field
    from typing import Callable, List, Literal, Optional
    from megatron.base import LARGE, Backend, Base

    @dataclass(kw_only=True)
    class Model(Base):
        layers: int = field(default=0, metadata={"argparse_meta": {"default": None}})
        eps: float = field(default=1e-5, metadata={"argparse_meta": {"arg_names": ["--norm-eps", "--norm-epsilon"]}})
        add_bias: bool = field(default=True, metadata={"argparse_meta": {"arg_names": ["--disable-bias"]}})
        fuse_ops: bool = True
        tie: bool = False
        maybe: Optional[bool] = None
        mode: Literal["small", "large"] = "small"
        level: Literal[1, 2] | None = None
        names: list[str] | None = None
        sizes: List[int] = field(default_factory=list)
        pair: list[str] = field(default_factory=lambda: ["a", "b"])
        backend: Backend = Backend.fast
        stop: signal.Signals = signal.SIGTERM
        scale: float = 2**4 * 1.5
        limit: int = LARGE
        window: float = float("inf")
        either: int | str | None = field(
            default=None, metadata={"argparse_meta": {"type": str, "nargs": "+", "dest": "elsewhere"}}
        )
        scope: Backend | None = field(
            default=None,
            metadata={"argparse_meta": {"type": str, "choices": [member.name for member in Backend]}},
        )
        hidden_state: int = field(init=False, default=7)
        hook: Optional[Callable] = None
        world: int = 4
"""
ARGUMENTS = """
    import argparse
    import os
    from megatron.enums import Backend, Strictness
    from megatron.more import add_more

    DEFAULT_STEPS = 2**32

    def add_megatron_arguments(parser: argparse.ArgumentParser):
        parser = _add_model(parser)
        parser = _add_plain(parser)
        parser = add_more(parser)
        return parser

    def _never_called(parser):
        parser.add_argument("--never")
        return parser

    def _list_type(text):
        return text.split(",")

    def _add_model(parser):
        from megatron.config import Model
        exclude = ["hook"]
        factory = ArgumentGroupFactory(Model, exclude=exclude)
        group = factory.build_group(parser, "model")
        group.add_argument("--late", action="store_true")
        return parser

    def _add_plain(parser):
        group = parser.add_argument_group(title="plain")
        group.add_argument("--hidden-size", "--width", type=int, default=None, help="prose " "prose")
        group.add_argument("--no-thing", action="store_false", dest="thing")
        group.add_argument("--max-requests", type=int, default=8, dest="max_batch")
        group.add_argument("--max-batch", type=int, default=9)
        group.add_argument("--both", action=argparse.BooleanOptionalAction, required=False, default=True)
        group.add_argument("--steps", type=int, default=DEFAULT_STEPS)
        group.add_argument("--small", type=float, default=-1e-3)
        group.add_argument("--as-text", type=int, default="12")
        group.add_argument("--local-rank", type=int, default=int(os.getenv("LOCAL_RANK", "0")))
        group.add_argument("--host", default=os.environ.get("HOST_NAME"))
        group.add_argument("--today", default=read_clock())
        group.add_argument("--strict", type=str, default=Strictness.LAX.value, choices=[e.value for e in Strictness])
        group.add_argument("--stage", type=int, default=0, choices=range(0, 3))
        group.add_argument("--custom", nargs="*", type=_list_type, default=["p"])
        group.add_argument("--attend", type=lambda text: Backend[text], default=Backend.exact, choices=list(Backend))
        group.add_argument("--preset", action="store_const", const="big", dest="size")
        group.add_argument("--silent", default=argparse.SUPPRESS)
        group.add_argument("--items", action="append", type=str)
        return parser
"""
MORE = """
    def add_more(parser):
        try:
            from kit import HAVE_KIT
        except ImportError:
            HAVE_KIT = False
        if HAVE_KIT:
            one_of = parser.add_mutually_exclusive_group(required=False)
            one_of.add_argument("--kit-file", type=str, default=None)
        ArgumentGroupFactory(Faults).build_group(parser, "faults")
        return parser

    from dataclasses import dataclass

    @dataclass
    class Faults:
        faults: int = 0
"""
POST = """
    def add_modelopt_args(parser):
        group = parser.add_argument_group(title="post")
        group.add_argument("--export-it", action="store_true")
"""
FILES = {
    "megatron/enums.py": ENUMS,
    "megatron/base.py": BASE,
    "megatron/limits.py": "LARGE = 1_000 * 1000\n",
    "megatron/config.py": CONFIG,
    "megatron/more.py": MORE,
    "megatron/training/arguments.py": ARGUMENTS,
    "megatron/post_training/arguments.py": POST,
}


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    root = write_tree(tmp_path_factory.mktemp("upstream"), FILES)
    return {entry.key: entry for entry in extract(SourceTree(root))}


def test_only_what_the_entry_function_reaches_is_an_option(entries: dict[str, Entry]) -> None:
    assert "--never" not in entries
    assert {"--late", "--faults", "--world"} <= entries.keys()
    assert len(entries) == 43  # 21 of Model, 18 plain, --late, --kit-file, --faults, --export-it


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("--hidden-size", {"flags": ("--hidden-size", "--width"), "address": "hidden_size", "kind": "int"}),
        ("--no-thing", {"address": "thing", "action": "store_false", "default": True, "arity": 0, "kind": "bool"}),
        ("--both", {"flags": ("--both", "--no-both"), "action": "BooleanOptionalAction", "default": True}),
        ("--steps", {"default": 2**32}),
        ("--small", {"default": -1e-3, "kind": "float"}),
        ("--as-text", {"default": 12}),
        ("--local-rank", {"default": 0, "default_known": False, "dynamic": "env:LOCAL_RANK"}),
        ("--host", {"default": None, "default_known": False, "dynamic": "env:HOST_NAME", "kind": "str"}),
        ("--today", {"default": None, "default_known": False, "dynamic": "read_clock"}),
        ("--strict", {"default": "lax", "choices": ("lax", "hard")}),
        ("--stage", {"choices": (0, 1, 2)}),
        ("--custom", {"kind": "custom", "type_name": "_list_type", "arity": "*", "default": ["p"]}),
        ("--attend", {"kind": "enum", "type_name": "Backend", "default": "exact", "choices": ("fast", "exact")}),
        ("--preset", {"action": "store_const", "const": "big", "address": "size", "arity": 0, "default": None}),
        ("--silent", {"default_known": False, "dynamic": "suppressed"}),
        ("--items", {"action": "append"}),
        ("--kit-file", {"conditional": "kit"}),
        ("--faults", {"conditional": None, "default": 0}),
        ("--export-it", {"conditional": "modelopt", "action": "store_true"}),
    ],
)
def test_plain_argument(entries: dict[str, Entry], key: str, expected: dict[str, Any]) -> None:
    found = entries[key]
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("--world", {"default": 4, "address": "world"}),
        ("--shared", {"action": "store_true", "default": False, "arity": 0}),
        ("--ratio", {"kind": "float", "default": None}),
        ("--layers", {"default": None, "kind": "int"}),
        ("--norm-eps", {"flags": ("--norm-eps", "--norm-epsilon"), "address": "eps", "default": 1e-5}),
        ("--disable-bias", {"flags": ("--disable-bias",), "address": "add_bias", "action": "store_false"}),
        ("--no-fuse-ops", {"flags": ("--no-fuse-ops", "--disable-fuse-ops"), "address": "fuse_ops", "default": True}),
        ("--tie", {"action": "store_true"}),
        ("--no-maybe", {"action": "store_false", "default": None}),
        ("--mode", {"kind": "str", "choices": ("small", "large"), "default": "small"}),
        ("--level", {"kind": "int", "choices": (1, 2), "default": None}),
        ("--names", {"kind": "str", "arity": "+", "default": None}),
        ("--sizes", {"kind": "int", "arity": "+", "default": []}),
        ("--pair", {"default": ["a", "b"]}),
        ("--backend", {"kind": "enum", "default": "fast", "choices": ("fast", "exact")}),
        ("--stop", {"kind": "enum", "type_name": "Signals", "default": "SIGTERM", "choices": None}),
        ("--scale", {"default": 24.0}),
        ("--limit", {"default": 1_000_000}),
        ("--window", {"default": "inf"}),
        ("--either", {"kind": "str", "arity": "+", "address": "elsewhere"}),
        ("--scope", {"kind": "str", "choices": ("fast", "exact"), "default": None}),
    ],
)
def test_argument_made_from_a_dataclass(entries: dict[str, Entry], key: str, expected: dict[str, Any]) -> None:
    found = entries[key]
    assert {name: getattr(found, name) for name in expected} == expected


def test_excluded_and_computed_fields_are_no_options(entries: dict[str, Entry]) -> None:
    assert not {"hook", "hidden_state", "kind_count"} & {entry.address for entry in entries.values()}


def test_source_is_file_and_line(entries: dict[str, Entry]) -> None:
    assert entries["--tie"].source == f"megatron/config.py:{_line(CONFIG, 'tie: bool')}"
    place = f"megatron/training/arguments.py:{_line(ARGUMENTS, '--no-thing')}"
    assert entries["--no-thing"].source == place


def _line(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_the_first_registered_option_of_an_address_comes_first(entries: dict[str, Entry]) -> None:
    sharing = [entry.key for entry in entries.values() if entry.address == "max_batch"]
    assert sharing == ["--max-requests", "--max-batch"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("x = 1\n", "no add_megatron_arguments"),
        ("def add_megatron_arguments(:\n", "cannot be read as Python"),
        ("def add_megatron_arguments(parser):\n    parser.add_argument(**options)\n", "not static"),
        ("def add_megatron_arguments(parser):\n    parser.add_argument(name)\n", "not static"),
        ("def add_megatron_arguments(parser):\n    parser.add_argument('word')\n", "without flags"),
        ("def add_megatron_arguments(parser):\n    made.build_group(parser)\n", "unknown factory"),
        ("def add_megatron_arguments(parser):\n    f = ArgumentGroupFactory(Gone)\n", "does not define Gone"),
        ("def add_megatron_arguments(parser):\n    add_megatron_arguments(parser)\n", "calls itself"),
    ],
)
def test_what_cannot_be_extracted_is_refused_in_one_line(tmp_path: Path, arguments: str, said: str) -> None:
    write_tree(tmp_path, {"megatron/training/arguments.py": arguments})
    with pytest.raises(SourceError) as caught:
        extract(SourceTree(tmp_path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no megatron/training/arguments"):
        extract(SourceTree(tmp_path))
    with pytest.raises(SourceError, match="is not a folder"):
        extract(SourceTree(tmp_path / "missing"))
    with pytest.raises(UsageError, match="no extractor"):
        generate("unheard-of", "1", tmp_path)
