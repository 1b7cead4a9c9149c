"""What a project's pyproject.toml and comments in the sources say to ``ttx check``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import Ttx

from translator.checking.discovery import matches
from translator.ignores import read_ignores

LINES = """\
#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 \\
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --train-iters 999 \\
  --lr 1e-4 --lr-decay-style constant --bf16 --vocab-size 50304 --no-such 1 --tensorboard-dir $LOGS
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.sh").write_text(LINES)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.sh").write_text(LINES.replace("--no-such 1", "--use-legacy-models --no-such 1"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(ttx: Ttx, *words: object) -> set[tuple[str, str]]:
    document = ttx("check", *words, "--format", "json").document
    return {(finding["file"], finding["code"]) for finding in document["findings"]}


def say(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)


def test_select_ignore_and_exclude(ttx: Ttx, project: Path) -> None:
    assert ("old/train.sh", "R010") in found(ttx)
    say(project, '[tool.ttx]\nselect = ["R"]\nignore = ["R06"]\nexclude = ["old"]\n')
    assert {code[:2] for _, code in found(ttx)} == {"R0"}
    assert "R061" not in {code for _, code in found(ttx)}
    assert {name for name, _ in found(ttx)} == {"train.sh"}
    assert found(ttx, "old/train.sh"), "what is named is checked"
    assert not found(ttx, "old/train.sh", "--skip-unknown")
    assert {code for _, code in found(ttx, "--select", "R061", "train.sh")} == set()


def test_targets(ttx: Ttx, project: Path) -> None:
    assert not [code for _, code in found(ttx) if code[0] == "D"]
    say(project, '[tool.ttx]\ntorchtitan = "0.3.0"\ntargets = ["torchtitan"]\n')
    assert [code for _, code in found(ttx) if code[0] == "D"]
    assert "at 0.3.0)" in ttx("check", "--select", "D300").out, "at the version that the project names"
    assert not [code for _, code in found(ttx, "--to", "spec") if code[0] == "D"]


def test_settings_by_file(ttx: Ttx, project: Path) -> None:
    every = found(ttx)
    assert ("old/train.sh", "R012") in every
    say(
        project,
        '[tool.ttx]\nworld-size = 8\n[[tool.ttx.files]]\npath = "old/*.sh"\nfrom = "megatron@0.16.0"\n'
        'ignore = ["R010"]\nset = { LOGS = "logs" }\n',
    )
    now = found(ttx)
    assert ("old/train.sh", "R012") not in now, "0.16.0 has the option"
    assert ("old/train.sh", "R010") not in now
    assert ("train.sh", "R010") in now
    assert ("train.sh", "R061") in every & now
    assert ("old/train.sh", "R061") in every - now


def test_positional_arguments_by_file(ttx: Ttx, project: Path) -> None:
    (project / "train.sh").write_text(LINES.replace("$LOGS", "$1"))
    assert ("train.sh", "R061") in found(ttx)
    say(project, '[tool.ttx]\n[[tool.ttx.files]]\npath = "*.sh"\nargs = ["logs"]\n')
    assert ("train.sh", "R061") not in found(ttx)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targts = []", "[tool.ttx] has no key 'targts' (nearest: targets)"),
        ('select = "R"', "select must be a list of texts, not 'R'"),
        ("world-size = 0", "world-size must be a whole number of 1 or more, not 0"),
        ("world-size = true", "world-size must be a whole number"),
        ("ignore = [1]", "ignore must be a list of texts"),
        ('ignore = ["Z"]', "'Z' is no code"),
        ("torchtitan = 3", "torchtitan must be a version"),
        ("files = [1]", "[[tool.ttx.files]] needs a path"),
        ('files = [{path = "a", modl = "x"}]', "has no key 'modl' (nearest: model)"),
        ('files = [{path = "a", set = {A = 1}}]', "set must be a table of environment variables"),
        ('targets = ["torchtitn"]', "torchtitn"),
    ],
)
def test_a_table_that_cannot_be_meant_is_one_line_with_file_and_key(
    ttx: Ttx, project: Path, text: str, said: str
) -> None:
    say(project, f"[tool.ttx]\n{text}\n")
    result = ttx("check")
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err
    if text.startswith("targets"):
        return
    assert f"{project}/pyproject.toml" in result.err


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("old", "old/train.sh", True),
        ("old/", "a/old/train.sh", True),
        ("a/old", "old/train.sh", False),
        ("*.sh", "a/b/train.sh", True),
        ("a/*.sh", "a/b/train.sh", False),
        ("a/**/*.sh", "a/train.sh", True),
        ("a/**/*.sh", "a/b/c/train.sh", True),
        ("**/old", "old", True),
        ("a/**", "a/b", True),
        ("t?ain.sh", "train.sh", True),
        ("[!t]rain.sh", "train.sh", False),
        ("[", "[", True),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


