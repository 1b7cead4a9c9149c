"""Environments in which the real packages run on a CPU, and the way to ask them.

Run it to build them, all or by name::

    python tests/oracle/environments.py [--root DIR] [NAME ...]

One virtual environment holds torch and what the frameworks share; each framework then has a small one of its own,
which sees the shared one through a ``.pth`` file and holds only the framework. So torch, nearly a gigabyte, is there
once, while three versions of torchtitan stay apart.

The folder is ``.oracle`` in the repository, or the one that ``TTX_ORACLE_ROOT`` names. Building is idempotent: a
stamp in each environment holds the requirements it was built from, and one that no longer matches is rebuilt.
``TTX_ORACLE_TORCH`` replaces the torch requirement, for a machine where the default one would bring CUDA libraries of
several gigabytes.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parents[2]
DRIVERS = Path(__file__).resolve().parent / "drivers"
STAMP = "ttx-requirements.json"
SHARED = "shared"
DEFAULT_TIMEOUT_SECONDS = 120.0
START_TIMEOUT_SECONDS = 180.0

# torchtitan 0.3.0 asks for datasets below 4.8; the older versions accept any from 2.21 on, so one pin serves all.
SHARED_REQUIREMENTS = (
    os.environ.get("TTX_ORACLE_TORCH", "torch==2.13.0"),
    "numpy",
    "packaging",
    "typing_extensions",
    "tyro",
    "tokenizers",
    "tiktoken",
    "torchdata",
    "datasets<4.8,>=3.6.0",
    "tensorboard",
    "safetensors",
    "einops",
    "pillow",
    "regex",
    "PyYAML",
)
# The environment of a driver is this and what a request asks for: a variable of the person's shell must not change a
# result.
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TTX_ORACLE_MEGATRON_SRC", "TZ")
SET_VARIABLES = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class OracleError(RuntimeError):
    """The environment is absent, or its driver died or did not answer; never a refusal by the real package."""


@dataclass(frozen=True)
class Package:
    """One framework at one version: what is installed, without dependencies, over the shared environment.

    ``pip_options`` serve a package whose wheel names another interpreter than ours, although the code asked here runs
    on ours."""

    name: str
    requirements: tuple[str, ...]
    driver: str
    pip_options: tuple[str, ...] = ()
    python_variable: str = ""
    source_variable: str = ""


PACKAGES: dict[str, Package] = {
    package.name: package
    for package in (
        # The source distribution asks for torch when it is built, so it is built where torch is.
        Package(
            "deepspeed-0.19.2",
            (
                "deepspeed==0.19.2",
                "transformers==5.24.0",
                "accelerate==1.15.0",
                "pydantic==2.14.4",
                "pydantic_core==2.50.5",
                "annotated-types",
                "typing-inspection",
                "hjson",
                "msgpack",
                "ninja",
                "psutil",
                "py-cpuinfo",
            ),
            "deepspeed_config.py",
            ("--no-build-isolation",),
            python_variable="TTX_ORACLE_DEEPSPEED_PYTHON",
        ),
        # Of what it asks for only this is imported; transformers is there for models of the hub alone.
        Package(
            "llm-analysis-0.2.2",
            ("llm-analysis==0.2.2", "fire==0.7.1", "termcolor"),
            "llm_analysis_memory.py",
        ),
        Package(
            "megatron-0.18.0",
            ("megatron-core==0.18.0",),
            "megatron_arguments.py",
            (
                "--only-binary=:all:",
                "--platform=manylinux_2_28_x86_64",
                "--python-version=3.12",
                "--implementation=cp",
                "--ignore-requires-python",
            ),
            "TTX_ORACLE_MEGATRON_PYTHON",
            "TTX_ORACLE_MEGATRON_SRC",
        ),
        Package(
            "torchtitan-0.1.0",
            ("torchtitan==0.1.0",),
            "torchtitan_toml.py",
            python_variable="TTX_ORACLE_TORCHTITAN_010_PYTHON",
        ),
        Package(
            "torchtitan-0.2.2",
            ("torchtitan==0.2.2",),
            "torchtitan_toml.py",
            python_variable="TTX_ORACLE_TORCHTITAN_022_PYTHON",
        ),
        Package(
            "torchtitan-0.3.0",
            ("torchtitan==0.3.0", "spmd_types==0.2.3", "torch_checkpointing>=0.1.0"),
            "torchtitan_python.py",
            python_variable="TTX_ORACLE_TORCHTITAN_030_PYTHON",
        ),
    )
}


def default_root() -> Path:
    """The folder of the environments: ``TTX_ORACLE_ROOT``, else ``.oracle`` in the repository."""
    return Path(os.environ.get("TTX_ORACLE_ROOT") or REPOSITORY / ".oracle").resolve()


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables of a driver: few and fixed, then those of ``extra``."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | SET_VARIABLES | dict(extra or {})


@dataclass(frozen=True)
class OracleEnvironment:
    """One built (or still absent) environment with a real package in it."""

    package: Package
    root: Path

    @property
    def folder(self) -> Path:
        """The environment's own folder."""
        return self.root / self.package.name

    @property
    def python(self) -> Path:
        """The interpreter that imports the real package; the package's own variable may name another."""
        override = os.environ.get(self.package.python_variable, "") if self.package.python_variable else ""
        return Path(override) if override else self.folder / "bin" / "python"

    @property
    def source(self) -> Path:
        """The folder that holds the package's own source (its ``site-packages``)."""
        return site_packages(self.folder)

    def missing(self) -> str | None:
        """Why the environment cannot be used, or None when it can."""
        if self.python != self.folder / "bin" / "python":
            return None if self.python.exists() else f"{self.package.python_variable} names no file: {self.python}"
        if is_built(self.folder, package_pins(self.package)) and is_built(self.root / SHARED, shared_pins()):
            return None
        return f"no environment {self.package.name} in {self.root}: run `python tests/oracle/environments.py`"

    def command(self, driver: str | None = None) -> list[str]:
        """The command that starts a driver of the drivers' folder (by default the package's own)."""
        return [str(self.python), str(DRIVERS / (driver or self.package.driver))]

    def run(
        self,
        driver: str | None = None,
        args: Sequence[str] = (),
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Start a driver for one question and return the JSON object on the last line of its output.

        Raises OracleError when it prints none or takes longer than ``timeout`` seconds.
        """
        command = [*self.command(driver), *args]
        try:
            done = subprocess.run(
                command,
                env=child_environment(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise OracleError(f"{self.package.name}: no answer in {timeout:g} s") from error
        lines = done.stdout.splitlines()
        try:
            answer = json.loads(lines[-1]) if lines else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise OracleError(f"{self.package.name}: exit {done.returncode}, no JSON object: {done.stderr[-2000:]}")
        return answer

    def serve(self, driver: str | None = None) -> OracleServer:
        """A driver that answers many questions; it starts at the first one."""
        return OracleServer(self, driver)


class OracleServer:
    """A running driver that answers one JSON line with another.

    It forks a child for every request after the imports, so requests share no state, whatever the package keeps in
    globals, and still cost no import. A server that died is started again at the next request."""

    def __init__(self, environment: OracleEnvironment, driver: str | None = None) -> None:
        self.environment = environment
        self._driver = driver
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._buffer = b""

    def request(
        self, command: str, *, timeout: float = DEFAULT_TIMEOUT_SECONDS, **parameters: object
    ) -> dict[str, Any]:
        """Ask the real package one question.

        The answer has ``ok``; when false, also ``stage`` (where the real code refused), ``error`` and ``output``.
        Raises OracleError when no answer came: a crash of the driver itself, or more than ``timeout`` seconds.
        """
        process = self._running()
        assert process.stdin is not None
        line = json.dumps({"command": command, "timeout": timeout, **parameters}).encode() + b"\n"
        try:
            process.stdin.write(line)
            process.stdin.flush()
            # The driver itself ends a request that takes too long; this wait is only for a driver that hangs.
            return self._read(timeout + 10.0)
        except OSError as error:
            raise self._died() from error

    def close(self) -> None:
        """End the driver, if one runs."""
        process, self._process, self._buffer = self._process, None, b""
        if process is not None:
            process.kill()  # it holds nothing worth an orderly end, which takes torch a second
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def __enter__(self) -> OracleServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        if reason := self.environment.missing():
            raise OracleError(reason)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [*self.environment.command(self._driver), "serve"],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        ready = self._read(START_TIMEOUT_SECONDS)
        if not ready.get("ok"):
            raise OracleError(f"{self.environment.package.name}: {ready}")
        return self._process

    def _read(self, timeout: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        stream = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise self._died(f"no answer in {timeout:g} s")
            part = os.read(stream, 1 << 16)
            if not part:
                raise self._died()
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _died(self, reason: str = "the driver ended") -> OracleError:
        log = b""
        if self._log is not None:
            self._log.seek(0)
            log = self._log.read()[-2000:]
        self.close()
        return OracleError(f"{self.environment.package.name}: {reason}: {log.decode(errors='replace')}")


def environment(name: str, root: Path | None = None) -> OracleEnvironment:
    """The environment of a name in PACKAGES, built or not."""
    return OracleEnvironment(PACKAGES[name], (root or default_root()).resolve())


def site_packages(folder: Path) -> Path:
    """Where a virtual environment of this interpreter's version keeps its packages."""
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def shared_pins() -> dict[str, Any]:
    """What the shared environment is built from."""
    return {"python": list(sys.version_info[:2]), "requirements": list(SHARED_REQUIREMENTS)}


def package_pins(package: Package) -> dict[str, Any]:
    """What a package's environment is built from, the shared one included, since it refers to it."""
    return {"shared": shared_pins(), "requirements": list(package.requirements), "options": list(package.pip_options)}


def is_built(folder: Path, pins: Mapping[str, Any]) -> bool:
    """Whether the folder holds a finished environment built from these pins."""
    try:
        return bool(json.loads((folder / STAMP).read_text(encoding="utf-8")) == dict(pins))
    except (OSError, ValueError):
        return False


def build(names: Sequence[str], root: Path) -> None:
    """Build the named environments and the shared one where they are absent or out of date.

    Raises subprocess.CalledProcessError when pip fails.
    """
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / "lock"):
        shared = root / SHARED
        if not is_built(shared, shared_pins()):
            say(f"building {shared}")
            make_environment(shared)
            pip(shared, "install", *SHARED_REQUIREMENTS)
            finish(shared, shared_pins())
        for name in names:
            package, folder = PACKAGES[name], root / name
            if not is_built(folder, package_pins(package)):
                say(f"building {folder}")
                build_package(package, folder, shared)


