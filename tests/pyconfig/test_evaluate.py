"""What Python configurations evaluate to, on small modules of our own."""

from __future__ import annotations

import time
from textwrap import dedent
from typing import Any

import pytest

from translator.errors import SourceError, UsageError
from translator.findings import Place
from translator.pyconfig import (
    MISSING,
    NOT_KNOWN,
    Call,
    Evaluation,
    Node,
    NoResolver,
    Partial,
    Symbol,
    Unknown,
    evaluate,
    expression,
    functions,
)

HEAD = """
import os
import copy
import dataclasses
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from lib import Train, Parallel, Trainer, helper
import torch.nn as nn
"""


class Library(NoResolver):
    """Knows a library of three classes, one function and two modules."""

    modules = {  # noqa: RUF012
        "parts": ("parts.py", "from lib import Train\nSEQ = 512\ndef train(n=1):\n    return Train.Config(steps=n)\n"),
        ".parts": ("parts.py", "SEQ = 512\n"),
        "cycle": (
            "cycle.py",
            "from cycle import other\nother2 = other\ndef h():\n    return h2()\nfrom cycle import h2\n",
        ),
    }

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        return self.modules.get(dotted)

    def default(self, cls: str, field: str) -> object:
        place = Place("defaults", 1, 1)
        return {
            ("lib.Trainer.Config", "train"): Node("lib.Train.Config", {}, {}, place),
            ("lib.Train.Config", "steps"): 10,
            ("lib.Train.Config", "names"): ["out"],
        }.get((cls, field), MISSING)

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
        if dotted == "lib.helper":
            return Node("lib.Made.Config", {"args": args, **kwargs}, {}, place)
        return NOT_KNOWN


def run(body: str, **more: Any) -> Evaluation:
    text = HEAD + dedent(body)
    return evaluate(text, "run.py", "f", Library(), **more)


def plain(value: object) -> object:
    """A value with nodes as ``{"": class, field: value}``."""
    if isinstance(value, Node):
        return {"": value.cls, **{name: plain(item) for name, item in value.fields.items()}}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 ** 2 // 4 - 7 % 4", 2),
        ("-1 < 0 <= 3 != 4", True),
        ("not [] and 'x' or 'y'", "x"),
        ("[i * 2 for i in range(5) if i % 2]", [2, 6]),
        ("{k: v for k, v in zip('ab', [1, 2])}", {"a": 1, "b": 2}),
        ("[(a, b) for a in 'xy' for b in range(2)]", [("x", 0), ("x", 1), ("y", 0), ("y", 1)]),
        ("{**{'a': 1}, 'b': 2}", {"a": 1, "b": 2}),
        ("[*range(2), *[7]]", [0, 1, 7]),
        ("f'{3:>4}|{2.5:.2f}|{\"a\"!r}|{{}}'", "   3|2.50|'a'|{}"),
        ("'a' 'b'", "ab"),
        ("sum([1, 2], 3), max(2, 5), min([4, 3]), round(2.567, 1), len('abc'), abs(-2)", (6, 5, 3, 2.6, 3, 2)),
        ("sorted([3, 1, 2], key=lambda v: -v)", [3, 2, 1]),
        ("list(enumerate('ab', 1)), list(reversed([1, 2]))", ([(1, "a"), (2, "b")], [2, 1])),
        ("int('8') + float('0.5')", 8.5),
        ("any([0, 1]), all([1, 0]), any(i > 3 for i in range(3))", (True, False, False)),
        ("'-'.join(['a', 'b']).upper().replace('A', 'q')", "q-B"),
        ("'%d%s' % (1, 'z')", "1z"),
        ("[1, 2, 3, 4][1:3], 'abc'[-1], {'a': {'b': 3}}['a']['b']", ([2, 3], "c", 3)),
        ("'yes' if 3 in (1, 3) else 'no'", "yes"),
        ("math.ceil(2.1) + int(math.sqrt(16)) + math.pi // 1", 10.0),
        ("cast(int, 3)", 3),
        ("isinstance(3, (int, str)), isinstance(None, str)", (True, False)),
        ("dict(a=1, b=2)", {"a": 1, "b": 2}),
        ("nn.init.ones_", Symbol("torch.nn.init.ones_")),
        ("(lambda x, y=2: x + y)(1)", 3),
        ("[y := 3, y + 1]", [3, 4]),
        ("list(map(lambda v: v + 1, [1])), list(filter(None, [0, 1]))", ([2], [1])),
    ],
)
def test_expression(source: str, expected: object) -> None:
    found = expression(HEAD, "run.py", source, Library())
    assert found.value == expected
    assert type(found.value) is type(expected)
    assert not found.findings


