"""Ten thousand layouts of one model are estimated in a second."""

from __future__ import annotations

import time

import numpy as np

from translator import api
from translator.memory.estimate import estimate, estimate_reading
from translator.reading import ReadOptions
from translator.source import Source

LAYOUTS = 10_000
SOURCE = """--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8
--ffn-hidden-size 28672 --vocab-size 128256 --swiglu --disable-bias-linear --normalization RMSNorm --seq-length 8192
--max-position-embeddings 8192 --position-embedding-type rope --untie-embeddings-and-output-weights --bf16 --mock-data
--use-distributed-optimizer --micro-batch-size 1 --global-batch-size 1024 --train-iters 10 --lr 1e-4"""


def test_many_layouts_at_once() -> None:
    source = Source("arguments.txt", SOURCE.replace("\n", " "))
    one = estimate_reading(api.read(source, framework="megatron", options=ReadOptions(world_size=1024))).job
    tensor, pipeline, context, chunks, micro_batch = (
        axis.ravel() for axis in np.meshgrid([1, 2, 4, 8], [1, 2, 4, 5, 8, 10, 16], [1, 2, 4, 8], [1, 2], [1, 2, 4])
    )
    repeat = -(-LAYOUTS // len(tensor))
    tensor, pipeline, context, chunks, micro_batch = (
        np.tile(axis, repeat)[:LAYOUTS] for axis in (tensor, pipeline, context, chunks, micro_batch)
    )
    shard = np.maximum(1024 // (tensor * pipeline * context), 1)

    def layouts(rows: slice) -> dict[str, np.ndarray]:
        return {
            "tensor": tensor[rows],
            "pipeline": pipeline[rows],
            "context": context[rows],
            "chunks": chunks[rows],
            "micro_batch": micro_batch[rows],
            "shard": shard[rows],
            "micro_batches": np.maximum(1024 // (micro_batch[rows] * shard[rows]), 1),
            "sequence_parallel": tensor[rows] > 1,
        }

    best = 60.0
    for _ in range(3):
        start = time.perf_counter()
        many = estimate(one.with_layouts(**layouts(slice(None))))
        best = min(best, time.perf_counter() - start)
    assert many.totals.allocated.expected.shape == (LAYOUTS, 16)
    assert best <= 1.0, f"{best:.2f} s"
    for row in (0, 17, 333, 4711):
        alone = estimate(one.with_layouts(**layouts(slice(row, row + 1)))).totals.allocated.expected[0]
        together = many.totals.allocated.expected[row, : len(alone)]
        assert np.allclose(alone, together), "a layout costs the same alone and among others"
