"""The Config classes of 0.3.0 that a configuration is written with: where they are imported from, and their defaults.

``SECTIONS`` are the fields of ``Trainer.Config`` that hold a dataclass which nobody swaps (``trainer.py:60-118``);
``CLASSES`` all classes by the name that a configuration calls, nested Configs included; a field that holds a class of
its own has that class's name as its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ConfigClass(NamedTuple):
    """A class to construct: ``call`` is what is written (``SelectiveAC.Config``), ``module`` where its name is from.

    ``fields`` are defaults of classes that can be swapped; those of the fixed sections are in the catalogue.
    """

    call: str
    module: str
    fields: Mapping[str, object]

    @property
    def imported(self) -> str:
        """The name to import."""
        return self.call.partition(".")[0]


def _nested(name: str, module: str, **fields: object) -> tuple[str, ConfigClass]:
    return name, ConfigClass(f"{name}.Config", f"torchtitan.{module}", fields)


_AC = {"preserve_rng_state": True, "determinism_check": "default", "debug": False}
_LOADER = {
    "num_workers": 0,
    "persistent_workers": False,
    "pin_memory": False,
    "prefetch_factor": None,
}
_CONVERTER = {"model_compile_enabled": False}

SECTIONS: Mapping[str, ConfigClass] = {
    "training": ConfigClass("TrainingConfig", "torchtitan.config", {}),
    "parallelism": ConfigClass("ParallelismConfig", "torchtitan.config", {}),
    "compile": ConfigClass("CompileConfig", "torchtitan.config", {}),
    "comm": ConfigClass("CommConfig", "torchtitan.config", {}),
    "debug": ConfigClass("DebugConfig", "torchtitan.config", {}),
    "override": ConfigClass("OverrideConfig", "torchtitan.config", {}),
    "profiler": ConfigClass("Profiler.Config", "torchtitan.tools.profiler", {}),
    "metrics": ConfigClass("MetricsProcessor.Config", "torchtitan.components.metrics", {}),
    "lr_scheduler": ConfigClass("LRSchedulersContainer.Config", "torchtitan.components.optimizer", {}),
}
CLASSES: Mapping[str, ConfigClass] = dict(
    (
        _nested("OptimizersContainer", "components.optimizer"),
        _nested("CheckpointManager", "components.checkpoint"),
        _nested("Validator", "components.validate"),
        _nested("SelectiveAC", "distributed.activation_checkpoint", **_AC),
        _nested("FullAC", "distributed.activation_checkpoint", **_AC),
        _nested(
            "MemoryBudgetAC",
            "distributed.activation_checkpoint",
            **_AC,
            memory_budget=0.5,
            visualize_memory_budget_pareto=False,
        ),
        _nested("CrossEntropyLoss", "components.loss", global_vocab_size=None),
        _nested("ChunkedLossWrapper", "components.loss", num_chunks=8, loss_fn="CrossEntropyLoss"),
        _nested(
            "HuggingFaceTextDataLoader",
            "hf_datasets.text_datasets",
            dataset="c4_test",
            dataset_path=None,
            **_LOADER,
            infinite=True,
        ),
        _nested(
            "Float8LinearConverter",
            "components.quantization",
            **_CONVERTER,
            recipe_name="rowwise",
            filter_fqns=[],
            emulate=False,
        ),
        _nested("Float8GroupedExpertsConverter", "components.quantization", **_CONVERTER),
        _nested("MXFP8LinearConverter", "components.quantization", **_CONVERTER, fqns=[]),
        _nested(
            "MXFP8GroupedExpertsConverter",
            "components.quantization",
            **_CONVERTER,
            recipe_name="mxfp8_rceil",
            pad_multiple=32,
        ),
        _nested("NVFP4LinearConverter", "components.quantization", **_CONVERTER, fqns=[]),
    )
)
# The class in force where a configuration names none (trainer.py:79-118).
DEFAULT_CLASS: Mapping[str, str] = {
    "activation_checkpoint": "SelectiveAC",
    "checkpoint": "CheckpointManager",
    "optimizer": "OptimizersContainer",
    "validator": "Validator",
    "validator.dataloader": "HuggingFaceTextDataLoader",
    "dataloader": "BaseDataLoader",
    "loss": "BaseLoss",
}


def fields_of(path: str, values: Mapping[str, object]) -> Mapping[str, object]:
    """Defaults of the class in force at ``path``, by address; empty for a class that is not known here."""
    known = CLASSES.get(str(values.get(path, DEFAULT_CLASS.get(path))))
    return {f"{path}.{name}": value for name, value in known.fields.items()} if known else {}