def test_tree_and_places() -> None:
    found = run(
        """
        def f():
            return Trainer.Config(
                train=Train.Config(steps=2 * 5),
                folder="out",
            )
        """
    )
    assert plain(found.value) == {
        "": "lib.Trainer.Config",
        "train": {"": "lib.Train.Config", "steps": 10},
        "folder": "out",
    }
    assert isinstance(found.value, Node)
    train = found.value.fields["train"]
    assert isinstance(train, Node)
    assert (train.places["steps"].line, train.places["steps"].column) == (14, 34)
    assert found.value.places["folder"].line == 15
    assert found.value.get("train.steps") == 10
    assert found.value.get("train.none") is MISSING


def test_assignments_after_construction() -> None:
    found = run(
        """
        def f():
            config = Trainer.Config()
            config.train.steps += 5
            config.train.names.append("in")
            config.parallel = Parallel.Config(degrees={"tp": 2})
            config.parallel.degrees["pp"] = 4
            config.parallel.degrees.update(cp=1)
            del config.parallel.degrees["tp"]
            setattr(config, "seed", 3)
            return config
        """
    )
    assert plain(found.value) == {
        "": "lib.Trainer.Config",
        "train": {"": "lib.Train.Config", "steps": 15, "names": ["out", "in"]},
        "parallel": {"": "lib.Parallel.Config", "degrees": {"pp": 4, "cp": 1}},
        "seed": 3,
    }


def test_defaults_that_are_only_read_are_not_stated() -> None:
    found = run(
        """
        def f():
            config = Trainer.Config()
            if config.train.steps > 5 and "out" in config.train.names:
                config.long = True
            other = copy.deepcopy(config)
            return config, other
        """
    )
    assert plain(found.value) == ({"": "lib.Trainer.Config", "long": True},) * 2


def test_copies() -> None:
    found = run(
        """
        def f():
            one = Train.Config(steps=1, names=["a"])
            two = replace(one, steps=2)
            three = copy.deepcopy(one)
            two.names.append("b")
            three.names.append("c")
            return one, two, three, dataclasses.replace(three, steps=9)
        """
    )
    assert [item.fields for item in found.value] == [  # type: ignore[attr-defined]
        {"steps": 1, "names": ["a", "b"]},
        {"steps": 2, "names": ["a", "b"]},
        {"steps": 1, "names": ["a", "c"]},
        {"steps": 9, "names": ["a", "c"]},
    ]


def test_functions_and_modules() -> None:
    found = run(
        """
        from parts import train, SEQ
        import parts as p
        LAYERS = 4

        def base(steps, *rest, scale=2, **more):
            return Train.Config(steps=steps * scale, rest=rest, **more)

        def f():
            def inner(x):
                return x + LAYERS
            return base(inner(1), 8, 9, lr=0.1), base(**{"steps": 1, "scale": 1}), train(n=3), SEQ, p.SEQ, base(*[1])
        """
    )
    one = {"": "lib.Train.Config", "rest": ()}
    assert plain(found.value) == (
        one | {"steps": 10, "rest": (8, 9), "lr": 0.1},
        one | {"steps": 1},
        {"": "lib.Train.Config", "steps": 3},
        512,
        512,
        one | {"steps": 2},
    )


def test_control_flow() -> None:
    found = run(
        """
        def f():
            names = []
            for index, name in enumerate(["a", "b", "c", "d"]):
                if index == 1:
                    continue
                if name == "d":
                    break
                names.append(name)
            else:
                names.append("never")
            n = 0
            while n < 5:
                n += 2
            try:
                import absent
                have = True
            except ImportError:
                have = False
            match n:
                case 1 | 2:
                    kind = "small"
                case 6:
                    kind = "six"
            first, *others, last = [1, 2, 3, 4]
            with open("x") as handle:
                names.append("in")
            assert n > 1
            return names, n, have, kind, first, others, last
        """
    )
    assert found.value == (["a", "c", "in"], 6, True, "six", 1, [2, 3], 4)


def test_classes_of_the_text() -> None:
    found = run(
        """
        class Sizes:
            DIM = 64
            FFN = DIM * 4

        @dataclass
        class Base:
            a: int = 1
            names: list = field(default_factory=list)

        @dataclass
        class Mine(Base):
            b: int = Sizes.FFN

            def double(self):
                return self.b * 2

        class MyTrainer(Trainer):
            @dataclass(kw_only=True, slots=True)
            class Config(Trainer.Config):
                extra: int = 7

        def f():
            mine = Mine(5)
            mine.names.append("x")
            config = MyTrainer.Config(folder="o")
            config.train.steps = config.extra
            return mine, mine.b, mine.double(), config, isinstance(config, Trainer.Config), isinstance(mine, Base)
        """
    )
    mine, b, double, config, is_trainer, is_base = found.value  # type: ignore[misc]
    assert plain(mine) == {"": "Mine", "a": 5, "names": ["x"]}
    assert (b, double, is_trainer, is_base) == (256, 512, True, True)
    assert plain(config) == {
        "": "MyTrainer.Config",
        "folder": "o",
        "train": {"": "lib.Train.Config", "steps": 7},
    }
    assert config.bases == ("lib.Trainer.Config",)


