"""DeepSpeed as a framework of ttx."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from translator.catalogue import load
from translator.errors import UsageError
from translator.frameworks.base import OPTIONS, Generator, RenderContext, Rendered
from translator.frameworks.deepspeed import bundle, syntax
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.knowledge import Knowledge
from translator.native import Missing, Native
from translator.reading import ReadOptions
from translator.source import Source

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.mapping.table import Table
    from translator.mapping.views import Sink
    from translator.shell.launchers import Launcher

# Surer than Megatron-LM's reader is of the same text.
FORK_SURE = 0.97


class Deepspeed:
    """JSON with its trainer's arguments, model and launch script in and out."""

    name = "deepspeed"
    title = "DeepSpeed"
    versions = syntax.VERSIONS
    default_version = syntax.DEFAULT_VERSION
    knowledge = Knowledge(
        codes=("translator.frameworks.deepspeed.codes", "translator.frameworks.deepspeed.megatron_fork.codes"),
        checks=("translator.frameworks.deepspeed.checks",),
        memory="translator.frameworks.deepspeed.memory",
        communication="translator.frameworks.deepspeed.communication",
        concepts=tuple(
            f"translator.frameworks.deepspeed.concepts.{topic}"
            for topic in ("layout", "state", "training", "operation")
        ),
        stances=tuple(
            f"translator.frameworks.deepspeed.stances.{topic}"
            for topic in ("training", "optimizer", "schedule", "precision", "layout", "model", "operation")
        ),
    )
    takes_model = True

    def catalogue(self, version: str) -> Catalogue:
        """The keys of the JSON."""
        return load(self.name, version)

    def generators(self) -> Mapping[str, Mapping[str, Generator]]:
        """What generates the catalogue of keys, and that of the trainer's arguments."""
        from translator.frameworks.deepspeed import extract, extract_transformers
        from translator.frameworks.deepspeed.megatron_fork import extract as extract_fork

        return {
            self.name: {OPTIONS: extract.generate},
            forks.CATALOGUE: {OPTIONS: extract_fork.generate},
            extract_transformers.CATALOGUE: {OPTIONS: extract_transformers.generate},
        }

    def launchers(self) -> Mapping[str, Launcher]:
        """``deepspeed``, and ``accelerate launch``."""
        from translator.frameworks.deepspeed.launchers import LAUNCHERS

        return LAUNCHERS

    def sniff(self, source: Source) -> float:
        """How surely the text is DeepSpeed's, from 0 to 1."""
        if self._is_fork(source):
            return FORK_SURE
        return syntax.sniff(source.name, source.text)

    @staticmethod
    def _is_fork(source: Source) -> bool:
        """Whether a text looks like a script of Megatron-DeepSpeed."""
        if "--deepspeed" not in source.text:
            return False
        from translator.frameworks.deepspeed.megatron_fork import reader

        return reader.sniff(source.name, source.text)

    def guess_version(self, source: Source) -> str:
        """The version that a hint in the text, or in the trainer's arguments beside it, names; else the default."""
        found = bundle.gather(source)
        return syntax.guess_version(found.hinted or found.text)

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        """Read and settle. Raises SourceError when the text cannot be read at all."""
        inputs = syntax.Inputs(options.variables, options.positional, options.launch, source.read_sibling)
        if self._is_fork(source):
            native = self._read_fork(source, version, options, inputs)
            if native is not None:
                self.settle(native)
                return native
        found = bundle.gather(source)
        native = syntax.read_source(
            found.name,
            found.text,
            version=version,
            world_size=options.world_size,
            inputs=inputs,
            model=self._model(options) or found.model,
        )
        bundle.read_hints(native, found)
        self._remark_model(native)
        self.settle(native)
        return native

    @staticmethod
    def _read_fork(source: Source, version: str, options: ReadOptions, inputs: syntax.Inputs) -> Native | None:
        from translator.frameworks.deepspeed.megatron_fork import reader

        native = reader.read(source.name, source.text, version, options.world_size, inputs)
        if native is not None and options.model is not None:
            raise UsageError("--model: the script's arguments hold its model", fix="set model.FIELD=VALUE")
        return native

    @staticmethod
    def _remark_model(native: Native) -> None:
        """Say what of the model is not understood."""
        from translator.frameworks.deepspeed.table.model import CONFIG, config_of

        config = config_of(native.explicit_values())
        if not config:
            return
        from translator.findings import Finding, Level
        from translator.frameworks.deepspeed import hf_models
        from translator.frameworks.deepspeed.syntax_json import shown

        for key, expected in hf_models.misfits(config).items():
            given = native.given.get(f"{CONFIG}{key}")
            if given is not None:
                message = f"{key} cannot be {shown(given.value)}: {expected}"
                native.findings.append(Finding("R133", Level.ERROR, message, f"mend {key}", given.place, key))
                native.given[given.address] = replace(given, value=Missing(shown(given.value), expected, ""))
                del config[key]
        found = hf_models.read(config)
        place = next(given.place for address, given in native.given.items() if address.startswith(CONFIG))
        if found.family is None:
            message = f"models of type {config.get('model_type')!r} are not known; their usual entries are read"
            native.findings.append(
                Finding("R150", Level.WARNING, message, "set model.FIELD=VALUE", place, "model_type")
            )
        elif found.strangers:
            listed = ", ".join(found.strangers[:8])
            message = f"the model's {listed} has no field in the spec"
            native.findings.append(Finding("R151", Level.NOTE, message, "", place, found.strangers[0]))

    @staticmethod
    def _model(options: ReadOptions) -> syntax.Companion | None:
        if options.model is None:
            return None
        from translator.frameworks.deepspeed.named_models import find

        return find(options.model)

    def settle(self, native: Native) -> None:
        """Fill in what is in force."""
        if forks.reads(native):
            from translator.frameworks.deepspeed.megatron_fork.settle import settle as settle_fork

            settle_fork(native)
            return
        from translator.frameworks.deepspeed.settle import settle

        settle(native)

    def table(self, version: str) -> Table:
        """All mapping rows for the version."""
        from translator.frameworks.deepspeed.table import table

        return table(version)

    def table_of(self, native: Native) -> Table:
        """The rows that read a configuration: a script of Megatron-DeepSpeed has its own."""
        if not forks.reads(native):
            return self.table(native.version)
        from translator.frameworks.deepspeed.megatron_fork.table import table

        return table(native)

    def spelling(self, address: str, version: str) -> str:
        """The key with its sections, the argument of the trainer, or that of the script."""
        if address.startswith(forks.PREFIX):
            return forks.spelling(address)
        from translator.frameworks.deepspeed import render

        return render.spelling(address, version)

    def default(self, address: str, version: str) -> Any:
        """The default in force without a key or argument."""
        if address.startswith(forks.PREFIX):
            return forks.default(address)
        from translator.frameworks.deepspeed import render

        return render.default(address, version)

    def must_state(self, address: str, value: Any, version: str) -> bool:
        """Whether the value differs from the default, or supported versions disagree about it."""
        from translator.frameworks.deepspeed import render

        return render.must_state(address, value, version)

    def keeps_unknown(self, version: str) -> bool:
        """Yes: most sections ignore what they do not know, and optimizers hand arguments on."""
        _ = version
        return True

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        """Strict JSON, the trainer's arguments, the model's configuration and a launch script."""
        from translator.frameworks.deepspeed import render

        return render.render(sink, version, context)


FRAMEWORK = Deepspeed()
