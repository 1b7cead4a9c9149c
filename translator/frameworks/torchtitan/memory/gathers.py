"""What FSDP2 gathers and reduces around its groups, and in which pool of the allocator.

Every block is a group; the embedding, and the last norm with the output layer, are groups of their own since 0.2
(``models/llama3/infra/parallelize.py:318``, 0.2.2) and belonged to the root before, which keeps them whole from the
first forward to the last backward pass (``models/llama3/infra/parallelize.py:383``, 0.1.0). FSDP2 gathers into a buffer
of the stream that copies in, copies out into the computation's stream, and reduces into a buffer of the stream that
reduces (``torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py``, ``foreach_all_gather``,
``foreach_all_gather_copy_out`` and ``foreach_reduce``, torch 2.13). A stream's blocks are not lent to another stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.parameters import (
    around_experts,
    dense_block,
    elements,
    embedding,
    fsdp_ranks,
    held,
    last_norm,
    release,
    routed_experts,
)
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

GATHER, REDUCE = "gathering", "reduction"


class Groups:
    """FSDP's groups on one rank before FSDP splits them, of shape (layouts, stages).

    ``block`` (of the larger kind), ``output``, ``ends`` and ``everything`` are elements; ``gathered_...`` bytes as they
    are gathered: in the compute type, the linear weights of blocks in fp8 where that is asked for
    (``enable_fsdp_float8_all_gather``, up to 0.2).
    """

    def __init__(self, job: Job, stages: Stages) -> None:
        model = job.model
        self.several = np.asarray(job.layout.micro_batches) > 1
        self.pipeline = np.asarray(job.layout.pipeline) > 1
        self.compute = job.bytes_of("precision.compute", "fp32")
        self.reduce = job.bytes_of("precision.grad_reduce", "fp32")
        self.ranks = fsdp_ranks(job)
        self.unfinished = unfinished_chunks(job)
        # Since 0.3 FSDP is applied to one rank too, for its mixed precision (models/llama3/parallelize.py:69, 0.3.0).
        always = release(job) >= (0, 3)
        self.applied = np.where((self.ranks > 1) | always, 1, 0)
        self.split = np.where(self.ranks > 1, 1, 0)
        self.root = release(job) < (0, 2)
        self.whole = job.flat.get("parallel.data.reshard_after_forward") is False
        experts = held(job, around_experts(job)) + held(job, routed_experts(job)) if model.moe else 0
        self.block = np.maximum(held(job, dense_block(job)) * (stages.dense > 0), experts * (stages.moe > 0))
        output = held(job, [*embedding(model), last_norm(model)])
        self.output = stages.last * output
        tied = np.asarray(model.tied & (np.asarray(job.layout.pipeline) == 1))
        self.ends = stages.first * held(job, embedding(model))
        self.ends = self.ends + stages.last * np.where(tied, held(job, [last_norm(model)]), output)
        self.everything = elements(job, stages, held)
        wide = 1 if job.flat.get("precision.fp8_parameters") else self.compute
        self.gathered_block = self.block * wide
        self.gathered_output, self.gathered_ends = self.output * self.compute, self.ends * self.compute
        # One end at a time, where they are groups of their own.
        self.gathered_end = np.maximum(stages.first * held(job, embedding(model)), self.output) * self.compute
        self.gathered_everything = (self.everything - self.ends) * wide + self.gathered_ends

    def term(self, name: str, amount: Any, pool: str = "") -> Term:
        """Gathered parameters, in bytes. Of one rank alone nothing is gathered, but copied in the compute type."""
        return Term(name, Kind.TRANSIENT, amount * (self.split if pool == GATHER else self.applied), pool=pool)


def forward(groups: Groups) -> list[Term]:
    """The start of a forward pass: the result of one gathering waits until the next one is copied out.

    ``_fsdp_param_group.py:417`` (torch 2.13), ``wait_for_unshard``; the shards are cast into a buffer beforehand.
    """
    ends = groups.gathered_ends if groups.root else groups.gathered_end
    pair = groups.gathered_block + np.maximum(ends, groups.gathered_block)
    return [
        groups.term("gathering of two groups", pair, GATHER),
        groups.term("shards cast for gathering", np.maximum(ends, groups.gathered_block) / groups.ranks, GATHER),
    ]


def at_loss(groups: Groups) -> list[Term]:
    """After the last block: what stays whole, and the last gathering's result."""
    if groups.whole:
        return [groups.term("gathered parameters", groups.gathered_everything), *_accumulated(groups)]
    last = groups.gathered_block if groups.root else groups.gathered_output
    return [
        groups.term("gathered output layer", _at_the_end(groups)),
        groups.term("last gathering", last, GATHER),
        *_accumulated(groups),
    ]


