"""Python configurations of 0.3.0 as text: layout, names, hostile values, and insertion into a registry."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from typing import Any

import pytest
from torchtitan_python import flat, write

from translator.errors import SourceError
from translator.frameworks.base import Rendered
from translator.frameworks.torchtitan.insert_python import insert_into
from translator.frameworks.torchtitan.python_classes import find
from translator.frameworks.torchtitan.python_names import BUILT_IN, import_lines, module_name
from translator.frameworks.torchtitan.python_text import Call, layout, literal

HOSTILE = (
    '"); import os; os.system("x")  #',
    "a\nimport os",
    "'''",
    '"""',
    "\\",
    "{{ 7 * 7 }}",
    "x\r\ny",
    "\u2028",
    "'\"",
    "\x00",
    "é",
)
CHANGES: dict[str, dict[str, Any]] = {
    "llama3/8B": {},
    "llama3/1B": {"optimizer.decay_scope": "matrices", "launch.compile": True, "recompute.mode": "full"},
    "llama3/70B": {"model.ffn": 28001, "precision.fp8": "e4m3", "precision.fp8_recipe": "mxfp8"},
    "qwen3/8B": {"model.layers": 3, "loss.chunks": 4},
    "qwen3/30B-A3B": {"model.moe.dense_layers": [1, 7, 9], "model.ffn": 64, "model.moe.shared_ffn": 64},
    "deepseek_v3/671B": {"model.norm_eps": 1e-6},
    "deepseek_v3/16B": {"model.layers": 5, "model.moe.shared_ffn": 0},
    "gpt_oss/20b": {"model.attention_window": 64, "optimizer.decay_scope": "matrices"},
    "gpt_oss/120b": {"model.attention_kernel": "flex", "model.layers": 3},
}


