"""Memory under torchtitan: what each option and each release adds or takes away."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from translator import api
from translator.memory.estimate import Estimate, estimate, estimate_reading
from translator.memory.sizes import Job
from translator.memory.terms import Kind, Term
from translator.reading import ReadOptions
from translator.source import Source

GIB = 2**30
LLAMA3_8B = 8_030_261_248
LOSS, BLOCK, STEP = "loss of the last micro batch", "backward pass of a block", "optimizer step"


def estimated(flavor: str = "8B", gpus: int = 8, *, name: str = "llama3", more: str = "", **options: Any) -> Estimate:
    """An estimate of a TOML configuration of 0.2.2: parallelism by keyword, sections as text."""
    lines = [f'[model]\nname = "{name}"\nflavor = "{flavor}"']
    lines.append(f"[training]\nseq_len = 8192\nlocal_batch_size = {options.pop('local_batch_size', 1)}")
    lines.append(f"enable_cpu_offload = {str(options.pop('offload', False)).lower()}")
    lines.append(f'[activation_checkpoint]\nmode = "{options.pop("mode", "full")}"\nselective_ac_option = "op"')
    lines.append("[parallelism]")
    lines += [f"{key} = {value!r}" for key, value in options.items()]
    source = Source("run.toml", "\n".join([*lines, more]).replace("'", '"'))
    return estimate_reading(api.read(source, framework="torchtitan@0.2.2", options=ReadOptions(world_size=gpus)))


def changed(found: Estimate, version: str | None = None, **leaves: Any) -> Estimate:
    """The same job with other fields (two underscores for a dot), or under another release."""
    job: Job = found.job
    flat = {**job.flat, **{name.replace("__", "."): value for name, value in leaves.items()}}
    return estimate(replace(job, flat=flat, version=version or job.version))


def amounts(terms: list[Term], stage: int = 0) -> dict[str, float]:
    """Bytes of terms by name, on one stage."""
    shape = (1, max(np.asarray(term.amount).shape[-1] if np.asarray(term.amount).ndim else 1 for term in terms))
    return {term.name: float(np.broadcast_to(term.amount, shape)[0, stage]) for term in terms}


def test_shards_are_fp32_masters_with_two_moments() -> None:
    state = amounts(estimated().account.state)
    assert state["parameter shards"] == 4 * LLAMA3_8B / 8
    assert state["moments"] == 8 * LLAMA3_8B / 8


def test_gradients_lie_in_the_reduction_stream_and_are_gone_in_the_forward_pass() -> None:
    found = estimated()
    assert amounts(found.account.phases[STEP])["gradient shards"] == 4 * LLAMA3_8B / 8
    assert not any(term.kind is Kind.GRADIENTS and np.any(term.amount) for term in found.account.phases[LOSS])
    pools = {term.pool for phase in found.account.phases.values() for term in phase}
    assert pools == {"", "gathering", "reduction"}
    totals = found.totals
    assert np.all(totals.reserved.expected > 1.03 * totals.allocated.expected)
    # At the loss the pool of the reduction stands by empty: 3.7 GiB, beside that of gathering and the holes.
    assert totals.names[int(totals.phase[0, 0])] == LOSS
    idle = totals.reserved.expected[0, 0] / 1.03 - totals.allocated.expected[0, 0]
    assert idle > 4 * LLAMA3_8B / 8


def test_gradients_stay_between_accumulated_micro_batches() -> None:
    found = changed(estimated(), batch__accumulation=4)
    several = estimate(replace(found.job, layout=replace(found.job.layout, micro_batches=4)))
    assert amounts(several.account.phases[LOSS])["gradient shards"] == 4 * LLAMA3_8B / 8


def test_hybrid_sharding_holds_what_its_shard_group_holds() -> None:
    hybrid = estimated(gpus=32, data_parallel_replicate_degree=4)
    assert amounts(hybrid.account.state) == amounts(estimated().account.state)


def test_replication_alone_holds_everything_and_buckets_until_0_3() -> None:
    found = estimated(data_parallel_replicate_degree=8, data_parallel_shard_degree=1)
    state = amounts(found.account.state)
    assert state["parameter shards"] == state["buckets of DDP"] == 4 * LLAMA3_8B
    assert amounts(found.account.phases[LOSS])["weights cast by autocast"] == 2 * LLAMA3_8B
    newer = changed(found, version="0.3.0")
    assert "buckets of DDP" not in amounts(newer.account.state)


def test_offloading_moves_the_state_to_the_host() -> None:
    found = estimated(offload=True)
    state = amounts(found.account.state)
    assert state["parameter shards"] == state["moments"] == 0
    assert amounts(found.account.host) == {"offloaded state": 16 * LLAMA3_8B / 8}


@pytest.mark.parametrize(("name", "moments"), [("adamw", 2), ("muon", 1), ("lion", 1), ("sgd", 0)])
def test_moments_of_optimizers(name: str, moments: int) -> None:
    found = changed(estimated(), optimizer__name=name)
    assert amounts(found.account.state)["moments"] == moments * 4 * LLAMA3_8B / 8


def test_foreach_holds_temporaries() -> None:
    found = changed(estimated(), optimizer__implementation="foreach")
    assert amounts(found.account.phases[STEP])["temporaries of the step"] == 4 * LLAMA3_8B / 8


def test_a_pipeline_keeps_parameters_gathered_and_gradients_whole() -> None:
    found = estimated(
        "405B", 512, tensor_parallel_degree=8, pipeline_parallel_degree=8, local_batch_size=8
    ).account.phases[BLOCK]
    block = amounts(found, 1)
    assert block["unsharded gradients"] == 2 * block["gathered parameters"]
    fp8 = changed(
        estimated("405B", 512, tensor_parallel_degree=8, pipeline_parallel_degree=8, local_batch_size=8),
        precision__fp8_parameters=True,
    )
    assert amounts(fp8.account.phases[BLOCK], 1)["gathered parameters"] == block["gathered parameters"] / 2
    one = estimated(
        "405B",
        512,
        tensor_parallel_degree=8,
        pipeline_parallel_degree=8,
        local_batch_size=8,
        fsdp_reshard_after_forward="always",
    )
    assert "gathered parameters" not in amounts(one.account.phases[BLOCK], 1)


def test_logits_of_all_micro_batches_stay_until_0_2() -> None:
    found = estimated("405B", 512, tensor_parallel_degree=8, pipeline_parallel_degree=8, local_batch_size=8)
    assert "logits of all micro batches" not in {term.name for term in found.account.phases[BLOCK]}
    older = changed(found, version="0.1.0")
    kept = amounts(older.account.phases[BLOCK], 7)["logits of all micro batches"]
    assert kept == 8 * 8192 * 128256 / 8 * 2


def test_a_root_group_keeps_embedding_and_output_layer_until_0_2() -> None:
    found = estimated()
    older = changed(found, version="0.1.0")
    ends = 2 * (2 * 128256 * 4096 + 4096)
    assert amounts(older.account.phases[BLOCK])["gathered embedding and output layer"] == ends
    assert "gathered embedding and output layer" not in amounts(found.account.phases[BLOCK])


def test_the_compiler_drops_what_no_backward_pass_reads() -> None:
    """Selective checkpointing caches the last product of a block; compiled, it is not kept."""
    eager = estimated(mode="selective").account.phases[LOSS]
    compiled = estimated(mode="selective", more="[compile]\nenable = true\ncomponents = ['model']").account.phases[LOSS]
    name = "operators kept of dense blocks"
    assert amounts(eager)[name] - amounts(compiled)[name] == 32 * 8192 * 4096 * 2


def test_chunks_of_the_loss_are_whole_before_0_3() -> None:
    whole = changed(estimated(), version="0.3.0")
    chunked = changed(estimated(), version="0.3.0", loss__chunks=8)
    logits = 8192 * 128256
    assert amounts(whole.account.phases[LOSS])["log-softmax of the logits and gradients in fp32"] == 12 * logits
    assert amounts(chunked.account.phases[LOSS])["one chunk of the logits and gradients"] == 12 * logits / 8
    older = changed(estimated(), loss__chunks=8)
    assert amounts(older.account.phases[LOSS])["log-softmax of all chunks"] == 4 * logits


def test_recomputation_orders_the_estimates() -> None:
    modes = [estimated(mode=mode).totals.reserved.expected[0, 0] for mode in ("full", "selective", "none")]
    assert modes[0] < modes[1] < modes[2]


def test_context_parallelism_splits_tokens_and_shards() -> None:
    """Twice the ranks, of which two share a sequence: half the activations, half the shards."""
    one, two = estimated(), estimated(gpus=16, context_parallel_degree=2)
    assert amounts(two.account.state)["moments"] == amounts(one.account.state)["moments"] / 2
    name = "inputs of recomputed dense blocks"
    assert amounts(two.account.phases[LOSS])[name] == amounts(one.account.phases[LOSS])[name] / 2


def test_experts_spread_over_ranks() -> None:
    """Experts fall to a rank's share, whatever the degree; tokens per rank stay."""
    apart = estimated("30B-A3B", 16, name="qwen3", expert_parallel_degree=16)
    alone = estimated("30B-A3B", 16, name="qwen3")
    assert amounts(apart.account.state)["moments"] == amounts(alone.account.state)["moments"]
    name = "inputs of recomputed MoE blocks"
    assert amounts(apart.account.phases[LOSS])[name] == amounts(alone.account.phases[LOSS])[name]
    assert (
        amounts(apart.account.phases[BLOCK])["gathered block"]
        < amounts(alone.account.phases[BLOCK])["gathered block"] / 4
    )


