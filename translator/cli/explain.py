"""``ttx explain``: what a code, a field or an option means."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, print_json
from translator.errors import UsageError
from translator.printable import one_line

if TYPE_CHECKING:
    from translator.catalogue import Entry
    from translator.frameworks.base import Framework

_OWN = ("--all", "--format", "--help")


def prepare(arguments: list[str]) -> list[str]:
    """Puts an option of a framework behind ``--``, so that it is not taken for one of the command."""
    if "--" in arguments:
        return arguments
    subjects = [
        word for word in arguments if word.startswith("--") and word.partition("=")[0] not in _OWN and len(word) > 2
    ]
    return [*(word for word in arguments if word not in subjects), *(["--", *subjects] if subjects else [])]


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "explain",
        help="explain a code, a field or an option",
        description="Explains a finding code (R010), a field of the spec (parallel.tensor) or an option of a framework "
        "(--recompute-granularity, training.seq_len).",
        allow_abbrev=False,
    )
    parser.add_argument("subject", nargs="?", help="code, field or option")
    parser.add_argument("--all", action="store_true", help="print all codes")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def run(parsed: argparse.Namespace) -> int:
    """Explain; returns 0. Raises UsageError for something unknown, with the nearest names."""
    from translator.codes import all_codes

    codes = all_codes()
    if parsed.all:
        _all(parsed.format, codes)
        return 0
    if parsed.subject is None:
        raise UsageError("nothing to explain", fix="name a code, a field or an option, or use --all")
    found = _code(parsed.subject, codes) or _field(parsed.subject) or _options(parsed.subject)
    if not found:
        raise UsageError(f"nothing is known of {parsed.subject!r}", fix=_near(parsed.subject, codes))
    if parsed.format == "json":
        print_json({"schema_version": 1, **found})
    elif parsed.format == "markdown":
        sys.stdout.write(_markdown(found))
    else:
        sys.stdout.write(_text(found))
    return 0


def _all(how: str, codes: dict[str, tuple[str, str]]) -> None:
    """All codes; what differs by default takes time, and is left out of the short form."""
    from translator.checking import pages

    if how == "json":
        print_json({"schema_version": 1, "codes": list(pages.entries())})
    elif how == "markdown":
        sys.stdout.write(pages.page())
    else:
        for code, (title, doc) in codes.items():
            print(f"{code}: {title}\n{_indent(doc)}\n")


def _markdown(found: dict[str, object]) -> str:
    lines = [f"### {found.pop('subject')}", ""]
    for name, value in found.items():
        items = value.items() if isinstance(value, dict) else ()
        lines += [
            f"**{name.replace('_', ' ')}:** {'' if items else value}",
            *(f"- {key} {text}" for key, text in items),
            "",
        ]
    return "\n".join(lines)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _text(found: dict[str, object]) -> str:
    lines = [str(found.pop("subject"))]
    for name, value in found.items():
        text = "\n".join(f"{key} {said}" for key, said in value.items()) if isinstance(value, dict) else str(value)
        shown = "\n".join(one_line(line) for line in text.splitlines())
        label = name.replace("_", " ")
        lines.append(f"{label}:\n{_indent(shown)}" if "\n" in shown or len(shown) > 80 else f"{label}: {shown}")
    return "\n".join(lines) + "\n"


def _code(subject: str, codes: dict[str, tuple[str, str]]) -> dict[str, object] | None:
    entry = codes.get(subject.upper())
    if entry is None:
        return None
    from translator.checking.pages import by_default

    said = by_default(subject.upper()) if subject[0] in "dD" else {}
    found: dict[str, object] = {"subject": f"{subject.upper()}: {entry[0]}", "documentation": entry[1]}
    return {**found, "by_default": said} if said else found


def _field(subject: str) -> dict[str, object] | None:
    from translator.cli.fields import rows

    for row in rows():
        if row["field"] == subject:
            options, fixed = row["options"], row["fixed"]
            assert isinstance(options, dict)
            assert isinstance(fixed, dict)
            return {
                "subject": f"{subject} (field of the spec)",
                "meaning": row["description"],
                "type": row["type"],
                "touches": row["touches"],
                **{name: ", ".join(found) or f"no option: {fixed.get(name, '')}" for name, found in options.items()},
            }
    return None


def _options(subject: str) -> dict[str, object] | None:
    from translator import frameworks
    from translator.frameworks import catalogues

    unmapped: dict[str, object] | None = None
    for framework in frameworks.every():
        for version, catalogue in catalogues.every(framework):
            entry = catalogue.by_flag(subject) or next(iter(catalogue.by_address(subject)), None)
            if entry is None:
                continue
            title = f"{framework.title} {version}"
            if catalogue.framework != framework.name:
                title = f"{catalogue.framework} {catalogue.version}, read with {title}"
            found = {"subject": f"{subject} ({title})", **_option(framework, version, entry)}
            if entry.address in framework.table(version).row_of_option:
                return found
            unmapped = unmapped or found  # such as an option of a fork, whose rows depend on the script
    return unmapped


def _option(framework: Framework, version: str, entry: Entry) -> dict[str, object]:
    from translator.frameworks.catalogues import span

    table, known = framework.table(version), span(framework, entry.address)
    row, fields = table.row_of_option.get(entry.address), table.fields_of(entry.address)
    meaning: dict[str, object] = {"fields": ", ".join(fields)} if fields else {}
    if row is not None and not fields:
        meaning = {"elsewhere": f"{row.entry}: {row.note}", "touches": row.touches}
    since = f"{known[0]}{f', removed in {known[1]}' if known[1] else ''}" if known else ""
    return {
        "type": entry.type_name,
        "default": repr(entry.default),
        **({"choices": ", ".join(map(str, entry.choices))} if entry.choices else {}),
        **({"known since": since} if since else {}),
        **({"source": entry.source} if entry.source else {}),
        **meaning,
    }


def _near(subject: str, codes: dict[str, tuple[str, str]]) -> str:
    from translator import frameworks
    from translator.frameworks import catalogues
    from translator.names import nearest
    from translator.spec import leaves

    names = [*codes, *leaves()]
    for framework in frameworks.every():
        for version, catalogue in catalogues.every(framework):
            if version == framework.default_version:
                names += [*catalogue.addresses(), *catalogue.flags()]
    near = nearest(subject, names)
    return f"nearest: {', '.join(near)}" if near else "see ttx fields and ttx catalogue show"
