"""Every file, symbol and line that is cited exists in the installed packages of the named versions.

Symbols are looked up in the syntax tree; nothing is imported. Lines that module constants and helpers put together are
found in the modules' own text, with the constants filled in.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from environments import PACKAGES, SHARED, default_root, environment, site_packages

from translator import frameworks
from translator.checking.pages import entries
from translator.communication import communication_of
from translator.comparison.page import version_of
from translator.comparison.registry import Place, concepts, ways_of
from translator.knowledge import knowledge_of
from translator.memory.sizes import job_of

pytestmark = pytest.mark.oracle

# A file with a line, and what says of which version: "core 0.18.0", "at 0.19.2", "torchtitan 0.2.2", "torch 2.13" ...
CITED = re.compile(
    r"(?<![\w./}-])(?P<file>\w[\w./-]*\.py):(?P<line>\d+)`*,?(?: at)? *\(?"
    r"(?:(?P<word>core|deepspeed|torchtitan|transformers|torch) )?(?P<version>\d+\.\d+(?:\.\d+)?)?",
    re.IGNORECASE,
)
CONSTANT = re.compile(r"\{(_?[A-Z][A-Z0-9_]*)\}")


# What stands in the repository and not in the wheel, and files of forks of an old layout.
NOT_IN_WHEELS = re.compile(r"pretrain_gpt\.py|megatron/(?!core/|training/).*")


class Citation(NamedTuple):
    """A line of a file at a version, and where it is cited."""

    where: str
    file: str
    line: int
    word: str
    version: str


def roots(framework: str, version: str) -> list[Path]:
    """Folders in which the files of a framework's version, and of what it stands on, are installed."""
    name = f"{framework}-{version}"
    if name not in PACKAGES:
        return []
    found = environment(name)
    if reason := found.missing():
        if os.environ.get("TTX_ORACLE_REQUIRED") == "1":
            pytest.fail(reason)
        return []
    return [found.source, site_packages(default_root() / SHARED)]


@cache
def resolved(framework: str, version: str, file: str) -> Path | None:
    """The installed file: from the root, from the package's folder, or the longest whose path ends so."""
    for root in roots(framework, version):
        for candidate in (root / file, root / framework / file):
            if candidate.is_file():
                return candidate
    folders = [root / package for package in (framework, "transformers", "torch") for root in roots(framework, version)]
    for folder in folders:
        found = [path for path in _files(folder) if path.as_posix().endswith(f"/{file}")]
        if found:
            return max(found, key=lambda path: path.stat().st_size)
    return None


@cache
def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(folder.rglob("*.py"))


@cache
def symbols(path: Path) -> frozenset[str]:
    """Functions, classes and methods of a module, however deep they stand in conditions."""
    return frozenset(_symbols(ast.parse(path.read_text(encoding="utf-8")), ""))


