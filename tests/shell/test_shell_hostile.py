"""Bad input: always an answer, in bounded time, and nothing is ever started."""

from __future__ import annotations

import subprocess
import time

import pytest

from translator.shell import evaluate

SECONDS = 15.0
HOSTILE = {
    "five megabytes": 'export A=$((1+2))\nB+=(--x ${A} "y z")\n' * 125_000,
    "parentheses": "(" * 10_000,
    "substitutions": "$(" * 10_000,
    "arrays": "a=( " * 50_000,
    "quotes": '"' * 300_001,
    "braces": "${" * 50_000,
    "binary": "".join(map(chr, range(1, 256))) * 1000,
    "null": "\0\1\2" * 1000,
    "delete": "x=$(rm -rf /tmp/never)\npython t.py $x `reboot` <(cat /etc/passwd)",
    "brace expansion": "python t.py {1..100000} " + "{a,b}" * 40,
    "doubling": "x=aaaa\nfor i in {1..100}; do x=$x$x; done\npython t.py $x",
    "endless loop": "while true; do :; done",
    "endless recursion": "f() { f; }; f",
    "eval recursion": 'f() { eval "f"; }; f',
    "source recursion": "source ./self.sh",
    "deep nesting": "if true; then\n" * 3000 + "fi\n" * 3000,
    "deep substitution": "echo " + "$(echo " * 500 + "x" + ")" * 500,
    "costly glob": "x=" + "a" * 5000 + "\n[[ $x == *a*a*a*a*a*a*b ]]\necho ${x//*a*a/b} ${x%%*a*b*c}",
    "costly regex": "x=" + "a" * 3000 + "\n[[ $x =~ (a+)+b ]]\n[[ $x =~ a*a*a*a*a*b ]]",
    "costly extglob": "x=" + "a" * 60 + "b\ncase $x in *(a|*(a|aa))c) ;; esac",
    "arithmetic": "x=$((" + "(" * 5000 + "1" + ")" * 5000 + "))",
    "self reference": "x=x; y=$((x)); z=$((1 << 99999999999999999999))",
    "big power": 'x=$((3**99999999)); y=$(echo "9^9^9^9" | bc); z=$(printf "%99999999d" 1)',
    "many branches": "".join(f"if [ -f x{i} ]; then a{i}=1; fi\n" for i in range(3000)),
    "many words": "A=(" + "--x 1 " * 300_000 + ")",
    "name cycle": "declare -n p=q; declare -n q=p; p=1; echo $p ${!p}; a=b; b=a; echo ${!a}",
    "open heredocs": "cat <<E\n" * 5000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr("os.system", refuse)
    text = HOSTILE[name]
    start = time.monotonic()
    reading = evaluate(text, "s.sh", read_sibling=lambda path: text if "self" in path else None)
    assert time.monotonic() - start < SECONDS
    assert len(reading.findings) <= 300
    assert sum(len(word.text) for launch in reading.launches for word in launch.argv) < 3_000_000


@pytest.mark.parametrize("name", ["five megabytes", "doubling", "endless loop", "endless recursion", "many words"])
def test_a_limit_is_said(name: str) -> None:
    assert "R065" in {finding.code for finding in evaluate(HOSTILE[name], "s.sh").findings}


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_truncated_script_is_read(cut: int) -> None:
    text = (
        "#!/bin/bash\nexport A=${B:-1}\nif [ $A -gt 0 ]; then\n  X=(--a \"b c\" 'd' $(echo e) $((1+2)))\nfi\n"
        'case $A in 1) Y=$(cat <<EOF\n--k v\nEOF\n) ;; esac\nfor i in 1 2; do Z+="$i "; done\n'
        'torchrun --nproc_per_node ${G:=8} t.py "${X[@]}" $Y $Z `echo q` > log 2>&1\n'
    )
    evaluate(text[:cut], "s.sh")
