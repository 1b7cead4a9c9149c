"""How quick ``ttx convert`` is, as ratios, so that the numbers mean the same on every machine.

``python tests/benchmarks/startup.py`` prints, in the environment it runs in:

* cold: the wall time of a new process that converts a script, over that of ``python -c "import pydantic"`` (medians,
  the two taken in turn; the disk is warm, and the package has its bytecode, as after an installation);
* warm: the mean of 100 conversions in one process, in milliseconds of processor time (which other programs do not
  disturb, as they do wall time) and over a fixed piece of pure Python.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "fixtures" / "examples" / "llama3-8b-megatron" / "train.sh"
COLD_LIMIT = 4.0  # times `import pydantic`
WARM_LIMIT_MS = 10.0
CONVERT = (sys.executable, "-m", "translator", "convert", str(SCRIPT), "--to", "torchtitan")
IMPORT = (sys.executable, "-c", "import pydantic")


@dataclass(frozen=True)
class Cold:
    """Medians in seconds."""

    convert: float
    imported: float

    @property
    def ratio(self) -> float:
        return self.convert / self.imported


@dataclass(frozen=True)
class Warm:
    """The mean of a conversion and of the fixed workload, in milliseconds of processor time, and of wall time."""

    convert_ms: float
    wall_ms: float
    workload_ms: float

    @property
    def ratio(self) -> float:
        return self.convert_ms / self.workload_ms


def _wall(command: Sequence[str], env: dict[str, str], expected: int) -> float:
    begin = time.perf_counter()
    code = subprocess.run(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, check=False
    ).returncode
    elapsed = time.perf_counter() - begin
    assert code == expected, f"{command} ended with {code}"
    return elapsed


def cold(runs: int = 9) -> Cold:
    """Both commands ``runs`` times in turn, each in a new process."""
    with tempfile.TemporaryDirectory() as bytecode:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = bytecode
        for command, expected in ((CONVERT, 1), (IMPORT, 0)):  # writes the bytecode, warms the disk
            _wall(command, env, expected)
        pairs = [(_wall(CONVERT, env, 1), _wall(IMPORT, env, 0)) for _ in range(runs)]
    return Cold(*(statistics.median(column) for column in zip(*pairs, strict=True)))


def workload() -> int:
    """A fixed piece of pure Python: strings, dictionaries, calls."""
    words = [f"--option-{number}" for number in range(4000)]
    found: dict[str, int] = {}
    for word in words:
        found[word.replace("-", "_").strip("_")] = len(word.split("-"))
    return sum(sorted(found.values()))


def warm(conversions: int = 100) -> Warm:
    """``conversions`` in this process, from the file to the finished text and ledger."""
    sys.path.insert(0, str(ROOT))
    from translator.api import convert

    began, begin = time.perf_counter(), time.process_time()
    for _ in range(conversions):
        convert(str(SCRIPT), "torchtitan")
    wall, middle = time.perf_counter() - began, time.process_time()
    for _ in range(conversions):
        workload()
    end = time.process_time()
    return Warm(*(seconds / conversions * 1000 for seconds in (middle - begin, wall, end - middle)))


def main() -> None:
    """Prints both."""
    one = cold()
    print(f"cold: {one.ratio:.2f} x import pydantic ({one.convert * 1000:.0f} ms / {one.imported * 1000:.0f} ms)")
    many = warm()
    print(
        f"warm: {many.convert_ms:.1f} ms per conversion ({many.wall_ms:.1f} ms of wall time), "
        f"{many.ratio:.2f} x the fixed workload"
    )


if __name__ == "__main__":
    main()
