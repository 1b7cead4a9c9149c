"""Writes a Megatron-LM configuration as a launch script in bash.

The template holds the layout only; every value that reaches it is quoted here. A script reads back, word for word, to
the options that it was written from, and nothing in a value, a name or an origin is ever run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from translator.catalogue.model import Catalogue, history, load
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.megatron.words import CannotSayError, words_of
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE
from translator.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

    from translator.mapping.views import Sink

FRAMEWORK = "megatron"
MAIN = "train.sh"
DEFAULT_PROGRAM = "pretrain_gpt.py"
MOST_GPUS_PER_NODE = 8
COMMENT_COLUMN = 56
LONGEST_COMMENT = 160
DEFAULT_OF_SOURCE = "default of the source"

LAUNCH_SPELLINGS = {
    WORLD_SIZE: "--nproc_per_node x --nnodes",
    NODES: "--nnodes",
    GPUS_PER_NODE: "--nproc_per_node",
    ENVIRONMENT: "export",
    PROGRAM: "program",
}

# Arrays of the script, each with the leaf prefixes and, for options without a leaf, the name prefixes of its options.
# The first that fits counts.
GROUPS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("MOE_ARGS", ("model.moe.",), ("moe_",)),
    (
        "MODEL_ARGS",
        ("model.",),
        ("mup_", "use_mup", "hybrid_", "mamba_", "linear_", "dsa_", "mtp_", "yarn_", "qk_", "spec"),
    ),
    (
        "PARALLEL_ARGS",
        ("parallel.",),
        ("ddp_", "fsdp_", "megatron_fsdp_", "tp_comm_", "overlap_", "nccl_", "cpu_offloading_"),
    ),
    ("BATCH_ARGS", ("batch.",), ("decrease_batch",)),
    (
        "PRECISION_ARGS",
        ("precision.",),
        ("fp8_", "fp4_", "kitchen_", "te_precision_", "first_last_layers_", "num_layers_at_"),
    ),
    ("OPTIMIZER_ARGS", ("optimizer.", "loss."), ("muon_", "lion_", "head_lr_")),
    ("SCHEDULE_ARGS", ("schedule.",), ("use_checkpoint_opt", "iterations_to_skip", "exit_")),
    ("RECOMPUTE_ARGS", ("recompute.",), ("fine_grained_", "offload_modules", "activation_offload_")),
    (
        "DATA_ARGS",
        ("data.",),
        (
            *("data_", "train_data_", "valid_data_", "test_data_", "per_split_", "tokenizer_", "tiktoken_", "vocab_"),
            *("merge_file", "special_tokens", "metadata_path", "dataloader_", "fim_", "sft"),
        ),
    ),
    (
        "CHECKPOINT_ARGS",
        ("checkpoint.",),
        (
            *("ckpt_", "dist_ckpt_", "save_", "load_", "no_save_", "no_load_", "non_persistent_"),
            *("use_persistent_ckpt_", "async_", "pretrained_checkpoint", "auto_detect_"),
        ),
    ),
    (
        "LOGGING_ARGS",
        ("logging.",),
        ("log_", "logging_", "tensorboard_", "wandb_", "timing_", "profile_", "eval_", "one_logger_", "enable_one_"),
    ),
)
ORDER = ("MODEL_ARGS", *(name for name, _, _ in GROUPS if name != "MODEL_ARGS"), "OTHER_ARGS")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Names that bash holds fast, or that change how bash reads what follows.
_NOT_EXPORTED = frozenset(
    {"BASHOPTS", "BASHPID", "BASH_ENV", "BASH_VERSINFO", "ENV", "EUID", "IFS", "POSIXLY_CORRECT", "PPID", "SHELLOPTS"}
    | {"UID", "_"}
)
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Names that the script sets itself.
_OWN_NAMES = frozenset({"GPUS_PER_NODE", "NNODES", *ORDER})


@dataclass(slots=True)
class Group:
    """One array of the script: its name and its lines."""

    name: str
    lines: list[str] = field(default_factory=list)


def default(address: str, version: str) -> Any:
    """The catalogue's default of an option; None for what the version does not have."""
    catalogue = load(FRAMEWORK, version)
    return catalogue.default(address) if address in catalogue else None


def spelling(address: str, version: str) -> str:
    """The option as a user writes it: its first flag."""
    catalogue = load(FRAMEWORK, version)
    if address in catalogue:
        entry = catalogue.first(address)
        # A flag that says the opposite of its value would mislead where the value is shown beside it.
        return address if entry.action == "store_false" else entry.flags[0]
    if address in LAUNCH_SPELLINGS:
        return LAUNCH_SPELLINGS[address]
    return address if address.startswith("-") else f"--{address.replace('_', '-')}"


def must_state(address: str, value: Any, version: str) -> bool:
    """Whether a value is written out.

    It is when it differs from the default of the version, when that default depends on the machine, or when versions
    disagree about it: the reader of a script does not see which version will run it.
    """
    catalogue = load(FRAMEWORK, version)
    if address not in catalogue:
        return value is not None
    entry = catalogue.first(address)
    if not entry.default_known or history(FRAMEWORK).default_drifts(address):
        return value is not None
    return bool(_plain(value) != _plain(entry.default))