def test_what_stays_opaque() -> None:
    found = run(
        """
        def f():
            return partial(nn.init.normal_, std=0.5), helper(1, k=2), lambda x: x, nn.Linear(3)
        """
    )
    part, made, _, call = found.value  # type: ignore[misc]
    assert isinstance(part, Partial)
    assert (part.callee, part.args, part.kwargs) == ("torch.nn.init.normal_", (), {"std": 0.5})
    assert plain(made) == {"": "lib.Made.Config", "args": [1], "k": 2}
    assert isinstance(call, Call)
    assert [(item.path, item.unknown.code) for item in found.unevaluated] == [("[3]", "R112")]


def test_environment_variables() -> None:
    body = """
        def f():
            return Train.Config(steps=int(os.environ.get("STEPS", "8")), a=os.getenv("A"), b=os.environ["B"] + "x")
    """
    found = run(body, environment={"B": "b"})
    assert isinstance(found.value, Node)
    steps = found.value.fields["steps"]
    assert isinstance(steps, Unknown)
    assert (steps.variable, steps.default, steps.code) == ("STEPS", 8, "R111")
    assert found.value.fields["b"] == "bx"
    assert [item.path for item in found.unevaluated] == ["steps", "a"]
    assert [(item.code, item.place.line) for item in found.findings if item.place] == [("R111", 13), ("R111", 13)]
    given = run(body, environment={"STEPS": "3", "A": "a", "B": "b"})
    assert isinstance(given.value, Node)
    assert given.value.fields == {"steps": 3, "a": "a", "b": "bx"}


def test_unknown_conditions_keep_what_both_branches_agree_on() -> None:
    found = run(
        """
        def f():
            config = Trainer.Config(train=Train.Config(steps=1), names=["a"])
            if os.environ.get("DEBUG"):
                config.same = 1
                config.differs = 2
                config.train.steps = 5
                config.names.append("b")
                config.part = Train.Config(steps=1, lr=3)
            else:
                config.same = 1
                config.differs = 3
                config.part = Train.Config(steps=2, lr=3)
            config.after = 4
            return config
        """
    )
    assert isinstance(found.value, Node)
    fields = found.value.fields
    assert (fields["same"], fields["after"]) == (1, 4)
    assert [item.path for item in found.unevaluated] == ["train.steps", "names[0]", "differs", "part.steps"]
    assert {item.unknown.code for item in found.unevaluated} == {"R124"}
    part = fields["part"]
    assert isinstance(part, Node)
    assert part.fields["lr"] == 3
    assert "R124" in {item.code for item in found.findings}


def test_unknown_conditions_around_return_and_raise() -> None:
    found = run(
        """
        def g():
            if os.environ.get("A"):
                return 1
            return 2

        def h():
            if os.environ.get("A"):
                raise ValueError("no")
            return 3

        def f():
            x = 5 if os.environ.get("B") else 5
            return [g(), h(), x, 4 if os.environ.get("B") else 6]
        """
    )
    assert isinstance(found.value, list)
    assert isinstance(found.value[0], Unknown)
    assert found.value[1:3] == [3, 5]
    assert isinstance(found.value[3], Unknown)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("R111", "def f():\n    return open('x').read()\n"),
        ("R112", "def f():\n    return nn.count(3) + 1\n"),
        ("R113", "def f():\n    exec('import os')\n    return 1\n"),
        ("R113", "def f():\n    return eval('1')\n"),
        ("R114", "def f():\n    return absent\n"),
        ("R115", "def f():\n    c = Train.Config()\n    nn.change(c)\n    return c\n"),
        ("R116", "def f():\n    return g()\ndef g():\n    return [f(), f()]\n"),
        ("R117", "def f():\n    while True:\n        pass\n"),
        ("R117", "def f():\n    return 9 ** 9 ** 9\n"),
        ("R117", "def f():\n    return [0] * 10 ** 9\n"),
        ("R117", "def f():\n    x = 'ab'\n    for i in range(99):\n        x += x\n    return x\n"),
        ("R118", "x = " + "-" * 30_000 + "1\ndef f():\n    return x\n"),
        ("R118", "x = " + "(" * 3_000 + "1" + ")" * 3_000 + "\ndef f():\n    return x\n"),
        ("R118", "x = 1\n" * 850_000 + "def f():\n    return x\n"),
        ("R118", "x = 1\n" * 100_000 + "def f():\n    return x\n"),
        ("R118", "x = [" + "1," * 300_000 + "]\ndef f():\n    return x\n"),
        ("R119", "def f():\n    raise ValueError('no')\n"),
        ("R119", "def f():\n    assert 1 > 2\n"),
        ("R120", "from absent import *\ndef f():\n    return X\n"),
        ("R121", "@nn.register\ndef f():\n    return 1\n"),
        ("R122", "def f():\n    yield 1\n"),
        ("R122", "async def f():\n    return 1\n"),
        ("R123", "G = 1\ndef f():\n    global G\n    G = 2\n    return G\n"),
        ("R114", "def g(d):\n    class K:\n        A = 1\n    return K.A if d else 2\ndef f():\n    return absent\n"),
        ("R124", "def f():\n    if os.environ['A']:\n        pass\n    return 1\n"),
        ("R125", "def f():\n    return 1 / 0\n"),
        ("R125", "def f():\n    return {}['a']\n"),
        ("R125", "def g(a):\n    return a\ndef f():\n    return g(b=1)\n"),
    ],
)
def test_findings(code: str, body: str) -> None:
    start = time.monotonic()
    found = evaluate(HEAD + body, "run.py", "f", Library())
    assert time.monotonic() - start < 10
    assert code in {item.code for item in found.findings}
    assert all(item.place is not None and item.fix for item in found.findings)


