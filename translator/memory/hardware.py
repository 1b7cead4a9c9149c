"""Accelerators by name: ``fixtures/hardware/gpus.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from translator.errors import UsageError
from translator.resources import fixture_path

DEFAULT = "h100-80gb"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator: memory in bytes as the driver reports it, dense peak rates in FLOP/s, bandwidths in bytes/s."""

    name: str
    title: str
    memory_bytes: int
    peak_bf16_flops: float
    peak_fp8_flops: float | None
    bandwidth_bytes_per_second: float
    link_bytes_per_second: float
    source: str

    def peak_flops(self, compute: str | None, fp8: str | None) -> float:
        """The rate of matrix products in a precision of the spec; fp32 ones run at half of bf16's (TF32)."""
        if fp8 not in (None, "none") and self.peak_fp8_flops is not None:
            return self.peak_fp8_flops
        return self.peak_bf16_flops / (2 if compute == "fp32" else 1)


@cache
def gpus() -> dict[str, Gpu]:
    """All accelerators by name."""
    import yaml

    known: dict[str, dict[str, Any]] = yaml.safe_load(fixture_path("hardware", "gpus.yaml").read_text(encoding="utf-8"))
    return {
        name: Gpu(
            name,
            entry["title"],
            int(entry["memory_bytes"]),
            float(entry["peak_bf16_flops"]),
            float(entry["peak_fp8_flops"]) if "peak_fp8_flops" in entry else None,
            float(entry["bandwidth_bytes_per_second"]),
            float(entry["link_bytes_per_second"]),
            entry["source"],
        )
        for name, entry in known.items()
    }


def gpu(name: str) -> Gpu:
    """The accelerator called ``name``, case and punctuation aside. Raises UsageError with the nearest names."""
    wanted = _plain(name)
    known = gpus()
    found = [key for key in known if _plain(key) == wanted] or [key for key in known if _plain(key).startswith(wanted)]
    if not found or not wanted:
        from translator.names import nearest

        near = nearest(name.lower(), known)
        raise UsageError(f"no GPU called {name!r}", fix=f"known: {', '.join(near or known)}")
    if len({key.partition("-")[0] for key in found}) > 1:
        raise UsageError(f"more than one GPU begins with {name!r}", fix=f"one of {', '.join(found)}")
    return known[DEFAULT if DEFAULT in found else found[-1]]


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
