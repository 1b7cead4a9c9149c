"""What the drivers of the real packages share: a JSON object a question, and a process of its own for each.

A driver is a program run by the interpreter of an environment that holds a real package. It has two modes::

    DRIVER.py serve                     requests on standard input, one JSON object a line; answers likewise
    DRIVER.py COMMAND '{"key": ...}'    one request; prints its answer, and exits 1 when the real code refused

A request has ``command`` and its parameters, and may have ``environment`` (variables to set; null unsets) and
``timeout`` (seconds). An answer has ``ok``. When that is false, ``stage`` says where the real code refused, ``error``
what it raised and ``output`` what it printed. Only the standard library is imported here.
"""

from __future__ import annotations

import enum
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Handler = Callable[..., dict[str, Any]]
DEFAULT_TIMEOUT_SECONDS = 120.0
OUTPUT_LIMIT_CHARACTERS = 4000


class RefusalError(Exception):
    """The real package refused the configuration; ``stage`` names the part of it that did."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(str(error))
        self.stage = stage
        self.error = error


def real(stage: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call into the real package; whatever it raises, an exit included, is its refusal at this stage."""
    try:
        return function(*arguments, **named)
    except (Exception, SystemExit) as error:
        raise RefusalError(stage, error) from error


def plain(value: Any) -> Any:
    """A value as JSON can say it: enumerations by name, torch types and everything else as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.name if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return str(value)


def main(handlers: Mapping[str, Handler]) -> NoReturn:
    """Run a driver with these commands."""
    answers = take_stdout()
    if sys.argv[1:] == ["serve"]:
        write(answers, {"ok": True, "ready": sorted(handlers)})
        for line in sys.stdin:
            write(answers, isolated(handlers, line))
        sys.exit(0)
    if len(sys.argv) not in {2, 3}:
        print(f"usage: {sys.argv[0]} serve | {'|'.join(sorted(handlers))} [JSON]", file=sys.stderr)
        sys.exit(2)
    request = json.loads(sys.argv[2]) if len(sys.argv) == 3 else {}
    answer = isolated(handlers, json.dumps({**request, "command": sys.argv[1]}))
    write(answers, answer)
    sys.exit(0 if answer["ok"] else 1)


def take_stdout() -> int:
    """Keep standard output for the answers, and send whatever a package prints to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def write(descriptor: int, answer: Mapping[str, Any]) -> None:
    """Write one answer as one line."""
    data = json.dumps(answer, default=str).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def isolated(handlers: Mapping[str, Handler], line: str) -> dict[str, Any]:
    """Answer a request in a forked child, so that nothing it leaves behind in globals reaches the next one."""
    request = json.loads(line)
    timeout = float(request.pop("timeout", DEFAULT_TIMEOUT_SECONDS))
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            answer_in_child(handlers, request, writing)
        os.close(writing)
        data, in_time = read_all(reading, time.monotonic() + timeout)
        os.close(reading)
        if not in_time:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        printed = output.read().decode(errors="replace")[-OUTPUT_LIMIT_CHARACTERS:]
    if not in_time:
        return {"ok": False, "stage": "timeout", "error": f"no answer in {timeout:g} s", "output": printed}
    if not data:
        return {"ok": False, "stage": "crash", "error": f"the process ended with {status}", "output": printed}
    answer: dict[str, Any] = json.loads(data)
    if not answer["ok"]:
        answer["output"] = printed
        if answer["error"].startswith("SystemExit"):
            answer["error"] = said(printed) or answer["error"]
    return answer


def said(printed: str) -> str | None:
    """What a command-line parser (argparse, or tyro in a box) printed before SystemExit, which says less."""
    lines = printed.splitlines()
    boxed = (line.strip("\u2502 ") for line in lines if line.startswith("\u2502"))
    return next((line for line in reversed(lines) if ": error: " in line), None) or next(boxed, None)


def answer_in_child(handlers: Mapping[str, Handler], request: dict[str, Any], writing: int) -> NoReturn:
    """Run the handler and leave at once: the parent's exit handlers and threads are none of the child's."""
    answer: dict[str, Any]
    try:
        set_environment(request.pop("environment", {}))
        answer = {"ok": True, **handlers[request.pop("command")](**request)}
    except RefusalError as refusal:
        answer = {"ok": False, "stage": refusal.stage, "error": f"{type(refusal.error).__name__}: {refusal}"}
        if not isinstance(refusal.error, SystemExit):
            traceback.print_exception(refusal.error)
    except BaseException as error:
        # Ours to mend: a wrong parameter, or a package that no longer has what the driver calls.
        answer = {"ok": False, "stage": "driver", "error": f"{type(error).__name__}: {error}"}
        traceback.print_exception(error)
    status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        write(writing, answer)
        status = 0
    finally:
        os._exit(status)


def set_environment(variables: Mapping[str, str | None]) -> None:
    """Set, or with None unset, variables of this process."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def read_all(descriptor: int, deadline: float) -> tuple[bytes, bool]:
    """Everything written to a pipe until its end, and whether that came before the deadline (of ``time.monotonic``)."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b"".join(parts), False
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts), True
        parts.append(part)
