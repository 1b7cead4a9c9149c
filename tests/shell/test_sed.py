"""Templates that a launch script fills in with ``sed``."""

from __future__ import annotations

import pytest

from translator.shell import evaluate
from translator.shell.sed import Substitution, substitutions

TEMPLATE = '{"batch": GBSIZE, "path": "PATH_A", "stage": ZERO}\n'


def written(script: str, siblings: dict[str, str] | None = None) -> dict[str, str]:
    """The files that a script writes, by path."""
    reading = evaluate(script, "t.sh", read_sibling=(siblings or {"t.json": TEMPLATE}).get)
    return {item.path.text: item.body.text for item in reading.heredocs}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("s/GBSIZE/12/", [Substitution("GBSIZE", "12", False)]),
        ("s|A|/x/y|g", [Substitution("A", "/x/y", True)]),
        ("s/a/b/;s/c/d/g", [Substitution("a", "b", False), Substitution("c", "d", True)]),
        (r"s/a\.b/c/", [Substitution("a.b", "c", False)]),
        (r"s/a\/b/c/", [Substitution("a/b", "c", False)]),
        ("s/a.b/c/", None),
        ("s/^a/b/", None),
        ("s/a/&b/", None),
        ("s/a/b/p", None),
        ("/a/d", None),
        ("s/a", None),
        ("s//b/", None),
        ("s", None),
    ],
)
def test_only_plain_texts_are_replaced(program: str, expected: list[Substitution] | None) -> None:
    assert substitutions(program) == expected


def test_a_template_beside_the_script() -> None:
    script = 'n=8\nsed "s/GBSIZE/${n}/" t.json | sed "s|PATH_A|/data/x|" | sed -e s/ZERO/1/ > out.json\n'
    assert written(script) == {"out.json": '{"batch": 8, "path": "/data/x", "stage": 1}\n'}


def test_a_file_that_the_script_wrote_before() -> None:
    script = "echo 'a b a' > t.txt\nsed s/a/c/ t.txt > u.txt\nsed s/a/c/g t.txt > v.txt\n"
    assert written(script) == {"t.txt": "a b a\n", "u.txt": "c b a\n", "v.txt": "c b c\n"}


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/ZERO/1/ t.json",
        "sed -n s/ZERO/1/ t.json > out.json",
        "sed s/ZERO/1/ absent.json > out.json",
        "sed s/Z.*/1/ t.json > out.json",
        "sed s/ZERO/$(nproc)/ t.json > out.json",
        "sed s/ZERO/1/ t.json t.json > out.json",
        "sed > out.json",
    ],
)
def test_what_is_not_known_writes_nothing(command: str) -> None:
    assert written(f"{command}\n") == {}
