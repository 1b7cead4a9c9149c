"""What a framework knows besides its options: where its codes, rules and stances stand.

A framework names the modules in an attribute ``knowledge``; they are loaded by the commands that need them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Names of modules.

    ``codes``: modules with ``CODES``, the documentation of findings raised while reading; ``checks``: modules with
    rules (`translator.checks.registry.rule`); ``stances``: modules with stances
    (`translator.differences.registry.stance`); ``memory``: the module whose ``account(job, stages)`` says what a rank
    holds (`translator.memory.terms.Account`); ``communication``: the module whose ``PARTS`` say what it sends
    (`translator.communication.transfers.Transfer`); ``concepts``: modules with ``CONCEPTS``, how the framework does
    what `translator.comparison` compares.
    """

    codes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    stances: tuple[str, ...] = ()
    memory: str = ""
    communication: str = ""
    concepts: tuple[str, ...] = ()


NOTHING = Knowledge()


def knowledge_of(framework: str) -> Knowledge:
    """What a framework declares; nothing for the spec itself, and for frameworks that declare nothing."""
    from translator import frameworks

    if framework not in frameworks.BUILT_IN and framework not in frameworks.names():
        return NOTHING
    found = getattr(frameworks.get(framework), "knowledge", NOTHING)
    return found if isinstance(found, Knowledge) else NOTHING
