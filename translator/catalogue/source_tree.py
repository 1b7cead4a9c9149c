"""Parsed upstream modules: which names a module defines and imports. Nothing is imported or executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from translator.errors import SourceError


@dataclass(slots=True)
class Module:
    """One parsed module and the names that it defines or imports anywhere in it."""

    name: str
    path: str
    package: str
    tree: cst.Module
    wrapper: MetadataWrapper
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    assigns: dict[str, cst.BaseExpression] = field(default_factory=dict)
    classes: dict[str, cst.ClassDef] = field(default_factory=dict)
    functions: dict[str, cst.FunctionDef] = field(default_factory=dict)

    def line(self, node: cst.CSTNode) -> int:
        """Line of a node, from 1."""
        return int(self.wrapper.resolve(PositionProvider)[node].start.line)

    def place(self, node: cst.CSTNode) -> str:
        """``file:line`` of a node."""
        return f"{self.path}:{self.line(node)}"


def dotted(node: cst.BaseExpression | None) -> str:
    """``a.b.c`` for a name or an attribute chain; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""


class _Names(cst.CSTVisitor):
    """Collects imports everywhere, definitions at the top level only."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.depth = 0

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:  # noqa: N802
        base = dotted(node.module)
        if node.relative:
            parts = self.module.package.split(".")
            parts = parts[: len(parts) - len(node.relative) + 1]
            base = ".".join([*parts, base] if base else parts)
        if isinstance(node.names, cst.ImportStar):
            return
        for alias in node.names:
            bound = dotted(alias.asname.name) if alias.asname else dotted(alias.name)
            self.module.imports.setdefault(bound, (base, dotted(alias.name)))

    def visit_Import(self, node: cst.Import) -> None:  # noqa: N802
        for alias in node.names:
            name = dotted(alias.name)
            if alias.asname:
                self.module.imports.setdefault(dotted(alias.asname.name), (name, None))
            else:
                self.module.imports.setdefault(name.split(".")[0], (name.split(".")[0], None))

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802
        if self.depth == 0:
            self.module.classes[node.name.value] = node
        self.depth += 1

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:  # noqa: N802
        self.depth -= 1

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        if self.depth == 0:
            self.module.functions[node.name.value] = node
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:  # noqa: N802
        self.depth -= 1

    def visit_Assign(self, node: cst.Assign) -> None:  # noqa: N802
        if self.depth == 0:
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.module.assigns[target.target.value] = node.value

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:  # noqa: N802
        if self.depth == 0 and isinstance(node.target, cst.Name) and node.value is not None:
            self.module.assigns[node.target.value] = node.value


@dataclass(frozen=True, slots=True)
class ClassRef:
    """A class definition and the module that it stands in."""

    module: Module
    node: cst.ClassDef

    @property
    def name(self) -> str:
        """The class name."""
        return self.node.name.value

    def decorated_as_dataclass(self) -> bool:
        """Whether ``@dataclass`` (bare, called, or reached through a module) decorates the class."""
        for decorator in self.node.decorators:
            target = decorator.decorator
            name = dotted(target.func if isinstance(target, cst.Call) else target)
            if name.rsplit(".", 1)[-1] == "dataclass":
                return True
        return False


class SourceTree:
    """A folder with an upstream package; modules are parsed when first asked for."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder")
        self.root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module of a dotted name, or ``None`` when the tree does not hold it.

        Raises `SourceError` when the file is not Python.
        """
        if name not in self._modules:
            self._modules[name] = self._parse(name)
        return self._modules[name]

    def require(self, name: str) -> Module:
        """Like `module`, but a missing one raises `SourceError`."""
        found = self.module(name)
        if found is None:
            raise SourceError(f"{self.root} has no {name.replace('.', '/')}.py", fix="give the root of the source tree")
        return found

    def _parse(self, name: str) -> Module | None:
        base = self.root.joinpath(*name.split("."))
        package = name
        path = base / "__init__.py"
        if not path.is_file():
            path = base.with_name(base.name + ".py")
            package = name.rpartition(".")[0]
        if not path.is_file():
            return None
        try:
            text = path.read_bytes()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)  # judges first: libcst ends the process where nesting exhausts its stack
            tree = cst.parse_module(text)
        except (cst.ParserSyntaxError, SyntaxError, OSError, ValueError, RecursionError, MemoryError) as error:
            why = str(error).splitlines()[0] if str(error) else "nested too deeply"
            raise SourceError(f"{path} cannot be read as Python: {why}") from error
        wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
        module = Module(name, path.relative_to(self.root).as_posix(), package, wrapper.module, wrapper)
        wrapper.module.visit(_Names(module))
        return module

    def follow(self, module: Module, name: str, seen: int = 0) -> tuple[Module, str] | None:
        """Where a name is defined, through imports and re-exports: the module and its name there."""
        if name in module.classes or name in module.functions or name in module.assigns:
            return module, name
        if name not in module.imports or seen > 12:
            return None
        base, attribute = module.imports[name]
        target = self.module(base)
        if attribute is None or target is None:
            return None
        return self.follow(target, attribute, seen + 1)

    def class_of(self, module: Module, name: str) -> ClassRef | None:
        """The class that a name means in a module, if the tree defines it."""
        found = self.follow(module, name)
        if found and found[1] in found[0].classes:
            return ClassRef(found[0], found[0].classes[found[1]])
        return None

    def bases(self, ref: ClassRef) -> Iterator[ClassRef]:
        """The base classes that the tree defines, in order of appearance."""
        for argument in ref.node.bases:
            base = self.class_of(ref.module, dotted(argument.value))
            if base is not None:
                yield base

    def enum_members(self, ref: ClassRef) -> dict[str, cst.BaseExpression] | None:
        """Names and value expressions of an Enum's members; ``None`` for any other class."""
        names = [dotted(argument.value).rsplit(".", 1)[-1] for argument in ref.node.bases]
        if not any(name in {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"} for name in names):
            return None
        members: dict[str, cst.BaseExpression] = {}
        for line in ref.node.body.body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, cst.Name):
                    members[statement.targets[0].target.value] = statement.value
        return members
