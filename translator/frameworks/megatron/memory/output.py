"""Logits and loss, buffers that stay, and what lies outside the allocator."""

from __future__ import annotations

import numpy as np

from translator.frameworks.megatron.memory.layer import SINGLE, Widths
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

MIB = 2**20
# cuBLAS and TransformerEngine take 32 MiB each on Hopper and later (``get_cublas_workspace_size_bytes``,
# transformer_engine/pytorch/module/base.py of 2.x), and blocks of the allocator are rounded up; grouped products run on
# four streams with a workspace each.
WORKSPACE_BYTES = 92 * MIB
STREAMS, STREAM_BYTES = 4, 32 * MIB


def loss(job: Job, stages: Stages) -> list[Term]:
    """Logits in the compute type, and what the cross entropy adds.

    The plain cross entropy turns the logits into fp32 and works in place
    (``megatron/core/tensor_parallel/cross_entropy.py:120``, core 0.18.0); TransformerEngine's writes the gradient over
    the logits.
    """
    w = Widths(job)
    depth = 1 + job.model.mtp_layers
    logits = stages.last * w.tokens * job.model.vocab / w.tensor
    terms = [Term("logits", Kind.TRANSIENT, logits * w.compute * depth)]
    fused = job.values.get("cross_entropy_loss_fusion") and job.values.get("cross_entropy_fusion_impl") == "te"
    if not fused:
        terms.append(Term("softmax of the logits", Kind.TRANSIENT, logits * SINGLE * depth))
    return terms


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of the output layer: the gradient of the logits, and a placeholder for that of the weight.

    With fused accumulation the layer still hands autograd an empty tensor of the weight's shape
    (``megatron/core/tensor_parallel/layers.py:591``, core 0.18.0).
    """
    w = Widths(job)
    logits = stages.last * w.tokens * job.model.vocab / w.tensor
    weight = stages.last * job.model.vocab * job.model.hidden / w.tensor
    return [
        Term("gradient of the logits", Kind.TRANSIENT, logits * w.compute),
        Term("gradient of the output weight", Kind.TRANSIENT, weight * w.compute),
        Term(
            "gradient of the last hidden state", Kind.TRANSIENT, stages.last * w.tokens * job.model.hidden * w.compute
        ),
    ]


def placeholders(job: Job, stages: Stages) -> list[Term]:
    """Empty weight gradients that TransformerEngine keeps, one for each shape of a weight.

    With fused accumulation the gradient goes straight into its buffer and autograd is handed a tensor that nobody
    reads (``get_dummy_wgrad``, transformer_engine/pytorch/module/base.py of 2.x; older releases keep none).
    """
    w = Widths(job)
    if not w.engine or job.values.get("gradient_accumulation_fusion") is False:
        return []
    model = job.model
    shapes = [model.hidden * model.ffn * (2 if model.gated else 1), model.hidden * model.ffn] if model.ffn else []
    if model.mla is None:
        shapes += [model.hidden * (model.query_width + 2 * model.kv_heads * model.head_dim)]
    else:
        shapes += [(model.mla.q_rank or model.hidden) * model.query_width]
        shapes += [model.mla.kv_rank * model.heads * (model.mla.nope + model.mla.value)]
    shapes.append(model.value_width * model.hidden)
    amount = sum(shapes) / w.tensor * w.compute
    if model.moe is not None:
        amount = amount + model.moe.ffn * model.hidden * 3 / job.layout.expert_tensor * w.compute
        amount = amount + model.moe.shared_ffn * model.hidden * 3 / w.tensor * w.compute
    return [Term("placeholders for weight gradients", Kind.WORKSPACE, stages.present * amount, doubt=0.9)]


def buffers(job: Job, stages: Stages) -> list[Term]:
    """What stays allocated: the gathered sequence in front of the output layer, masks, and workspaces of cuBLAS.

    ``megatron/core/tensor_parallel/layers.py:497`` (core 0.18.0) keeps one global buffer.
    """
    w = Widths(job)
    gathered = np.where(job.layout.sequence_parallel, w.tokens * job.model.hidden * w.compute, 0)
    terms = [
        Term("gathered sequence", Kind.WORKSPACE, stages.last * gathered),
        Term("workspaces of cuBLAS and TransformerEngine", Kind.WORKSPACE, stages.present * WORKSPACE_BYTES, doubt=0.5),
    ]
    if w.engine and job.model.moe is not None and job.values.get("moe_grouped_gemm"):
        streams = stages.present * STREAMS * STREAM_BYTES
        terms.append(Term("workspaces of the grouped products", Kind.WORKSPACE, streams, doubt=0.5))
    if job.values.get("create_attention_mask_in_dataloader"):
        mask = job.layout.micro_batch * job.layout.seq_len**2 / job.layout.context
        terms.append(Term("attention mask", Kind.WORKSPACE, stages.present * mask))
    return terms
