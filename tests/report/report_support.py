"""What the tests of reports share: migrations of real-sized configurations, and how a report is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from example_cases import EXAMPLES, Case, cases

from translator.source import Source

MIGRATIONS = (
    "llama3-8b-megatron-to-torchtitan@0.2.2",
    "llama3-8b-torchtitan-to-megatron@0.18.0",
    "llama3-8b-torchtitan-to-deepspeed@0.19.2",
    "llama3-70b-megatron-to-torchtitan@0.2.2",
    "llama3-70b-megatron-to-deepspeed@0.19.2",
    "llama3-405b-megatron-to-torchtitan@0.2.2",
    "llama3-405b-torchtitan-to-megatron@0.18.0",
    "mixtral-8x7b-megatron-to-torchtitan@0.2.2",
    "mixtral-8x7b-megatron-to-deepspeed@0.19.2",
    "deepseek-v3-megatron-to-torchtitan@0.2.2",
    "deepseek-v3-torchtitan-to-megatron@0.18.0",
)


@dataclass(frozen=True)
class Migration:
    """An example with one of its targets."""

    case: Case

    @property
    def stored(self) -> Path:
        """The folder of the stored report."""
        return self.case.folder / f"report-{self.case.target.replace('@', '-')}"

    def words(self) -> list[str]:
        """The command line, from the folder of the example."""
        case, options = self.case, self.case.options
        words = ["report", case.source, "--from", case.framework, "--to", case.target]
        words += ["--world-size", str(options.world_size)] if options.world_size is not None else []
        words += ["--model", options.model] if options.model is not None else []
        words += [word for name, value in options.variables.items() for word in ("--set", f"{name}={value}")]
        words += [word for value in options.positional for word in ("--arg", value)]
        return [*words, *(f"{name}={value}" for name, value in options.overrides.items())]


def migrations() -> list[Migration]:
    """The migrations whose reports are stored."""
    known = {case.name: case for case in cases()}
    return [Migration(known[name]) for name in MIGRATIONS]


def stored_folders() -> set[Path]:
    """Folders of stored reports."""
    return set(EXAMPLES.glob("*/report-*"))


def source_of(case: Case) -> Source:
    """The source of an example, with the files beside it."""
    names = [path for path in case.folder.iterdir() if path.is_file() and path.name not in (case.source, "case.yaml")]
    text = (case.folder / case.source).read_text(encoding="utf-8")
    return Source(case.source, text, siblings={path.name: path.read_text(encoding="utf-8") for path in names})
