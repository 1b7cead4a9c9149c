"""The way to the real packages, tried with a driver that needs none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import DRIVERS, OracleEnvironment, OracleError, OracleServer, Package, is_built, main

DRIVER = """
import os, sys, time
sys.path.insert(0, {drivers!r})
import serving

STATE = []

def remember(value):
    STATE.append(value)
    print("a package that prints")
    return {{"seen": STATE, "variable": os.environ.get("TTX_TEST_VARIABLE")}}

def leave():
    print("usage: real.py [-h]\\nreal.py: error: unrecognized arguments: --nope", file=sys.stderr)
    raise SystemExit(2)

def refuse(how):
    serving.real("checks", {{"value": lambda: int("x"), "exit": leave}}[how])

def die():
    os.abort()

def sleep(seconds):
    time.sleep(seconds)
    return {{}}

if __name__ == "__main__":
    serving.main({{f.__name__: f for f in (remember, refuse, die, sleep)}})
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "driver.py"
    path.write_text(DRIVER.format(drivers=str(DRIVERS)), encoding="utf-8")
    return path


@pytest.fixture
def found(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OracleEnvironment:
    monkeypatch.setenv("TTX_ORACLE_NONE_PYTHON", sys.executable)
    return OracleEnvironment(Package("none", (), str(driver), python_variable="TTX_ORACLE_NONE_PYTHON"), tmp_path)


@pytest.fixture
def running(found: OracleEnvironment) -> Iterator[OracleServer]:
    with found.serve() as server:
        yield server


def test_requests_share_no_state(running: OracleServer) -> None:
    first = running.request("remember", value=1, environment={"TTX_TEST_VARIABLE": "set"})
    second = running.request("remember", value=2)
    assert first == {"ok": True, "seen": [1], "variable": "set"}
    assert second == {"ok": True, "seen": [2], "variable": None}


def test_a_refusal_names_its_stage_and_what_was_raised(running: OracleServer) -> None:
    answer = running.request("refuse", how="value")
    assert not answer["ok"]
    assert answer["stage"] == "checks"
    assert answer["error"].startswith("ValueError: invalid literal")


def test_a_parser_that_exits_is_quoted(running: OracleServer) -> None:
    answer = running.request("refuse", how="exit")
    assert answer["error"] == "real.py: error: unrecognized arguments: --nope"


def test_a_crash_and_a_hang_end_one_request_only(running: OracleServer) -> None:
    assert running.request("die")["stage"] == "crash"
    assert running.request("sleep", seconds=60, timeout=0.2)["stage"] == "timeout"
    assert running.request("remember", value=3)["seen"] == [3]


def test_a_wrong_parameter_is_the_drivers_fault(running: OracleServer) -> None:
    assert running.request("remember", values=1)["stage"] == "driver"


def test_one_question_without_a_server(found: OracleEnvironment) -> None:
    assert found.run(args=["remember", '{"value": 4}'])["seen"] == [4]
    assert found.run(args=["refuse", '{"how": "value"}'])["stage"] == "checks"
    with pytest.raises(OracleError, match="no JSON object"):
        found.run(args=["--help", "x", "y"])


def test_a_driver_that_cannot_start_says_why(tmp_path: Path, found: OracleEnvironment) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such package')\n", encoding="utf-8")
    with found.serve(str(broken)) as server, pytest.raises(OracleError, match="no such package"):
        server.request("remember", value=1)


def test_an_absent_environment_names_the_command_that_builds_it(tmp_path: Path) -> None:
    absent = OracleEnvironment(Package("absent", ("absent==1",), "serving.py"), tmp_path)
    assert "environments.py" in (absent.missing() or "")
    assert not is_built(absent.folder, {})


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--root", str(tmp_path), "nothing"])
    assert exit_info.value.code == 2
    assert "unknown environment nothing" in capsys.readouterr().err
