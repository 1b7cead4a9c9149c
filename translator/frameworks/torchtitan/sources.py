"""What a source of torchtitan's is: TOML, a Python configuration, or a script that launches one of the two."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from translator.errors import SourceError
from translator.frameworks.torchtitan import syntax_toml
from translator.native import Native

if TYPE_CHECKING:
    from translator.frameworks.torchtitan.launch_line import LaunchLine
    from translator.reading import ReadOptions
    from translator.source import Source

TOML, PYTHON, SCRIPT = "TOML", "Python", "a launch script"


def sniff(source: Source) -> float:
    """How surely the text is torchtitan's, from 0 to 1."""
    return max(_scores(source).values())


def _scores(source: Source) -> dict[str, float]:
    found = {TOML: syntax_toml.sniff(source.name, source.text)}
    if not source.name.endswith(".toml"):
        from translator.frameworks.torchtitan import launch_line, syntax_python

        found[PYTHON] = syntax_python.sniff(source.name, source.text)
        found[SCRIPT] = launch_line.sniff(source.name, source.text)
    return found


def kind(source: Source) -> str:
    """The kind of a source that is torchtitan's; by its name where the text says nothing."""
    if source.name.endswith((".py", ".toml")):
        return PYTHON if source.name.endswith(".py") else TOML
    scores = _scores(source)
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else TOML


def guess_version(source: Source) -> str:
    """The version that a text was written for. Raises `SourceError` when it cannot be read."""
    what = kind(source)
    if what == PYTHON:
        from translator.frameworks.torchtitan import syntax_python

        return syntax_python.guess_version(source.text)
    if what == TOML:
        return syntax_toml.guess_version(syntax_toml.paths(source.name, source.text), source.text)
    return _launched(source, None)[0]


def _launched(source: Source, options: ReadOptions | None) -> tuple[str, LaunchLine]:
    """The version of what a script launches, and the launch."""
    from translator.frameworks.torchtitan import launch_line, syntax_python

    line = launch_line.read_launch(
        source.name,
        source.text,
        variables=options.variables if options else {},
        positional=options.positional if options else (),
        launch_index=options.launch if options else None,
        read_sibling=source.read_sibling,
    )
    if not line.toml:
        return syntax_python.DEFAULT_VERSION, line
    name, text = launch_line.find_toml(line, source.read_sibling)
    return syntax_toml.guess_version(syntax_toml.paths(name, text), text), line


def read(source: Source, version: str, options: ReadOptions) -> Native:
    """Read a source into the options that it states. Raises `SourceError` when it cannot be read at all."""
    what = kind(source)
    if what == SCRIPT:
        return _read_script(source, version, options)
    _fits(what, version, source.name)
    if what == TOML:
        return _read_toml(source, version, options)
    from translator.frameworks.torchtitan import syntax_python

    return syntax_python.read_source(
        source.name,
        source.text,
        function=source.function,
        version=version,
        world_size=options.world_size,
        overrides=options.positional,
        variables=options.variables,
        read_sibling=source.read_sibling,
    )


def _fits(what: str, version: str, name: str) -> None:
    if what == PYTHON and version in syntax_toml.VERSIONS:
        message = f"{name} is Python, and torchtitan {version} is configured in TOML"
        raise SourceError(message, fix="name a version that is configured in Python, or none")
    if what == TOML and version not in syntax_toml.VERSIONS:
        message = f"{name} is no Python, and torchtitan {version} is configured in Python"
        raise SourceError(message, fix=f"--from torchtitan@{syntax_toml.DEFAULT_VERSION}")


def _read_toml(source: Source, version: str, options: ReadOptions) -> Native:
    native = syntax_toml.read_source(
        source.name, source.text, version=version, world_size=options.world_size, read_sibling=source.read_sibling
    )
    _override(native, options.positional, version)
    return native


def _override(native: Native, words: object, version: str) -> None:
    if words:
        from translator.catalogue import load
        from translator.frameworks.torchtitan.overrides_tyro import apply

        apply(native, words, load("torchtitan", version))  # type: ignore[arg-type]


def _read_script(source: Source, version: str, options: ReadOptions) -> Native:
    """The file that a script names, with what its launch says over it."""
    from translator.frameworks.torchtitan import launch_line

    _, line = _launched(source, options)
    if line.toml:
        name, text = launch_line.find_toml(line, source.read_sibling)
        _fits(TOML, version, name)
        native = syntax_toml.read_source(
            _beside(source, name), text, version=version, world_size=None, read_sibling=source.read_sibling
        )
        _override(native, line.words, version)
    else:
        native = _read_module(source, version, options, line)
    native.findings[:0] = line.findings
    native.given |= line.given
    if options.world_size is not None:
        from translator.native import WORLD_SIZE, Given

        native.given[WORLD_SIZE] = Given(WORLD_SIZE, options.world_size, "--world-size")
    return native


def _read_module(source: Source, version: str, options: ReadOptions, line: LaunchLine) -> Native:
    """The function that a launch names, of a module beside the script or of torchtitan's own."""
    from translator.frameworks.torchtitan import launch_line, shipped, syntax_python

    found = launch_line.find_module(line, source.read_sibling)
    _fits(PYTHON, version, line.module)
    if found is None:
        place = line.launch.place if line.launch is not None else None
        try:
            native = shipped.read(line.module, line.function, version, place)
        except SourceError as error:
            shadowed = [finding for finding in line.findings if finding.code == "S198"]
            if not shadowed:
                raise
            raise SourceError(f"{error.message}; {shadowed[0].message}", place=place, fix=shadowed[0].fix) from error
        _override(native, line.words, version)
        return native
    name, text = found
    folder = posixpath.dirname(name)

    def sibling(path: str) -> str | None:
        return source.read_sibling(posixpath.join(folder, path)) or source.read_sibling(path)

    return syntax_python.read_source(
        _beside(source, name),
        text,
        function=line.function,
        version=version,
        overrides=line.words,
        variables={**_environment(line), **options.variables},
        read_sibling=sibling,
    )


def _environment(line: LaunchLine) -> dict[str, str]:
    words = line.launch.env if line.launch is not None else {}
    return {name: word.text for name, word in words.items() if not word.unknowns}


def _beside(source: Source, name: str) -> str:
    """The name of a file beside the source, as places show it."""
    folder = posixpath.dirname(source.name.replace("\\", "/"))
    return posixpath.join(folder, name) if folder else name
