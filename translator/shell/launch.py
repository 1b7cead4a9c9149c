"""From the words of a command to a launch: strip the launchers, keep what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from translator.findings import Place
from translator.shell.launchers import (
    BATCH,
    LAUNCHERS,
    NOT_TRAINING_MODULES,
    PYTHON_FLAGS_WITH_VALUE,
    SCRIPT,
    SHELLS,
    TWO_VALUES,
    Launcher,
)
from translator.shell.values import Chunk, Launch, Value, Word

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*\Z")
_PAIR = re.compile(r"([A-Za-z_]\w*)=")
_GRES = re.compile(r"gpu(?::[\w.-]+)??(?::(\d+))?(?:\(.*)?\Z")
MAX_STRIP = 20


@dataclass(frozen=True, slots=True)
class Context:
    """What the launchers stripped so far say."""

    names: tuple[str, ...] = ()
    said: dict[str, Value] = field(default_factory=dict)
    env: dict[str, Value] = field(default_factory=dict)
    inner: Launcher | None = None

    def number(self, role: str) -> Word | int | None:
        """What was said about a role: a number, or the word that cannot be one yet."""
        value = self.said.get(role)
        if value is None:
            return None
        return count(value)


@dataclass(frozen=True, slots=True)
class Shell:
    """A command that turns out to be a shell: a string of code, a script with arguments, or code on standard input.

    ``allocation`` is what a batch system is asked for on the command line, which counts before the script's own lines.
    """

    context: Context
    code: Value | None
    script: Value | None
    arguments: tuple[Value, ...]
    batch: bool = False
    allocation: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """A Python program and its arguments; ``module`` for ``-m``."""

    context: Context
    program: Value
    module: str | None
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """Any other command, its launchers stripped."""

    context: Context
    words: tuple[Value, ...]


def count(value: Value) -> Word | int | None:
    """A count as a number where it is one."""
    text = value.text.strip()
    place = value.chunks[0].place() if value.chunks else Place("", 1, 1)
    if value.known:
        low, _, high = text.partition(":")
        if low == high and low.isdigit():
            text = low
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        if not text:
            return None
    return value.word(place)


def base_name(text: str) -> str:
    """The last component of a path."""
    return text.rsplit("/", 1)[-1]


def strip(
    words: Sequence[Value], context: Context, launchers: Mapping[str, Launcher] = LAUNCHERS
) -> Program | Shell | Other:
    """Strip launchers from the front of a command."""
    for _ in range(MAX_STRIP):
        if not words:
            return Other(context, ())
        name = base_name(words[0].text)
        if _PYTHON.match(name) or (not words[0].known and name.lower().strip("${}\"'").endswith("python")):
            outcome = _python(words, context, launchers)
        elif name in SHELLS:
            return _shell(words, context)
        elif name in BATCH:
            return _batch(words, context)
        elif name in launchers:
            outcome = _launcher(name, launchers[name], words[1:], context)
            if launchers[name].joins and isinstance(outcome, tuple):
                return Shell(outcome[1], _joined(outcome[0]), None, ())
        elif _is_script(words[0]):
            return Program(context, words[0], None, tuple(words[1:]))
        else:
            return Other(context, tuple(words))
        if isinstance(outcome, (Program, Shell, Other)):
            return outcome
        words, context = outcome
    return Other(context, tuple(words))


def _joined(words: Sequence[Value]) -> Value:
    """Words with a space between, as another shell reads them."""
    chunks: list[Chunk] = []
    for word in words:
        if chunks:
            last = chunks[-1]
            chunks.append(Chunk(" ", last.source, last.offset))
        chunks.extend(word.chunks)
    return Value(chunks)


def _is_script(word: Value) -> bool:
    return word.text.endswith(".py")


def _named(context: Context, name: str) -> Context:
    return replace(context, names=(*context.names, name))


def _shell(words: Sequence[Value], context: Context) -> Shell | Other:
    at = 1
    while at < len(words) and words[at].text[:1] in {"-", "+"} and words[at].text not in {"-", "--"}:
        text = words[at].text
        if not text.startswith("--") and "c" in text[1:]:
            if at + 1 >= len(words):
                break
            return Shell(context, words[at + 1], None, tuple(words[at + 2 :]))
        at += 2 if text in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"} else 1
    if at < len(words) and words[at].text == "--":
        at += 1
    if at < len(words) and words[at].text != "-":
        return Shell(context, None, words[at], tuple(words[at + 1 :]))
    return Shell(context, None, None, tuple(words[at:]))


def _batch(words: Sequence[Value], context: Context) -> Shell:
    """``sbatch [options] script arguments``, or the script on standard input."""
    at, said, env = 1, dict(context.said), dict(context.env)
    code: Value | None = None
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        if words[at].text.startswith("--wrap="):
            code = _after(words[at], len("--wrap="))
        elif words[at].text == "--wrap" and at + 1 < len(words):
            code = words[at + 1]
        at = _option(LAUNCHERS["srun"], words, at, said, env)
    inner = Context(context.names, context.said, env)
    if code is not None:
        return Shell(inner, code, None, (), batch=True, allocation=said)
    script = words[at] if at < len(words) and words[at].text != "-" else None
    return Shell(inner, None, script, tuple(words[at + 1 :]), batch=True, allocation=said)


def _python(
    words: Sequence[Value], context: Context, launchers: Mapping[str, Launcher]
) -> Program | Other | tuple[Sequence[Value], Context]:
    at = 1
    while at < len(words):
        text = words[at].text
        if text.startswith("-m"):
            module, rest = (words[at + 1], at + 2) if text == "-m" and at + 1 < len(words) else (None, at + 1)
            name = module.text if module is not None else text[2:]
            if name in launchers:
                return _launcher(name, launchers[name], words[rest:], context)
            if name in NOT_TRAINING_MODULES or not name:
                return Other(context, tuple(words))
            return Program(_named(context, "python"), module or words[at], name, tuple(words[rest:]))
        if text.startswith("-c") or text == "-":
            return Other(context, tuple(words))
        if text in PYTHON_FLAGS_WITH_VALUE:
            at += 2
        elif text.startswith("-"):
            at += 1
        elif _is_script(words[at]) or not words[at].known or len(words) > at + 1:
            return Program(_named(context, "python"), words[at], None, tuple(words[at + 1 :]))
        else:
            break
    return Other(context, tuple(words))


def _launcher(
    name: str, launcher: Launcher, words: Sequence[Value], context: Context
) -> Program | Other | tuple[Sequence[Value], Context]:
    """Read one launcher's own options."""
    said, env = dict(context.said), dict(context.env)
    if launcher.once_per_node:
        for role in ("per_node", "tasks"):
            said.pop(role, None)
    at, module, bare, skip = 0, False, False, launcher.skip
    if launcher.subcommands:
        at = next((i + 1 for i, word in enumerate(words) if word.text in launcher.subcommands), -1)
        if at < 0:
            return Other(context, (*words,))
    while at < len(words):
        word = words[at]
        text = word.text
        if text == "--":
            at += 1
            break
        if launcher.assignments and not text.startswith("-") and (pair := _PAIR.match(text)):
            env[pair.group(1)] = _after(word, pair.end())
            at += 1
        elif text.startswith("-") and len(text) > 1:
            if text in launcher.module:
                module, at = True, at + 1
                continue
            bare = bare or text in launcher.bare
            at = _option(launcher, words, at, said, env)
        elif launcher.until_separator and any(later.text == "--" for later in words[at:]):
            at += 1
        elif skip:
            skip, at = skip - 1, at + 1
        elif launcher.takes == SCRIPT and not word.known and not _is_script(word) and not module and not bare:
            later = next((i for i in range(at, len(words)) if _is_script(words[i])), at)
            at = later
            break
        else:
            break
    inner = launcher if launcher.once_per_node else context.inner
    if launcher.once_per_node:
        for role, default in launcher.defaults.items():
            if role not in said or (role == "nodes" and said.get(role) is context.said.get(role)):
                said.pop(role, None)
                said[f"default_{role}"] = _number(default, words)
    context = Context((*context.names, launcher.shown or name), said, env, inner)
    rest = words[at:]
    if not rest:
        return Other(context, ())
    if module:
        return Program(context, rest[0], rest[0].text, tuple(rest[1:]))
    if launcher.takes == SCRIPT and not bare:
        return Program(context, rest[0], None, tuple(rest[1:]))
    return rest, context