def _symbols(node: ast.AST, before: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield before + child.name
            if isinstance(child, ast.ClassDef):
                yield from _symbols(child, f"{before}{child.name}.")
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _symbols(child, before)


def installed(framework: str) -> None:
    if not roots(framework, frameworks.get(framework).default_version):
        pytest.skip(f"{framework} is not installed")


def missing(framework: str, place: Place) -> str:
    """What of a place is not there; nothing where it is."""
    path = resolved(framework, frameworks.get(framework).default_version, place.file)
    if path is None:
        return f"no file {place.file}"
    return "" if place.symbol in symbols(path) else f"no {place.symbol} in {place.file}"


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_every_place_of_the_source_guide_exists(framework: str) -> None:
    installed(framework)
    found = {(name, place) for name, way in ways_of(framework).items() for place in way.guide}
    assert len({name for name, _ in found}) == len(concepts())
    assert sorted(f"{name}: {what}" for name, place in found if (what := missing(framework, place))) == []


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_the_guide_names_the_versions_that_are_installed(framework: str) -> None:
    installed(framework)
    one = frameworks.get(framework)
    for package in {place.package for way in ways_of(framework).values() for place in way.guide}:
        version = version_of(one, package)
        folders = roots(framework, one.default_version)
        names = [path.name for root in folders for path in root.glob("*.dist-info")]
        pattern = re.compile(rf"{package}(_core)?-{re.escape(version)}(\+\w+)?\.dist-info", re.IGNORECASE)
        assert [name for name in names if pattern.fullmatch(name)], (package, version)


@pytest.mark.parametrize(
    ("file", "symbol", "what"),
    [
        ("megatron/core/nothing.py", "f", "no file"),
        ("megatron/core/utils.py", "no_such_function", "no no_such_function"),
        ("megatron/core/parallel_state.py", "RankGenerator.get_rank", "no RankGenerator.get_rank"),
        ("megatron/core/parallel_state.py", "RankGenerator.get_ranks", ""),
    ],
)
def test_a_place_that_is_not_there_is_found(file: str, symbol: str, what: str) -> None:
    installed("megatron")
    found = missing("megatron", Place(file, symbol))
    assert found.startswith(what)
    assert bool(found) == bool(what)


def cited(where: str, text: str) -> Iterator[Citation]:
    """The lines that a text cites."""
    for match in CITED.finditer(text):
        yield Citation(where, match["file"], int(match["line"]), (match["word"] or "").lower(), match["version"] or "")


def of_module(module: ModuleType) -> Iterator[Citation]:
    """The lines that a module cites, its own constants filled in."""

    def value(match: re.Match[str]) -> str:
        constant = getattr(module, match[1], None)
        return constant if isinstance(constant, str) else match[0]

    text = getsource(module)
    for _ in range(2):
        text = CONSTANT.sub(value, text)
    # What a line of text is broken by: the end of a string and the beginning of the next.
    text = re.sub(r'"\n\s*f?"', "", text)
    yield from cited(module.__name__, text)


def modules_of(framework: str) -> list[ModuleType]:
    """The modules in which a framework cites its source."""
    known = knowledge_of(framework)
    names = [*known.codes, *known.checks, *known.stances, known.communication]
    folder = Path(import_module(known.memory).__file__ or "").parent
    names += [known.memory, *(f"{known.memory}.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__")]
    return [import_module(name) for name in names]


def targets(framework: str, citation: Citation) -> list[tuple[str, str]]:
    """The installed frameworks and versions that a citation may be about: all, where no version is told."""
    first = citation.file.partition("/")[0]
    name = next((name for name in (citation.word, first) if name in frameworks.BUILT_IN), framework)
    if citation.word == "core":
        name = "megatron"
    version = citation.version
    if {citation.word, first} & {"transformers", "torch"}:
        name = "deepspeed" if "transformers" in (citation.word, first) else framework
        version = frameworks.get(name).default_version
    versions = [version] if version else frameworks.get(name).versions
    return [(name, one) for one in versions if roots(name, one)]


def wrong(framework: str, citation: Citation) -> str:
    """What is wrong with a citation; nothing where it is right, or its version is not installed."""
    if NOT_IN_WHEELS.fullmatch(citation.file):
        return ""
    found = targets(framework, citation)
    said = [_wrong(citation, *target) for target in found]
    if not said or not all(said):
        return ""
    # Where the version is not told, the line may be that of one which is not installed.
    elsewhere = not citation.version and len(found) < len(frameworks.get(found[0][0]).versions)
    return "" if elsewhere and "lines" in said[0] else said[0]


def _wrong(citation: Citation, framework: str, version: str) -> str:
    path = resolved(framework, version, citation.file)
    if path is None:
        return f"{citation.where}: {framework} {version} has no {citation.file}"
    count = len(path.read_text(encoding="utf-8").splitlines())
    if citation.line > count:
        return f"{citation.where}: {citation.file} of {framework} {version} has {count} lines, not {citation.line}"
    return ""


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_every_cited_line_exists(framework: str) -> None:
    installed(framework)
    found = {citation for module in modules_of(framework) for citation in of_module(module)}
    checked = [citation for citation in found if targets(framework, citation)]
    assert len(checked) > 100, "citations are no longer recognised"
    assert sorted({what for citation in checked if (what := wrong(framework, citation))}) == []


def test_every_line_that_the_documentation_of_codes_cites_exists() -> None:
    texts = [(str(entry["code"]), f"{entry['documentation']}\n{entry.get('by_default', '')}") for entry in entries()]
    found = {citation for code, text in texts for citation in cited(code, text)}
    # A version alone does not say of which framework; the file does, or the line of what one does by default.
    checked = [(name, one) for one in found for name in _said_by(one) if targets(name, one)]
    if not checked:
        pytest.skip("nothing is installed")
    assert len(checked) > 50
    assert sorted({what for name, one in checked if (what := wrong(name, one))}) == []


# A job on every axis, and what makes it communicate in other ways.
JOB: dict[str, Any] = {
    **{f"model.{name}": 8 for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")},
    **{f"model.moe.{name}": 8 for name in ("experts", "top_k", "ffn", "shared_ffn")},
    "model.moe.dense_layers": [0, 1, 2, 3],
    "model.tied_embeddings": True,
    "parallel.tensor": 2,
    "parallel.sequence_parallel": True,
    "parallel.context": 2,
    "parallel.pipeline.degree": 2,
    "parallel.expert": 2,
    "parallel.expert_tensor": 2,
    "parallel.data.degree": 8,
    "parallel.data.replicate": 2,
    "parallel.data.shard": 4,
    "batch.micro_batch": 1,
    "batch.accumulation": 4,
    "batch.seq_len": 64,
}
WAYS: list[dict[str, Any]] = [
    *({"parallel.data.sharding": sharding} for sharding in ("none", "optimizer", "optimizer_gradients", "full")),
    *({"parallel.context_method": method} for method in ("ring", "all_gather", "all_to_all")),
    *({"model.moe.dispatcher": dispatcher} for dispatcher in ("allgather", "alltoall", "flex")),
    {"parallel.sequence_parallel": False},
    {"parallel.loss_parallel": False},
    {"model.attention_kernel": "flex"},
    {"parallel.context": 1, "parallel.data.sharding": "none"},
]
VALUES: list[dict[str, Any]] = [
    {"tensor_parallel.autotp_size": 2},
    {"zero_optimization.stage": 1},
    {"zero_optimization.stage": 2},
    {"zero_optimization.stage": 3, "zero_optimization.mics_shard_size": 4},
]


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_every_line_that_a_transfer_cites_exists(framework: str) -> None:
    installed(framework)
    version = frameworks.get(framework).default_version
    sources = {
        transfer.source
        for way, values in [*((way, {}) for way in WAYS), *(({}, values) for values in VALUES)]
        for transfer in communication_of(job_of(framework, version, {**JOB, **way}, values))
    }
    found = [citation for source in sources for citation in cited(source, source)]
    assert len(found) == len(sources) > 8
    assert all(targets(framework, citation) and citation.version for citation in found)
    assert sorted({what for citation in found if (what := wrong(framework, citation))}) == []


def _said_by(citation: Citation) -> list[str]:
    first = citation.file.partition("/")[0]
    named = [name for name in frameworks.BUILT_IN if name in (first, citation.word)]
    with_version = [name for name in frameworks.BUILT_IN if f"{name}-{citation.version}" in PACKAGES]
    return named or with_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("megatron/core/utils.py:12 (core 0.18.0)", ("megatron/core/utils.py", 12, "core", "0.18.0")),
        ("deepspeed/runtime/engine.py:9 at 0.19.2", ("deepspeed/runtime/engine.py", 9, "", "0.19.2")),
        ("``train.py:7`` (0.2.2)", ("train.py", 7, "", "0.2.2")),
        ("torch/x.py:3, torch 2.13", ("torch/x.py", 3, "torch", "2.13")),
        ("distributed/fsdp.py:54", ("distributed/fsdp.py", 54, "", "")),
    ],
)
def test_citations_are_recognised(text: str, expected: tuple[str, int, str, str]) -> None:
    assert [one[1:] for one in cited("", text)] == [expected]


def test_a_line_beyond_the_end_is_found() -> None:
    installed("megatron")
    assert "lines, not 999999" in wrong("megatron", Citation("x", "megatron/core/utils.py", 999999, "core", "0.18.0"))
    assert "has no" in wrong("megatron", Citation("x", "megatron/core/nothing.py", 1, "core", "0.18.0"))
