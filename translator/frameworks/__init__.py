"""The frameworks that ttx knows, each in a folder of its own; loaded when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from translator import foreign
from translator.errors import SourceError, UsageError
from translator.frameworks.base import Framework, Launching, Programmed, Suffixed
from translator.source import Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from translator.shell.launchers import Launcher

BUILT_IN = {
    "megatron": "translator.frameworks.megatron.framework",
    "torchtitan": "translator.frameworks.torchtitan.framework",
    "deepspeed": "translator.frameworks.deepspeed.framework",
}
ENTRY_POINT_GROUP = "ttx.frameworks"
_SURE, _LIKELY = 0.5, 0.2  # of what `Framework.sniff` says


def _third_party() -> EntryPoints:
    from importlib.metadata import entry_points  # loads the mail parser, so only when asked for

    return entry_points(group=ENTRY_POINT_GROUP)


@cache
def names() -> tuple[str, ...]:
    """Names of all frameworks, third parties' included."""
    return (
        *BUILT_IN,
        *sorted(point.name for point in _third_party() if point.name not in BUILT_IN),
    )


@cache
def get(name: str) -> Framework:
    """The framework called ``name``. Raises UsageError with the known names."""
    if name in BUILT_IN:
        framework: Framework = import_module(BUILT_IN[name]).FRAMEWORK
        return framework
    for point in _third_party():
        if point.name == name:
            return _loaded(point)
    raise UsageError(f"unknown framework {name!r}", fix=f"known: {', '.join(names())}")


def _loaded(point: EntryPoint) -> Framework:
    try:
        found: Framework = point.load()
    except Exception as error:
        owner = point.dist.name if point.dist else "a package"
        message = f"the framework {point.name} of {owner} cannot be loaded: {error}"
        raise UsageError(message, fix=f"update or remove {owner}") from None
    return found


def launchers() -> Mapping[str, Launcher]:
    """Programs that start training, by name: those of no framework, and those that the built-in ones bring.

    A third party's reader adds its own to them for `translator.shell.evaluate`: looking for others takes time.
    """
    from translator.shell.launchers import LAUNCHERS

    found = dict(LAUNCHERS)
    for framework in map(get, BUILT_IN):
        if isinstance(framework, Launching):
            found |= framework.launchers()
    return found


def every() -> list[Framework]:
    """All frameworks, third parties' included, which takes time. Raises UsageError for one that cannot be loaded."""
    return [get(name) for name in names()]


def resolve(address: str) -> tuple[Framework, str | None]:
    """``name`` or ``name@version`` to a framework and the version asked for. Raises UsageError."""
    name, _, version = address.partition("@")
    framework = get(name)
    if not version:
        return framework, None
    if version not in framework.versions:
        raise UsageError(
            f"{framework.title} {version} is not known", fix=f"known versions: {', '.join(framework.versions)}"
        )
    return framework, version


def with_version(name: str, output: str | None, preferred: Mapping[str, str]) -> str:
    """``name@version`` where something speaks for a version: the suffix of the output file, or a preference.

    Raises UsageError for an unknown framework.
    """
    framework = get(name)
    suffixes = framework.output_suffixes if isinstance(framework, Suffixed) else {}
    version = next((found for suffix, found in suffixes.items() if (output or "").endswith(suffix)), None)
    version = version or preferred.get(name)
    return f"{name}@{version}" if version else name


def detect(source: Source) -> Framework:
    """The framework whose reader recognises the text. Raises SourceError when none does."""
    ours = [get(name) for name in BUILT_IN]
    asked = [framework for framework in ours if _may_read(framework, source)]
    scores = [framework.sniff(source) for framework in asked]
    best = max(scores, default=0.0)
    if best < _SURE:
        # Others' frameworks are only asked where ours are not sure: looking for them takes time.
        for framework in every()[len(BUILT_IN) :]:
            if _may_read(framework, source) and framework.sniff(source) >= _SURE:
                return framework
        unread = foreign.kind(source, [] if asked else [each.title for each in ours if isinstance(each, Programmed)])
        if unread is not None:
            raise SourceError(f"{source.name} looks like {unread}", fix="name another reader with --from")
    if best < _LIKELY:
        raise SourceError(
            f"{source.name} is not recognised as a configuration of {', '.join(each.title for each in ours)}",
            fix="name it with --from FRAMEWORK[@VERSION]",
        )
    return asked[scores.index(best)]


def _may_read(framework: Framework, source: Source) -> bool:
    """Whether the text can be the framework's at all: most are not configured by a program."""
    if not source.name.lower().endswith(foreign.PROGRAMS):
        return True
    return isinstance(framework, Programmed) and framework.programs(source)