def build_package(package: Package, folder: Path, shared: Path) -> None:
    """Lay one package over the shared environment."""
    make_environment(folder, "--without-pip")
    target = site_packages(folder)
    pip(shared, "install", "--no-deps", *package.pip_options, "--target", str(target), *package.requirements)
    (target / "ttx_shared.pth").write_text(f"{site_packages(shared)}\n", encoding="utf-8")
    finish(folder, package_pins(package))


def make_environment(folder: Path, *options: str) -> None:
    """Make an empty virtual environment, in place of whatever lies there."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)


def pip(folder: Path, *arguments: str) -> None:
    """Run the pip of an environment, quietly; its errors are shown."""
    command = [str(folder / "bin" / "python"), "-m", "pip", "-qq", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def finish(folder: Path, pins: Mapping[str, Any]) -> None:
    """Write the stamp, last of all, so that a build that broke off is never taken for a finished one."""
    (folder / STAMP).write_text(json.dumps(pins, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one builder at a time work in a folder."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Build environments; exit 1 when one could not be built."""
    parser = argparse.ArgumentParser(description="Build the environments of the oracle tests.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(PACKAGES)}; all when none is given"
    )
    parser.add_argument("--root", type=Path, default=default_root(), help="folder of the environments")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in PACKAGES]:
        parser.error(f"unknown environment {unknown[0]}; known are {', '.join(PACKAGES)}")
    try:
        build(options.names or list(PACKAGES), options.root.resolve())
    except subprocess.CalledProcessError as error:
        say(f"failed: {' '.join(error.cmd)}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
