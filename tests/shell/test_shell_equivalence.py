"""Our reading of a script equals what the real bash passes to the programs that it starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from real_bash import compare

SCRIPTS = Path(__file__).parent / "scripts"
SIBLINGS = {
    "common.inc": "COMMON='--nproc_per_node 2'\nset -- replaced\n",
    "model.inc": 'MODEL=(--size "$1" --second "$2")\nreturn 0\nMODEL=()\n',
    "child.inc": '#!/bin/bash\npython child.py "$@" ${COMMON:-unset}\n',
}
RUNS: list[tuple[str, list[str], dict[str, str]]] = [
    ("arrays_llama", [], {}),
    ("arrays_llama", ["/ckpt dir", "tok.model"], {"NNODES": "4"}),
    ("arrays_llama", ["x", "tok.model"], {"NNODES": "1"}),
    ("string_options", [], {}),
    ("string_options", [], {"DATA_PATH": "0.5 a 0.5 b"}),
    ("eval_command", [], {}),
    ("case_sizes", [], {}),
    ("case_sizes", [], {"MODEL_SIZE": "13B"}),
    ("case_sizes", [], {"MODEL_SIZE": "70B"}),
    ("case_sizes", [], {"MODEL_SIZE": "other"}),
    ("functions", [], {}),
    ("loops", [], {}),
    ("getopts", ["-n", "4", "-vg8", "rest", "--x"], {}),
    ("getopts", ["-z"], {}),
    ("getopts", [], {}),
    ("long_options", ["--tp", "4", "--name=a b", "--fp8", "--z", "--", "--tp", "9"], {}),
    ("long_options", [], {}),
    ("pattern_operators", [], {}),
    ("associative", [], {}),
    ("exports", [], {}),
    ("exports", [], {"D": "from outside", "Q": "kept"}),
    ("quoting", [], {}),
    ("braces", [], {}),
    ("ifs", [], {}),
    ("arithmetic", [], {}),
    ("substitution", [], {}),
    ("heredoc", [], {}),
    ("bash_c", [], {}),
    ("sourced", ["first", "second"], {}),
    ("logic", [], {}),
    ("positional", ["a", "b c", "", "d", "e", "f", "g", "h", "i", "j k"], {}),
    ("positional", [], {}),
    ("subshells", [], {}),
    ("assignments_line", [], {}),
    ("slurm_array", [], {}),
    ("slurm_array", [], {"DEBUG": "1"}),
    ("megatron_moe", [], {}),
    ("megatron_moe", ["0", "1"], {"LOAD": "/some path"}),
    ("unset_things", [], {}),
    ("unset_things", [], {"DATA": "a  b", "A": " x ", "FLAGS": "kept"}),
    ("continuation", [], {}),
    ("launcher_mix", [], {}),
    ("nested_conditions", [], {}),
    ("unicode", [], {"LC_ALL": "C.UTF-8"}),
    ("traps", ["one", "two"], {}),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("name", "positional", "variables"), RUNS, ids=[f"{r[0]}-{i}" for i, r in enumerate(RUNS)])
def test_the_same_words_as_bash(
    name: str, positional: list[str], variables: dict[str, str], tmp_path: Path, stubs: Path
) -> None:
    text = (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8")
    reading, calls = compare(text, tmp_path, stubs, positional=positional, variables=variables, siblings=SIBLINGS)
    expects_none = variables.get("MODEL_SIZE") == "other" or positional == ["-z"]
    assert bool(calls) != expects_none
    assert all(launch.place.line >= 1 for launch in reading.launches)