def _number(number: int, words: Sequence[Value]) -> Value:
    from translator.shell.values import Chunk, Source

    return Value((Chunk(str(number), Source("", ""), 0),))


def _after(word: Value, at: int) -> Value:
    from translator.shell.state import slice_value

    return Value(slice_value(word, at, len(word.text)))


def _option(launcher: Launcher, words: Sequence[Value], at: int, said: dict[str, Value], env: dict[str, Value]) -> int:
    """Read one option; returns the index after it and its value."""
    word = words[at]
    text = word.text
    flag, equals, _ = text.partition("=")
    value: Value | None = None
    used = 1
    if equals and (text.startswith("--") or flag in launcher.roles):
        value = _after(word, len(flag) + 1)
    elif text in launcher.flags or text in launcher.bare:
        return at + 1
    elif not text.startswith("--") and len(text) > 2 and text[:2] in launcher.roles and text not in launcher.roles:
        flag, value = text[:2], _after(word, 2)
    elif not text.startswith("--") and len(text) > 2 and launcher.greedy and text not in launcher.roles:
        return at + 1
    elif (launcher.greedy or text in launcher.valued or text in launcher.roles) and at + 1 < len(words):
        value, used = words[at + 1], 2
        if flag in TWO_VALUES:
            used = 3
            if launcher.roles.get(flag) == "env" and at + 2 < len(words):
                env[value.text] = words[at + 2]
                return at + used
    role = launcher.roles.get(flag)
    if role == "env" and value is not None:
        _environment(value, env)
    elif role == "gpus_per_node" and value is not None:
        if flag == "--gres":
            hit = _GRES.match(value.text)
            if hit is not None and hit.group(1):
                said[role] = _after(value, hit.start(1)) if hit.end(1) == len(value.text) else value
        else:
            said[role] = _after(value, value.text.rfind(":") + 1)
    elif role is not None and value is not None:
        said[role] = value
    return at + used