def test_async_tensor_parallelism_holds_symmetric_memory_outside() -> None:
    found = estimated("70B", 64, tensor_parallel_degree=8)
    overlapped = changed(found, parallel__tensor_overlap=True)
    assert overlapped.totals.outside[0, 0] - found.totals.outside[0, 0] == 2 * 8192 / 8 * 8192 * 2
    assert np.array_equal(overlapped.totals.reserved.expected, found.totals.reserved.expected)


def test_many_layouts_at_once() -> None:
    """Ten thousand layouts take under a second, and give what each gives alone."""
    job = estimated("405B", 512, tensor_parallel_degree=8, pipeline_parallel_degree=8, local_batch_size=8).job
    rng = np.random.default_rng(7)
    count = 10_000
    tensor, pipeline, context = (
        rng.choice([1, 2, 4, 8], count),
        rng.choice([1, 2, 4, 8, 16], count),
        rng.choice([1, 2], count),
    )
    shard = 2048 // (tensor * pipeline * context)
    begun = time.perf_counter()
    found = estimate(
        job.with_layouts(tensor=tensor, pipeline=pipeline, context=context, shard=shard, sequence_parallel=tensor > 1)
    )
    assert time.perf_counter() - begun < 1.0
    assert found.totals.reserved.expected.shape == (count, 16)
    for index in (0, 17, 4242):
        degrees = {"tensor": tensor, "pipeline": pipeline, "context": context, "shard": shard}
        alone = estimate(
            job.with_layouts(
                **{name: values[index : index + 1] for name, values in degrees.items()},
                sequence_parallel=tensor[index : index + 1] > 1,
            )
        )
        width = int(pipeline[index])
        ours = found.totals.reserved.expected[index, :width]
        assert ours == pytest.approx(alone.totals.reserved.expected[0, :width])


