"""Rows of the model: a named flavor of a ``model_registry``, or one built from public names by plain facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses
from translator.frameworks.torchtitan.flavors import Choice, arguments, choose
from translator.frameworks.torchtitan.models import families
from translator.frameworks.torchtitan.models.python import BACKENDS
from translator.frameworks.torchtitan.table.model import FIELDS, admit, read_leaves
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView

NAME, FLAVOR, BACKEND = "model_spec.name", "model_spec.flavor", "model_spec.attn_backend"
CUSTOM = "custom"
_DIMENSIONS = (
    "dim",
    "n_layers",
    "n_heads",
    "vocab_size",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)
# The backend that a family's model_registry takes when none is named (models/gpt_oss/__init__.py:413).
DEFAULT_BACKEND = {"gpt_oss": "varlen"}


def _read(native: NativeView) -> Mapping[str, Any]:
    return read_leaves(native, f"{native(NAME)}/{native(FLAVOR)}")


def _write(spec: SpecView, sink: Sink) -> None:
    wanted = {leaf: spec(leaf) for leaf in FIELDS}
    if wanted["model.layers"] is None or wanted["model.hidden"] is None:
        _write_name(wanted["model.name"], sink)
        return
    if wanted["model.tied_embeddings"] and spec("parallel.pipeline.degree", 1) > 1:
        wanted["model.tied_embeddings"] = False
        why = "tied embeddings cannot be split into stages (models/common/decoder.py:138)"
        sink.short("model.tied_embeddings", Entry.UNSUPPORTED, why)
    choice = choose(
        {leaf: value for leaf, value in wanted.items() if value is not None},
        sink.version,
        seq_len=spec("batch.seq_len"),
        pipeline=spec("parallel.pipeline.degree", 1),
    )
    if choice is None:
        sink.need("model.layers", f"no models are known for torchtitan {sink.version}")
        return
    sink.put(NAME, choice.name)
    sink.put(FLAVOR, choice.flavor or CUSTOM)
    if choice.custom is not None:
        sink.put(addresses.MODEL_ARGUMENTS, _facts(choice, sink.version))
    _write_backend(wanted["model.attention_kernel"], choice.name, spec("parallel.context", 1) > 1, sink)
    _admit_mask(wanted["model.attention_mask"], sink)
    admit(wanted, choice, sink)
    if wanted["model.max_positions"] is not None:
        why = "a flavor has its own positions, of which the run builds those of training.seq_len"
        sink.short("model.max_positions", Entry.ADAPTED, why)


def _write_name(name: Any, sink: Sink) -> None:
    family, _, flavor = name.partition("/") if isinstance(name, str) else ("", "", "")
    if family in families(sink.version) and flavor:
        sink.put(NAME, family)
        sink.put(FLAVOR, flavor)
    else:
        sink.need("model.layers", "the architecture is not in the source; set model.layers=N, model.hidden=N ...")
    for leaf in FIELDS:
        sink.short(leaf, Entry.UNSUPPORTED, "the architecture is not known, so no flavor was chosen")


def _facts(choice: Choice, version: str) -> dict[str, object]:
    """The facts of a model built by hand; dimensions that the source leaves open are those of the nearest flavor."""
    assert choice.custom is not None
    # The backend is an option of its own, which the run may restrict.
    found = {fact: value for fact, value in choice.custom.arguments.items() if fact != "attn_backend"}
    nearest = arguments(choice.name, choice.nearest.flavor, version) or {}
    sparse = bool(found.get("num_experts"))
    dense = not sparse or found.get("n_dense_layers") or found.get("dense_layers")
    wanted = [*_DIMENSIONS, *(["hidden_dim"] if dense else []), *(["moe_hidden_dim"] if sparse else [])]
    for fact in wanted:
        if fact not in found and nearest.get(fact) is not None:
            found[fact] = nearest[fact]
    return found


def _write_backend(kernel: Any, name: str, contextual: bool, sink: Sink) -> None:
    usual = DEFAULT_BACKEND.get(name, "flex")
    backend = kernel if kernel in BACKENDS else usual
    if contextual and backend == "varlen":
        backend = "flex"
        why = "context parallelism runs flex attention only (distributed/full_dtensor.py:44)"
        sink.short("model.attention_kernel", Entry.APPROXIMATED, why)
    if backend != usual:
        sink.put(BACKEND, backend)


def _admit_mask(mask: Any, sink: Sink) -> None:
    if mask == "causal":
        why = (
            "tokens attend within their document only (models/common/config_utils.py:70); "
            "the same when a sequence holds one document"
        )
        sink.short("model.attention_mask", Entry.APPROXIMATED, why)


ROWS: tuple[Row, ...] = (
    linked(
        [NAME, FLAVOR, BACKEND],
        FIELDS,
        read=_read,
        write=_write,
        influences={BACKEND: ("model.attention_kernel",)},
    ),
)
