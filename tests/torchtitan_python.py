"""Configurations of 0.3.0 made from spec leaves: written, settled and rendered, for several tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from translator.catalogue import load
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.torchtitan import flavors
from translator.frameworks.torchtitan.framework import FRAMEWORK
from translator.mapping.views import Sink
from translator.native import Given, Native
from translator.spec import leaves

VERSION = "0.3.0"


def native(values: dict[str, Any]) -> Native:
    """A settled configuration that states these values."""
    found = Native("torchtitan", VERSION)
    for address, value in values.items():
        found.given[address] = Given(address, value, address)
    FRAMEWORK.settle(found)
    return found


def flat(model: str, changes: dict[str, Any]) -> dict[str, Any]:
    """All leaves of a run of a named flavor (``llama3/8B``), with changes; the rest is what 0.3.0 means by nothing."""
    name, flavor = model.split("/")
    seq_len = changes.get("batch.seq_len", 2048)
    base = native(
        {
            "model_spec.name": name,
            "model_spec.flavor": flavor,
            "training.seq_len": seq_len,
            "loss": "CrossEntropyLoss",
            "dataloader": "HuggingFaceTextDataLoader",
            "optimizer.param_groups": [
                {
                    "pattern": ".*",
                    "optimizer_name": "AdamW",
                    "optimizer_kwargs": {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1},
                }
            ],
            "@world_size": changes.get("parallel.world_size", 8),
        }
    )
    found = FRAMEWORK.table(VERSION).read(base.values)
    assert flavors.dimensions(name, flavor, VERSION) is not None
    assert set(changes) <= set(leaves()), set(changes) - set(leaves())
    return {**found, **changes}


@dataclass
class Written:
    """What became of leaves: the values written, the files, and the configuration as it settles."""

    sink: Sink
    rendered: Rendered
    settled: Native

    @property
    def text(self) -> str:
        """The module."""
        return self.rendered.files[self.rendered.main]

    @property
    def function(self) -> str:
        """The name of its function, which is the module's too."""
        return self.rendered.main.removesuffix(".py")


def write(spec: dict[str, Any], source: str = "llama.sh") -> Written:
    """Write leaves as a configuration of 0.3.0."""
    sink = FRAMEWORK.table(VERSION).write(spec)
    rendered = FRAMEWORK.render(sink, VERSION, RenderContext({}, source, "a test", spec))
    return Written(sink, rendered, native(dict(sink.values)))


def catalogue_default(address: str) -> Any:
    """The default of an option."""
    return load("torchtitan", VERSION).default(address)
