"""Generated scripts: expansion, splitting, patterns and arithmetic agree with the real bash."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from translator.shell import evaluate

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
SETTINGS = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
BASH = shutil.which("bash") or "bash"
BATCH = 25
"""Scripts per start of bash."""

value = st.text(alphabet="ab .:/-_'*,=1\t\n", max_size=12)
operator = st.sampled_from(
    [
        "",
        ":-d e",
        "-d",
        ":+x y",
        "+x",
        "#a",
        "##*a",
        "%b*",
        "%%[ab]*",
        "/a/X",
        "//[. ]/_",
        "/#a/",
        "/%b/Z",
        ":1",
        ":2:3",
        ": -2",
        "^",
        "^^",
        ",,",
        "//\\//|",
        "#*[./]",
        "%%.*",
        "/[!a]/-",
    ]
)
quoting = st.sampled_from(['"{}"', "{}", 'x{}"y"', '"{}"z', "{}{}"])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def bash_words(scripts: list[str]) -> list[list[str]]:
    """The words that each script leaves in its positional parameters."""
    tail = '\nprintf \'%s\\0\' "$#" "$@"\n'
    program = "set -f\n" + "".join(f"(\n{script}{tail})\nprintf '\\1\\0'\n" for script in scripts)
    done = subprocess.run([BASH, "-c", program], capture_output=True, env={"PATH": ""}, timeout=30, check=False)
    records = done.stdout.decode().split("\1\0")[: len(scripts)]
    return [record.split("\0")[1:-1] for record in records]


def our_words(script: str) -> list[str]:
    (launch,) = evaluate(script + '\npython t.py "$@"\n', "s.sh").launches
    assert not any(word.unknowns for word in launch.argv), script
    return [word.text for word in launch.argv]


def agree(scripts: list[str]) -> None:
    for script, expected in zip(scripts, bash_words(scripts), strict=True):
        assert our_words(script) == expected, script


@st.composite
def expansion(draw: st.DrawFn) -> str:
    lines = [f"V={quoted(draw(value))}", f"A=({quoted(draw(value))} {quoted(draw(value))} {quoted(draw(value))})"]
    name = draw(st.sampled_from(["V", "V", "A[1]", "A[@]", "A[*]", "U"]))
    # What bash makes of elements that begin with a blank and a separator follows no rule that is written down.
    separators = [":", ",.", " "] if name in ("A[@]", "A[*]") else [":", " :", ",.", " "]
    if draw(st.booleans()):
        lines.append(f"IFS={quoted(draw(st.sampled_from(separators)))}")
    op = draw(operator)
    form = draw(quoting).replace("{}", "${" + name + op + "}")
    lines.append(f'set -- {form} "${{#A[@]}}" ${{#V}}')
    return "\n".join(lines)


number = st.integers(-40, 40).map(str)


def binary(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "<<", ">>", "&", "|", "^", "<", "<=", "==", "!=", "&&", "||", ","])
    ternary = st.tuples(children, children, children).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})")
    safe = st.tuples(children, st.sampled_from(["/", "%"]), st.integers(1, 9)).map(lambda t: f"{t[0]} {t[1]} {t[2]}")
    power = st.tuples(st.integers(0, 9), st.integers(0, 12)).map(lambda t: f"{t[0]}**{t[1]}")
    unary = st.tuples(st.sampled_from(["-", "!", "~", "+ "]), children).map(lambda t: f"{t[0]} ({t[1]})")
    pair = st.tuples(children, operators, children).map(lambda t: f"{t[0]} {t[1]} {t[2]}")
    return st.one_of(pair, pair.map(lambda t: f"({t})"), ternary, safe, power, unary)


leaf = st.one_of(number, st.sampled_from(["x", "$y", "(z = 3)", "x++", "--x", "0x1f", "017", "u", "(y += 2)"]))
arithmetic = st.recursive(leaf, binary, max_leaves=8)

piece = st.sampled_from(
    [
        "a",
        "b c",
        '"d e"',
        "'f  g'",
        "$V",
        '"$V"',
        "{1..3}",
        "{x,y}z",
        "k\\ l",
        '""',
        "$'t\\tu'",
        "h\\\n",
        "$((V2*2))",
        "${U:-i j}",
        "\"${U:-'k'}\"",
        "a{b,c{d,e}}",
        "$(echo m  n)",
        '"$(echo m  n)"',
        "--o=$V",
        "#p",
        "q#r",
        "{}",
    ]
)


@SETTINGS
@given(st.lists(expansion(), min_size=BATCH, max_size=BATCH))
def test_parameters(scripts: list[str]) -> None:
    agree(scripts)


@SETTINGS
@given(st.lists(arithmetic, min_size=BATCH, max_size=BATCH))
def test_arithmetic(expressions: list[str]) -> None:
    agree([f"x=5 y=7\nset -- $(({expression})) $x $y $z" for expression in expressions])


@SETTINGS
@given(st.lists(st.tuples(value, st.lists(piece, min_size=1, max_size=6)), min_size=BATCH, max_size=BATCH))
def test_words(samples: list[tuple[str, list[str]]]) -> None:
    agree([f"V={quoted(text)} V2=4\nset -- - {' '.join(pieces)}\nshift" for text, pieces in samples])


@SETTINGS
@given(st.lists(st.tuples(value, st.text(alphabet="ab*?[]!.-/", max_size=6)), min_size=BATCH, max_size=BATCH))
def test_patterns(samples: list[tuple[str, str]]) -> None:
    agree(
        [
            f"V={quoted(text)} P={quoted(pattern)}\n[[ $V == $P ]]; A=$?\n"
            'case $V in $P) B=1;; "$P"x) B=2;; *) B=3;; esac\n'
            f'set -- $A $B "${{V#$P}}" "${{V%%$P}}" "${{V/$P/+}}"'
            for text, pattern in samples
        ]
    )