def _at_the_end(groups: Groups) -> Any:
    """Bytes that are whole after the forward pass: output layer and norm; until 0.1 the root and the last block."""
    return groups.gathered_ends + groups.gathered_block if groups.root else groups.gathered_output


def in_backward(groups: Groups) -> list[Term]:
    """While a block's backward pass runs: the block, the next one on its way, and a gradient on its way.

    A group's gradients are copied into the reduction's input in the reduction type, and live until then
    (``_fsdp_param_group.py:588``, torch 2.13, ``post_backward``).
    """
    block, one = groups.block, np.where(groups.applied, 1, 0)
    if groups.whole:
        return [
            groups.term("gathered parameters", groups.gathered_everything),
            *_accumulated(groups),
            Term("gradient before it is added", Kind.TRANSIENT, block * groups.compute * one * groups.several),
            Term(
                "gradient on its way",
                Kind.TRANSIENT,
                block * (groups.compute + groups.reduce) * one * ~groups.several,
            ),
        ]
    terms = [
        groups.term("gathered block", groups.gathered_block),
        groups.term("gathering of the next block", groups.gathered_block, GATHER),
        Term("gradient on its way", Kind.TRANSIENT, block * (groups.compute + groups.reduce) * one),
        *_accumulated(groups),
    ]
    if groups.root:
        terms.append(groups.term("gathered embedding and output layer", groups.gathered_ends))
        gradient = groups.output * groups.compute * one
        terms.append(Term("gradient of the output layer, for the root's reduction", Kind.TRANSIENT, gradient))
    return terms


def at_output(groups: Groups) -> list[Term]:
    """While the output layer's backward pass runs: its weight's gradient, and the reduction's input."""
    kept = groups.gathered_everything if groups.whole else _at_the_end(groups)
    way = groups.compute + (0 if groups.root else groups.reduce)
    return [
        groups.term("gathered output layer", kept),
        Term("gradient of the output weight", Kind.TRANSIENT, groups.output * way * groups.applied),
        *_accumulated(groups),
    ]


def _accumulated(groups: Groups) -> list[Term]:
    """Gradients of earlier micro batches under a pipeline: whole, in the reduction type, until the last one.

    ``torch/distributed/pipelining/stage.py:844``, and ``to_accumulated_grad_if_needed`` in ``_fsdp_param.py`` (torch
    2.13).
    """
    amount = groups.everything * groups.reduce * groups.applied * (groups.several & groups.pipeline)
    return [Term("unsharded gradients", Kind.GRADIENTS, amount * groups.unfinished)]


def unfinished_chunks(job: Job) -> Any:
    """The share of a rank's model chunks whose gradients are being summed up at once.

    A chunk's gradients are reduced after its last micro batch. Breadth first, and interleaved with no more micro
    batches than ranks, one chunk ends before the next begins (``ScheduleLoopedBFS``, ``ScheduleInterleaved1F1B`` and
    ``ScheduleInterleavedZeroBubble`` in ``torch/distributed/pipelining/schedules.py``, torch 2.13).
    """
    layout = job.layout
    chunks = np.asarray(layout.chunks)
    if layout.schedule == "looped_bfs":
        return 1 / chunks
    if layout.schedule in ("interleaved_1f1b", "interleaved_zero_bubble"):
        return np.where(np.asarray(layout.micro_batches) <= np.asarray(layout.pipeline), 1 / chunks, 1.0)
    return 1.0