def _environment(value: Value, env: dict[str, Value]) -> None:
    at = 0
    for piece in value.text.split(","):
        pair = _PAIR.match(piece)
        if pair is not None:
            whole = _after(value, at + pair.end())
            env[pair.group(1)] = whole if "," not in whole.text else _cut(whole, len(piece) - pair.end())
        at += len(piece) + 1


def _cut(value: Value, size: int) -> Value:
    from translator.shell.state import slice_value

    return Value(slice_value(value, 0, size))


def build(program: Program, env: dict[str, Word], allocation: dict[str, Value], place: Place) -> Launch:
    """A launch from a stripped command. ``allocation`` is what the scheduler was asked for."""
    context = program.context
    nodes, per_node, total = _sizes(context, env, allocation)
    return Launch(
        launcher=" ".join(context.names) or "python",
        program=program.program.word(place),
        module=program.module,
        argv=tuple(value.word(place) for value in program.arguments),
        env=env,
        nnodes=nodes,
        nproc_per_node=per_node,
        world_size=total,
        place=place,
    )


def _sizes(
    context: Context, env: dict[str, Word], allocation: dict[str, Value]
) -> tuple[Word | int | None, Word | int | None, int | None]:
    if context.inner is not None:
        nodes, per_node, tasks = context.number("nodes"), context.number("per_node"), context.number("tasks")
        nodes = context.number("default_nodes") if nodes is None else nodes
        per_node = context.number("default_per_node") if per_node is None else per_node
        return _complete(nodes, per_node, tasks, single=not context.inner.hosts)
    if "srun" in context.names:
        said = {**allocation, **context.said}
        if "tasks" in context.said and "per_node" not in context.said:
            said.pop("per_node", None)
        if "per_node" in context.said and "tasks" not in context.said:
            said.pop("tasks", None)
        merged = Context(context.names, said)
        return _complete(merged.number("nodes"), merged.number("per_node"), merged.number("tasks"), single=False)
    if any(name.startswith(("mpi", "orterun", "aprun")) for name in context.names):
        return _complete(None, context.number("per_node"), context.number("tasks"), single=False)
    world = env.get("WORLD_SIZE")
    if world is not None and world.text.isascii() and world.text.isdigit() and len(world.text) < 10:
        return None, None, int(world.text)
    return None, None, None


def _complete(
    nodes: Word | int | None, per_node: Word | int | None, tasks: Word | int | None, *, single: bool
) -> tuple[Word | int | None, Word | int | None, int | None]:
    if nodes is None and single:
        nodes = 1
    total = tasks if isinstance(tasks, int) else None
    if total is None and isinstance(nodes, int) and isinstance(per_node, int):
        total = nodes * per_node
    if total is not None and per_node is None and isinstance(nodes, int) and nodes and total % nodes == 0:
        per_node = total // nodes
    if total is not None and nodes is None and isinstance(per_node, int) and per_node and total % per_node == 0:
        nodes = total // per_node
    return nodes, per_node, total
