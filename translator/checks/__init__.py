"""Rules on one configuration: what a framework accepts and should not (``P5xx``).

What a framework refuses at start-up (``S1xx`` and ``S2xx``) is found while a source settles, since only then every
value in force is known; the rules here look at the settled result. A rule is one decorated function; its docstring
is its documentation. Rules on the spec stand in this folder, those on the options of a framework in a module of the
framework's folder, which the framework names in `Knowledge.checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translator.findings import Finding
    from translator.reading import Reading

# Modules with rules on the spec, whatever the framework.
MODULES = ("translator.checks.layout", "translator.checks.schedule")


def check(reading: Reading) -> list[Finding]:
    """Everything that the rules say about a configuration, in the order of the rules' codes."""
    from translator.checks.registry import rules_of
    from translator.subject import Subject

    subject = Subject(reading)
    return [finding for rule in rules_of(reading.framework) for finding in rule.findings(subject)]