def test_moments_in_bf16() -> None:
    found = changed(estimated(), precision__first_moment="bf16", precision__second_moment="bf16")
    assert amounts(found.account.state)["moments"] == 4 * LLAMA3_8B / 8


def test_a_step_in_the_backward_pass_frees_gradients() -> None:
    found = estimated(more="[optimizer]\nearly_step_in_backward = true")
    kept = amounts(found.account.phases[BLOCK])["gradient shards"]
    assert kept == pytest.approx(4 * LLAMA3_8B / 8 / 34)


def test_tables_of_positions_stand_once_for_a_block_since_0_3() -> None:
    found = estimated()
    table = 8192 * 128 * 4
    assert amounts(found.account.state)["rotary tables"] == table
    assert amounts(changed(found, version="0.3.0").account.state)["rotary tables"] == 32 * table
    masked = changed(found, model__attention_kernel="flex")
    assert amounts(masked.account.state)["block mask"] == 64 * 64 * 16


def test_cuda_graphs_keep_gradients_in_their_place() -> None:
    found = changed(estimated(), version="0.3.0", launch__cuda_graphs="full")
    assert amounts(found.account.phases[LOSS])["gradient shards"] == 4 * LLAMA3_8B / 8
    output = 128256 * 4096 + 4096
    assert amounts(found.account.phases[BLOCK])["reduced gradient to be added"] == 4 * output / 8
    without = changed(estimated(), version="0.3.0", launch__cuda_graphs="none")
    assert "gradient shards" not in amounts(without.account.phases[LOSS])


def test_chunks_that_end_one_after_the_other_sum_half_the_gradients() -> None:
    """Interleaved with as many micro batches as ranks, against twice as many."""
    options = {"tensor_parallel_degree": 8, "pipeline_parallel_degree": 8}
    few = estimated("405B", 512, **options, pipeline_parallel_schedule="Interleaved1F1B", local_batch_size=8)
    many = estimated("405B", 512, **options, pipeline_parallel_schedule="Interleaved1F1B", local_batch_size=16)
    name = "unsharded gradients"
    half, whole = (amounts(found.account.phases[BLOCK], 1)[name] for found in (few, many))
    assert half == whole / 2


def test_a_v_holds_both_ends_on_the_first_rank() -> None:
    options = {"tensor_parallel_degree": 8, "pipeline_parallel_degree": 8, "local_batch_size": 16}
    found = estimated("405B", 512, **options, pipeline_parallel_schedule="ZBVZeroBubble")
    assert found.stages.first[0].tolist() == found.stages.last[0].tolist() == [True] + [False] * 7