def render(
    sink: Sink,
    version: str,
    context: RenderContext,
    catalogue: Catalogue,
    fields_of: Callable[[str], tuple[str, ...]] = lambda _: (),
) -> Rendered:
    """The values of ``sink`` as a launch script.

    ``fields_of`` gives the spec leaves that an option feeds, by which the options are grouped. What no command line can
    say is left out, and a comment at the top says so.
    """
    notes: list[str] = []
    stated: dict[str, str] = {}
    lines: dict[str, list[tuple[str, str]]] = {}
    for address, value in sink.values.items():
        if address.startswith("@") or not must_state(address, value, version):
            continue
        try:
            words = words_of(catalogue.by_address(address), value)
        except CannotSayError as error:
            notes.append(f"Left out: {spelling(address, version)}; {safe(str(error))}")
            continue
        if words is not None:
            text = " ".join(quote(word) for word in words)
            stated[address] = text
            lines.setdefault(group_of(address, fields_of(address)), []).append((text, _comment(address, sink, context)))
    nodes, gpus = machines(sink.values)
    program = _program(sink.values.get(PROGRAM))
    exports = _exports(sink.values.get(ENVIRONMENT) or {}, notes)
    stated.update(_stated_launch(sink.values, nodes, gpus, program, exports))
    text = _template().render(
        version=version,
        ttx_version=__version__,
        source_name=safe(context.source_name),
        source_title=safe(context.source_title),
        notes=notes,
        exports=exports,
        gpus_per_node=_variable("GPUS_PER_NODE", gpus, "GPUs on each node"),
        nodes=_variable("NNODES", nodes, "number of nodes"),
        groups=[Group(name, _aligned(lines[name])) for name in ORDER if name in lines],
        program=program,
    )
    return Rendered(MAIN, {MAIN: text, **sink.files}, stated)


def machines(values: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Nodes and GPUs per node, as far as they are known; a bare world size is spread over nodes of at most eight."""
    world, nodes, gpus = values.get(WORLD_SIZE), values.get(NODES), values.get(GPUS_PER_NODE)
    if not world or (nodes and gpus and nodes * gpus == world):
        return nodes, gpus
    if gpus and world % gpus == 0:
        return world // gpus, gpus
    if nodes and world % nodes == 0:
        return nodes, world // nodes
    gpus = max(count for count in range(1, MOST_GPUS_PER_NODE + 1) if world % count == 0)
    return world // gpus, gpus


def group_of(address: str, fields: tuple[str, ...]) -> str:
    """The array that an option stands in."""
    for name, sections, prefixes in GROUPS:
        if fields[0].startswith(sections) if fields else address.startswith(prefixes):
            return name
    return "OTHER_ARGS"


def quote(word: str) -> str:
    """A word as bash reads it back; control characters are written as escapes, so that a line stays one line."""
    if not any(character < " " or character == "\x7f" for character in word):
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    for character in sorted(set(word)):
        if character < " " or character == "\x7f":
            escaped = escaped.replace(character, _ESCAPES.get(character) or f"\\x{ord(character):02x}")
    return f"$'{escaped}'"


def safe(text: str) -> str:
    """A text that may stand in a comment: one line, nothing that a terminal would act on, not too long."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
    return shown if len(shown) <= LONGEST_COMMENT else shown[: LONGEST_COMMENT - 3] + "..."


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _comment(address: str, sink: Sink, context: RenderContext) -> str:
    origin, remark = context.origin_of.get(address, ""), sink.remarks.get(address, "")
    parts = []
    if origin and origin != remark:
        parts.append(origin if origin == DEFAULT_OF_SOURCE else f"from {origin}")
    if remark:
        parts.append(remark)
    return safe("; ".join(parts))


def _aligned(lines: list[tuple[str, str]]) -> list[str]:
    width = max((len(text) for text, _ in lines if len(text) < COMMENT_COLUMN), default=0)
    return [f"{text:<{width}}  # {comment}" if comment else text for text, comment in lines]


def _program(value: Any) -> str:
    name = value if isinstance(value, str) and value.endswith(".py") and "\x00" not in value else DEFAULT_PROGRAM
    return quote(f"./{name}" if name.startswith("-") else name)


def _exports(environment: Mapping[str, Any], notes: list[str]) -> list[str]:
    lines = []
    for name, value in environment.items():
        if value is None or name in _OWN_NAMES:
            continue
        text = str(value)
        if not _NAME.match(name) or name in _NOT_EXPORTED or "\x00" in text:
            notes.append(f"Left out: environment variable {safe(name)}; it cannot be exported here")
        else:
            lines.append(f"export {name}={quote(text)}")
    return lines


def _variable(name: str, value: int | None, meaning: str) -> str:
    return f"${{{name}:?{meaning}}}" if value is None else f"${{{name}:-{value:d}}}"


def _stated_launch(
    values: Mapping[str, Any], nodes: int | None, gpus: int | None, program: str, exports: list[str]
) -> dict[str, str]:
    said = {
        NODES: f"NNODES={nodes}" if nodes else "",
        GPUS_PER_NODE: f"GPUS_PER_NODE={gpus}" if gpus else "",
        WORLD_SIZE: f"NNODES={nodes} GPUS_PER_NODE={gpus}" if nodes and gpus else "",
        ENVIRONMENT: "; ".join(exports),
        PROGRAM: program,
    }
    return {address: text for address, text in said.items() if text and address in values}


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from translator.resources import template_dir

    environment = Environment(
        loader=FileSystemLoader(template_dir()),
        autoescape=False,  # bash, not markup: values are quoted above
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    return environment.get_template("megatron/launch.sh.j2")
