"""Extracts the keys of DeepSpeed's JSON configuration from its source.

Two kinds of section make up the file. *Strict* ones are pydantic models: unknown keys are refused and values are
checked (``runtime/config_utils.py:16`` at 0.19.2). *Lax* ones are looked up in plain dictionaries: what nobody asks for
is ignored, and no value is checked. `Entry.action` says which: ``strict``, ``lax``, ``open`` (a lax section whose other
keys are handed on as they are), ``deprecated`` (strict; ``const`` is the address that took over) or ``parameter`` (an
argument of the optimizer or scheduler class that the second flag names).

An address is the path in the JSON, by the alias where a key has one; flags are all paths that reach it.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import libcst as cst

from translator.catalogue.annotations import ValueType, read_annotation
from translator.catalogue.document import catalogue_text
from translator.catalogue.evaluate import EnumMember, Evaluator, NotStatic, keyword_arguments, positional_arguments
from translator.catalogue.model import Entry
from translator.catalogue.source_tree import ClassRef, SourceTree, dotted
from translator.errors import SourceError
from translator.frameworks.deepspeed.extract_walk import At, ConstantEvaluator, Path, Read, StarTree, Walker

STRICT, LAX, OPEN, DEPRECATED, PARAMETER = "strict", "lax", "open", "deprecated", "parameter"
CONFIG_MODULE = "deepspeed.runtime.config"
# Sections that are one value here: features beside training proper, each with a small language of its own.
WHOLE = frozenset(
    {"compression_training", "curriculum_learning", "eigenvalue", "progressive_layer_drop", "quantize_training"}
    | {"sparse_attention", "datastates_ckpt"}
    | {f"data_efficiency.{name}" for name in ("data_sampling.curriculum_learning", "data_routing.random_ltd")}
)
# Sections with two names: the other one, and the one of the address.
SAME = {"bfloat16": "bf16"}
# Annotations that `read_annotation` takes for classes of their own.
PLAIN_TYPES = {"Dict": "dict", "Path": "str"}
# Plain keys whose default is None, so that the source does not show what they hold.
KINDS = {
    "train_batch_size": "int",
    "train_micro_batch_size_per_gpu": "int",
    "gradient_accumulation_steps": "int",
    "steps_per_print": "int",
    "vocabulary_size": "int",
    "sequence_parallel_size": "int",
    "data_parallel_size": "int",
    "log_level": "str",
    "communication_data_type": "str",
    "optimizer.type": "str",
    "optimizer.legacy_fusion": "bool",
    "scheduler.type": "str",
    "activation_checkpointing.number_checkpoints": "int",
    "checkpoint.writer": "dict",
    "checkpoint.writer.data_parallel": "str",
    "data_types.grad_accum_dtype": "str",
    "data_types.param_dtype": "str",
    "data_types.buffer_dtype": "str",
    "torch_autocast.dtype": "str",
    "torch_autocast.lower_precision_safe_modules": "list",
    "flops_profiler.output_file": "str",
    "pipeline.use_reentrant": "bool",
}
# Keys that are read outside the configuration parser, with the file that reads them.
ELSEWHERE = {
    "data_parallel_size": ("deepspeed/__init__.py", '"data_parallel_size"'),
    "pipeline.use_reentrant": ("deepspeed/runtime/pipe/engine.py", "use_reentrant"),
}
# The classes whose arguments `scheduler.params` and `optimizer.params` hold.
PARAMETERS = (
    ("scheduler", "deepspeed.runtime.lr_schedules", "LRRangeTest"),
    ("scheduler", "deepspeed.runtime.lr_schedules", "OneCycle"),
    ("scheduler", "deepspeed.runtime.lr_schedules", "WarmupLR"),
    ("scheduler", "deepspeed.runtime.lr_schedules", "WarmupDecayLR"),
    ("scheduler", "deepspeed.runtime.lr_schedules", "WarmupCosineLR"),
    ("optimizer", "deepspeed.ops.adam.fused_adam", "FusedAdam"),
    ("optimizer", "deepspeed.ops.adam.cpu_adam", "DeepSpeedCPUAdam"),
    ("optimizer", "deepspeed.ops.lamb.fused_lamb", "FusedLamb"),
    ("optimizer", "deepspeed.ops.lion.fused_lion", "FusedLion"),
    ("optimizer", "deepspeed.ops.adagrad.cpu_adagrad", "DeepSpeedCPUAdagrad"),
)
PARAMETER_SECTIONS = frozenset({"optimizer.params", "scheduler.params"})
NOT_IN_JSON = frozenset({"self", "optimizer", "model_params", "params"})


def extract(tree: SourceTree) -> list[Entry]:
    """Every key of a DeepSpeed source tree, by address.

    Raises `SourceError` when the tree holds no ``DeepSpeedConfig``.
    """
    tree = StarTree(tree.root)
    module = tree.module(CONFIG_MODULE)
    ref = tree.class_of(module, "DeepSpeedConfig") if module is not None else None
    if ref is None:
        raise SourceError(f"{tree.root} has no DeepSpeedConfig", fix="give the root of an unpacked source distribution")
    evaluator = ConstantEvaluator(tree)
    walker = Walker(tree, evaluator, SAME)
    walker.run_class(ref, [At(())])
    entries = {
        entry.key: entry for path in walker.models for entry in _model(walker, walker.models[path], _spellings(path))
    }
    for entry in _lax(walker, tree):
        entries.setdefault(entry.key, entry)
    entries.update((entry.key, entry) for entry in _parameters(tree, evaluator))
    order = {entry.key: number for number, entry in enumerate(entries.values())}  # the usual class first
    return sorted(entries.values(), key=lambda entry: (entry.address, order[entry.key]))


def _spellings(path: Path) -> list[Path]:
    """A path, and what it is called by another name of its section."""
    return [path, *((other, *path[1:]) for other, name in SAME.items() if path[0] == name)]


def _inside(address: str, sections: frozenset[str]) -> bool:
    parts = address.split(".")
    return any(".".join(parts[:depth]) in sections for depth in range(1, len(parts)))


def _lax(walker: Walker, tree: SourceTree) -> Iterator[Entry]:
    """The keys of plain dictionaries; a key with keys below it is a section and no entry of its own."""
    models = frozenset(".".join(path) for path in walker.models)
    reads: dict[str, Read] = {}
    for read in walker.reads:
        known = reads.get(address := ".".join(read.path))
        if known is None or (read.stated and read.default is not None and known.default is None):
            reads[address] = read
    for address, (file, text) in ELSEWHERE.items():
        path = tree.root / file
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        line = next((number for number, content in enumerate(lines, 1) if text in content), None)
        if line is not None:
            reads.setdefault(address, Read(tuple(address.split(".")), None, True, f"{file}:{line}"))
    sections = frozenset(
        ".".join(address.split(".")[:depth]) for address in reads for depth in range(1, address.count(".") + 1)
    )
    for address, read in reads.items():
        whole = address in WHOLE
        if (
            address in models
            or address.endswith(".params")
            or _inside(address, models | WHOLE | PARAMETER_SECTIONS)
            or (address in sections and not whole)
        ):
            continue
        yield _lax_entry(address, read, walker.open, whole)


def _lax_entry(address: str, read: Read, opened: set[Path], whole: bool) -> Entry:
    default = None if whole else _json(read.default)
    kind = "dict" if whole else KINDS.get(address) or (type(default).__name__ if default is not None else "custom")
    section = read.path[:-1]
    action = OPEN if section and section in opened else LAX
    flags = tuple(".".join(path) for path in _spellings(read.path))
    return Entry(
        address, address, kind, action, flags, default, type_name=kind, optional=default is None, source=read.place
    )


def _model(walker: Walker, ref: ClassRef, paths: list[Path]) -> Iterator[Entry]:
    """The fields of a pydantic model and of the models inside it; ``paths`` are its spellings, best first."""
    for base in walker.tree.bases(ref):
        if base.name != "DeepSpeedConfigModel":
            yield from _model(walker, base, paths)
    for line in ref.node.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name):
                yield from _field(walker, ref, statement, statement.target.value, paths)


def _field(walker: Walker, ref: ClassRef, node: cst.AnnAssign, name: str, paths: list[Path]) -> Iterator[Entry]:
    options: dict[str, cst.BaseExpression] = {}
    default = node.value
    if isinstance(default, cst.Call) and dotted(default.func) == "Field":
        options = keyword_arguments(default)
        default = next(iter(positional_arguments(default)), options.get("default", options.get("default_factory")))
    evaluator = walker.evaluator
    alias = evaluator.value(options["alias"], ref.module) if "alias" in options else None
    spelled = [name] if alias is None else [alias, name]
    places = [(*path, word) for word in spelled for path in paths]
    inner = _nested(walker, ref, node.annotation.annotation)
    if inner is not None:
        yield from _model(walker, inner, places)
        return
    value = read_annotation(node.annotation.annotation, ref.module, evaluator)
    value = _by_value(value, node.annotation.annotation, ref, evaluator)
    extra = _extra(options, ref, evaluator)
    flags = tuple(".".join(place) for place in places)
    known, stated = _default(default, ref, evaluator)
    replaced = extra.get("new_param")
    yield Entry(
        flags[0],
        flags[0],
        PLAIN_TYPES.get(value.type_name, value.kind),
        DEPRECATED if extra.get("deprecated") else STRICT,
        flags,
        stated,
        known,
        None if known else "computed",
        value.choices,
        value.arity,
        ".".join((*paths[0], replaced)) if extra.get("deprecated") and replaced and " " not in replaced else None,
        " ".join([value.type_name, *_bounds(options, ref, evaluator)]),
        value.optional,
        None,
        ref.module.place(node),
    )


def _nested(walker: Walker, ref: ClassRef, annotation: cst.BaseExpression) -> ClassRef | None:
    if isinstance(annotation, cst.Subscript) and dotted(annotation.value) == "Optional":
        index = annotation.slice[0].slice
        annotation = index.value if isinstance(index, cst.Index) else annotation
    inner = walker.tree.class_of(ref.module, dotted(annotation)) if dotted(annotation) else None
    return inner if inner is not None and walker.is_model(inner) else None


def _by_value(value: ValueType, annotation: cst.BaseExpression, ref: ClassRef, evaluator: Evaluator) -> ValueType:
    """An enum by the values of its members, which is what the JSON holds."""
    owner = evaluator.tree.class_of(ref.module, dotted(annotation)) if value.kind == "enum" else None
    members = evaluator.members(owner) if owner is not None else None
    if not members:
        return value
    return replace(value, choices=tuple(dict.fromkeys(member.value for member in members)))


def _extra(options: dict[str, cst.BaseExpression], ref: ClassRef, evaluator: Evaluator) -> dict[str, Any]:
    node = options.get("json_schema_extra")
    found: dict[str, Any] = {}
    for element in node.elements if isinstance(node, cst.Dict) else ():
        if isinstance(element, cst.DictElement):
            try:
                key = evaluator.value(element.key, ref.module)
                found[str(key)] = evaluator.value(element.value, ref.module)
            except NotStatic:  # a lambda that converts the value
                continue
    return found


def _bounds(options: dict[str, cst.BaseExpression], ref: ClassRef, evaluator: Evaluator) -> list[str]:
    return [
        f"{name}={evaluator.value(options[name], ref.module):g}" for name in ("ge", "gt", "le", "lt") if name in options
    ]


def _default(node: cst.BaseExpression | None, ref: ClassRef, evaluator: Evaluator) -> tuple[bool, Any]:
    """Whether the default is known, and what it is."""
    if isinstance(node, cst.Lambda):
        node = node.body
    if node is None:
        return False, None
    if dotted(node).startswith("torch."):
        return True, dotted(node)
    try:
        return True, _json(evaluator.value(node, ref.module))
    except NotStatic:
        return False, None


def _json(value: Any) -> Any:
    if isinstance(value, EnumMember):
        return value.value
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else None


def _parameters(tree: SourceTree, evaluator: Evaluator) -> Iterator[Entry]:
    yield from _engine_parameters(tree, evaluator)
    for section, module_name, class_name in PARAMETERS:
        module = tree.module(module_name)
        ref = tree.class_of(module, class_name) if module is not None else None
        for statement in ref.node.body.body if ref is not None else ():
            if isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__":
                assert ref is not None
                for parameter in statement.params.params:
                    if parameter.name.value not in NOT_IN_JSON:
                        yield _parameter(section, class_name, parameter, ref, evaluator)


def _engine_parameters(tree: SourceTree, evaluator: Evaluator) -> Iterator[Entry]:
    """Arguments of the optimizer that the engine itself takes out before it builds one."""
    module = tree.require(CONFIG_MODULE)
    for name, default in (("TORCH_ADAM_PARAM", False),):
        if name in module.assigns:
            address = f"optimizer.params.{evaluator.value(cst.Name(name), module)}"
            flags = (f"optimizer.params.Adam.{address.rpartition('.')[2]}",)
            place = module.place(module.assigns[name])
            yield Entry(flags[0], address, "bool", PARAMETER, flags, default, type_name="bool", source=place)


def _parameter(section: str, class_name: str, node: cst.Param, ref: ClassRef, evaluator: Evaluator) -> Entry:
    name = node.name.value
    known, default = _default(node.default, ref, evaluator) if node.default is not None else (True, None)
    address = f"{section}.params.{name}"
    kind = type(default).__name__ if default is not None else "custom"
    flags = (f"{section}.params.{class_name}.{name}",)
    return Entry(
        flags[0],
        address,
        kind,
        PARAMETER,
        flags,
        default,
        known,
        None if known else "computed",
        type_name=kind,
        optional=node.default is None,
        source=ref.module.place(node),
    )


def generate(version: str, source: pathlib.Path) -> str:
    """The catalogue file of one version, as text. Raises `SourceError` for another tree."""
    return catalogue_text("deepspeed", version, extract(SourceTree(source)))