COMMENTS = """\
#!/bin/bash
# ttx: ignore=P,D300 version=0.16.0
#SBATCH --nodes 1

export A=1  # ttx: ignore=R061
# ttx: ignore=R010, S1
# and why

torchrun pretrain.py \\
  --lr 1 \\
  --bf16
echo done
"""


def test_what_comments_hold_for() -> None:
    entries = read_ignores("f", COMMENTS).entries
    assert [(entry.code, entry.lines) for entry in entries] == [
        ("P", None),
        ("D300", None),
        ("R061", range(5, 6)),
        ("R010", range(9, 12)),
        ("S1", range(9, 12)),
    ]
    assert (entries[0].place.line, entries[0].place.column, entries[0].place.end_column) == (2, 15, 16)


def test_the_comments_that_a_file_begins_with() -> None:
    for head in ("", "---\n", "\n# x\n", "// x\n", "#!/bin/bash\n#SBATCH -N 1\n\n"):
        (entry,) = read_ignores("f", f"{head}# ttx: ignore=R010\na: 1\n").entries
        assert entry.lines is None, head
    for head in ("a: 1\n", '"""x"""\n', "{\n"):
        (entry,) = read_ignores("f", f"{head}# ttx: ignore=R010\nb: 1\n").entries
        assert entry.lines == range(3, 4), head


@pytest.mark.parametrize(
    ("change", "silenced"),
    [
        (("#!/bin/bash", "#!/bin/bash\n# ttx: ignore=R010"), True),
        (("#!/bin/bash", "#!/bin/bash\n# ttx: ignore=R0"), True),
        (("#!/bin/bash", "#!/bin/bash\n# ttx: ignore=R011"), False),
        (("torchrun", "A=1\n# ttx: ignore=R010\ntorchrun"), True),
        (("torchrun", "# x\nA=1 # ttx: ignore=R010\ntorchrun"), False),
        (("torchrun", "A=1\n# ttx: ignore=R010\nB=1\ntorchrun"), False),
    ],
)
def test_comments_in_a_script(ttx: Ttx, project: Path, change: tuple[str, str], silenced: bool) -> None:
    (project / "train.sh").write_text(LINES.replace(*change))
    assert (("train.sh", "R010") not in found(ttx, "train.sh")) is silenced


def test_comments_in_json_toml_and_python(ttx: Ttx, project: Path) -> None:
    texts = {
        "ds.json": '{\n "train_batch_size": 8,\n "no_such": 1, // ttx: ignore=R131\n "bf16": {"enabled": true}\n}\n',
        "hj.hjson": '{\n  "train_batch_size": 8\n  # ttx: ignore=R131\n  "no_such": 1\n}\n',
        "t.toml": '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nno_such = 1 # ttx: ignore=R09\n',
    }
    for name, text in texts.items():
        (project / name).write_text(text)
        codes = {code for _, code in found(ttx, name)}
        assert not codes & {"R131", "R090"}, name
        (project / name).write_text(text.replace("ttx:", "txt:"))
        assert {code for _, code in found(ttx, name)} & {"R131", "R090"}, name


def test_a_comment_in_a_file_beside_the_source_silences_there(ttx: Ttx, project: Path) -> None:
    (project / "args.sh").write_text('ARGS="--no-such 1"\n')
    text = LINES.replace("torchrun", "source args.sh\ntorchrun").replace("--no-such 1", "$ARGS")
    (project / "train.sh").write_text(text)
    assert ("args.sh", "R010") in found(ttx, "train.sh")
    (project / "args.sh").write_text('A=1\nARGS="--no-such 1"  # ttx: ignore=R010\n')
    assert ("args.sh", "R010") not in found(ttx, "train.sh")


def test_a_comment_that_silences_nothing_is_told_when_strict(ttx: Ttx, project: Path) -> None:
    (project / "train.sh").write_text(
        LINES.replace("#!/bin/bash", "#!/bin/bash\n# ttx: ignore=R010,R014,D300\nA=1 # ttx: ignore=S")
    )
    assert not [code for _, code in found(ttx, "train.sh") if code == "R042"]
    out = ttx("check", "train.sh", "--strict", "--select", "R042").out
    assert "train.sh:2:20: note R042: # ttx: ignore=R014 silences nothing in this file" in out
    assert "train.sh:3:19: note R042: # ttx: ignore=S silences nothing here" in out
    assert "ignore=R010 silences" not in out
    assert "ignore=D300 silences" not in out, "without a target there is nothing that it could silence"