def test_what_is_around_an_open_value_is_read() -> None:
    found = run("def f():\n    return Trainer.Config(a=1, b=eval('2'), c=3)\n")
    assert isinstance(found.value, Node)
    assert {name: item for name, item in found.value.fields.items() if name != "b"} == {"a": 1, "c": 3}


def test_import_cycles_end() -> None:
    found = run("from cycle import other2, h\ndef f():\n    return [other2, h()]\n")
    assert isinstance(found.value, list)


def test_errors_of_the_reader() -> None:
    with pytest.raises(SourceError) as caught:
        evaluate("def f(:\n    pass\n", "bad.py", "f", Library())
    assert caught.value.place == Place("bad.py", 1, 7)
    with pytest.raises(UsageError, match="no function 'g'"):
        evaluate("def f():\n    pass\n", "run.py", "g", Library())
    with pytest.raises(SourceError):
        functions("x = " + "-" * 30_000 + "1", "run.py")


def test_functions_that_need_no_argument() -> None:
    text = "def a() -> Trainer.Config:\n    pass\ndef b(x):\n    pass\ndef c(x=1, *y, **z):\n    pass\nclass D: pass\n"
    found = functions(text, "run.py")
    assert [(item.name, item.returns, item.place.line) for item in found] == [("a", "Trainer.Config", 1), ("c", "", 5)]


def test_relative_imports_of_a_module_with_a_name() -> None:
    text = "from . import registry\nfrom .model import Net\ndef f():\n    return registry, Net\n"
    bare = evaluate(text, "run.py", "f", Library())
    assert bare.value == (Symbol(".registry"), Symbol(".model.Net"))
    named = evaluate(text, "pkg/run.py", "f", Library(), module_name="org.pkg.run")
    assert named.value == (Symbol("org.pkg.registry"), Symbol("org.pkg.model.Net"))


def test_what_a_branch_asks_for_first_is_defined_after_it() -> None:
    found = run(
        """
        class Sizes:
            DIM = 64

        def f():
            config = Train.Config()
            if os.environ.get("A"):
                from parts import SEQ
                config.a = SEQ
                config.b = Sizes.DIM
            else:
                config.a = 512
                config.b = 64
            import parts
            return config.a, config.b, parts.SEQ, Sizes.DIM, __name__ == "__main__"
        """
    )
    assert found.value == (512, 64, 512, 64, False)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("\ufeffdef f():\r\n\treturn 3\r\n", 3),
        ("class A(A):\n    X = 1\ndef f():\n    return A.X\n", 1),
        ("L = []\ndef g():\n    L.append(1)\ndef f():\n    g()\n    g()\n    return L\n", [1, 1]),
        ("def f():\n    print('x')\n    import logging\n    logging.getLogger('a').info('x')\n    return 1\n", 1),
        ("def f():\n    return [z for x in range(3) if (z := x * 2)]\n", [2, 4]),
        ("def f(a=[]):\n    a += [1]\n    return a + [*a]\n", [1, 1]),
        ("def f():\n    for i in []:\n        pass\n    else:\n        return 'none'\n", "none"),
    ],
)
def test_python_as_it_is_written(body: str, expected: object) -> None:
    found = evaluate(body, "run.py", "f", Library())
    assert found.value == expected
    assert not found.findings


def test_values_that_contain_themselves() -> None:
    found = run("def f():\n    c = Train.Config()\n    c.me = c\n    return copy.deepcopy(c)\n")
    assert isinstance(found.value, Node)
    assert found.value.fields["me"] is found.value