def ruff(*arguments: str, text: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("ruff", path=f"{sys.executable.rpartition('/')[0]}:{sys.exec_prefix}/bin")
    if program is None:
        pytest.skip("ruff is not installed")
    command = [program, *arguments, "--isolated", "--stdin-filename", "run.py", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("model", CHANGES)
def test_the_module_is_formatted_and_imports_what_it_uses(model: str) -> None:
    text = write(flat(model, CHANGES[model]), "mine.sh").text
    assert not ruff("format", "--diff", text=text).stdout
    checked = ruff("check", "--select", "E,F,I,W,B", "--ignore", "E501", text=text)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("model", CHANGES)
def test_only_public_names_are_imported(model: str) -> None:
    tree = ast.parse(write(flat(model, CHANGES[model])).text)
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            assert statement.module is not None
            assert not any(part.startswith("_") for part in statement.module.split("."))
            assert not any(alias.name.startswith("_") for alias in statement.names)


def test_a_flavor_is_named_and_the_header_says_versions_and_ranks() -> None:
    written = write(flat("llama3/8B", {"parallel.world_size": 16, "parallel.data.degree": 16}), "llama3_8b.toml")
    lines = written.text.splitlines()
    assert "torchtitan 0.3.0" in lines[0]
    assert "llama3_8b.toml" in lines[0]
    assert lines[1] == "# ttx: version=0.3.0 world_size=16"
    assert 'model_registry("8B")' in written.text
    assert written.rendered.main == "llama3_8b.py"
    assert "--module llama3_8b --config llama3_8b" in written.rendered.files["launch.sh"]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_stays_text(value: str) -> None:
    spec = flat("llama3/8B", {"data.tokenizer": value, "data.dataset": [value], "logging.wandb": True})
    tree = ast.parse(write(spec, value or "x").text)
    found = {node.arg: node.value for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    for name in ("hf_assets_path", "dataset"):
        node = found[name]
        assert isinstance(node, ast.Constant)
        assert node.value == value
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert all(
        node.module is None or node.module.startswith("torchtitan")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    )
    assert sum(isinstance(node, ast.FunctionDef) for node in tree.body) == 1
    compile(tree, "run", "exec")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("llama3_8b.toml", "llama3_8b"),
        ("run.sh", "llama3_70b"),
        ("/a/b/Pretrain-GPT 175B.sh", "pretrain_gpt_175b"),
        ("llama3.sh", "llama3_run"),
        ("json.sh", "json_run"),
        ("torch.sh", "torch_run"),
        ("class.sh", "class_run"),
        ("7b.sh", "run_7b"),
        ("....", "llama3_70b"),
        ("日本.sh", "llama3_70b"),
    ],
)
def test_names_of_modules(source: str, expected: str) -> None:
    assert module_name(source, "llama3_70B") == expected


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_names_are_avoided(name: str) -> None:
    assert module_name(f"{name}.toml", "x") != name


@pytest.mark.parametrize("value", [*HOSTILE, 1e-8, float("inf"), float("nan"), (1,), [], {"a": [1]}, None, True])
def test_literals_mean_themselves(value: Any) -> None:
    found = eval(literal(value), {"__builtins__": {"float": float}})
    assert repr(found) == repr(value)


def test_long_calls_explode_and_comments_stay_on_their_lines() -> None:
    call = Call("f")
    call.add("a", "x" * 40, "where it comes from\nimport os")
    call.add("b", ["y" * 40, "z" * 40])
    text = layout(call)
    assert text.splitlines()[1] == f'    a="{"x" * 40}",  # where it comes from import os'
    assert ast.dump(ast.parse(text))


def test_imports_are_sorted_in_groups() -> None:
    names = {"torchtitan.b": ["z", "A"], "functools": ["partial"], "torchtitan.a": ["q"]}
    expected = ["from functools import partial", "", "from torchtitan.a import q", "from torchtitan.b import A, z"]
    assert import_lines(names) == expected


def test_classes_are_found_by_their_short_names() -> None:
    known = find("SelectiveAC")
    assert known is not None
    assert (known.call, known.module) == ("SelectiveAC.Config", "torchtitan.distributed.activation_checkpoint")
    plain = find("TrainingConfig")
    assert plain is not None
    assert (plain.call, plain.module, plain.fields["seq_len"]) == ("TrainingConfig", "torchtitan.config", 2048)
    assert find("NoSuchThing") is None


REGISTRY = '''"""A registry."""
from torchtitan.trainer import Trainer  # as it stands
from . import model_registry


X = 1  ;  Y = (2,
   3)


def other() -> Trainer.Config:
\treturn Trainer.Config(model_spec = model_registry('8B'))
'''


def rendered(model: str = "llama3/8B", changes: dict[str, Any] | None = None) -> Rendered:
    found: Rendered = write(flat(model, changes or {}), "mine.sh").rendered
    return found


def test_a_function_is_inserted_and_the_rest_stays() -> None:
    text = insert_into(REGISTRY, rendered())
    kept = [line for line in text.splitlines(keepends=True) if line in REGISTRY.splitlines(keepends=True)]
    assert "".join(kept).replace("\n", "").startswith("".join(REGISTRY.split("\n")[:3]))
    for line in REGISTRY.splitlines(keepends=True):
        assert line in text
    head, _, rest = REGISTRY.partition("\n\n\nX = 1")
    assert text.startswith(head)
    assert f"\n\n\nX = 1{rest}" in text
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert names == {"other", "mine"}


def test_a_name_that_means_something_else_is_imported_under_another() -> None:
    text = insert_into(REGISTRY, rendered())
    assert "from torchtitan.models.llama3 import model_registry as llama3_model_registry" in text
    assert 'llama3_model_registry("8B")' in text
    assert "model_registry('8B')" in text
    assert text.count("import Trainer") == 1


def test_helpers_are_renamed_where_theirs_are_taken() -> None:
    taken = f"{REGISTRY}\n\ndef _model():\n    return 1\n"
    text = insert_into(taken, rendered("llama3/8B", {"model.ffn": 12345}))
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["other", "_model", "_linear", "_model_mine", "mine"]
    assert "model=_model_mine()" in text


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_are_those_of_the_file(ending: str) -> None:
    existing = REGISTRY.replace("\n", ending)
    text = insert_into(existing, rendered())
    assert text.replace("\r\n", "").count("\n") == (0 if ending == "\r\n" else text.count("\n"))
    assert existing.partition(f"{ending}{ending}{ending}X")[2] in text


@pytest.mark.parametrize("existing", ["", "x = 1", '"""Only words."""\n', "# a comment\n\nimport os\n"])
def test_any_file_takes_a_function(existing: str) -> None:
    text = insert_into(existing, rendered())
    assert existing.strip() in text
    assert any(isinstance(node, ast.FunctionDef) and node.name == "mine" for node in ast.parse(text).body)


@pytest.mark.parametrize(
    "existing", ["def broken(:", "def mine():\n    pass\n", "from x import mine\n", "(" * 5000, "x\x00"]
)
def test_what_cannot_take_it_is_refused(existing: str) -> None:
    with pytest.raises(SourceError):
        insert_into(existing, rendered())
