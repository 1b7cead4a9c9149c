"""Where groups stand, and the time of transfers on named links, against numbers computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jobs import job

from translator.communication import Axis, Grid, Group, Operation, Transfer, network, networks, sent_share
from translator.communication.links import links
from translator.errors import UsageError

H100 = "dgx-h100"


def one(operation: Operation, message: float, ranks: int, inside: int, calls: float = 1) -> Transfer:
    return Transfer("x", Axis.SHARD, operation, message, calls, Group(ranks, inside), False, "")


@pytest.mark.parametrize(
    ("operation", "share"),
    [
        (Operation.ALL_REDUCE, 1.5),
        (Operation.ALL_GATHER, 0.75),
        (Operation.REDUCE_SCATTER, 0.75),
        (Operation.ALL_TO_ALL, 0.75),
        (Operation.SEND, 1),
    ],
)
def test_what_four_ranks_send(operation: Operation, share: float) -> None:
    assert sent_share(operation, 4) == share
    assert sent_share(operation, 1) == 0


@pytest.mark.parametrize(
    ("degrees", "axes", "ranks", "inside"),
    [
        ({"tensor": 8, "data": 4}, (Axis.TENSOR,), 8, 8),
        ({"tensor": 8, "data": 4}, (Axis.SHARD,), 4, 1),
        ({"tensor": 2, "data": 16}, (Axis.SHARD,), 16, 4),
        ({"tensor": 2, "context": 2, "data": 4}, (Axis.CONTEXT, Axis.SHARD), 8, 4),
        ({"tensor": 2, "data": 2, "pipeline": 4}, (Axis.PIPELINE,), 4, 2),
        ({"tensor": 2, "data": 2, "pipeline": 4, "order": "tp-cp-ep-pp-dp"}, (Axis.PIPELINE,), 4, 4),
        ({"tensor": 2, "data": 2, "pipeline": 4, "order": "tp-cp-ep-pp-dp"}, (Axis.SHARD,), 2, 1),
        ({"tensor": 4, "data": 16, "expert": 16, "expert_tensor": 1}, (Axis.EXPERT,), 16, 8),
        ({"tensor": 4, "data": 16, "expert": 4, "expert_tensor": 1}, (Axis.EXPERT_DATA,), 16, 2),
        ({"tensor": 16, "data": 2}, (Axis.TENSOR,), 16, 8),
    ],
)
def test_neighbours_share_a_node(degrees: dict[str, Any], axes: tuple[Axis, ...], ranks: int, inside: int) -> None:
    fields = {
        "parallel__tensor": degrees["tensor"],
        "parallel__context": degrees.get("context", 1),
        "parallel__pipeline__degree": degrees.get("pipeline", 1),
        "parallel__expert": degrees.get("expert", 1),
        "parallel__expert_tensor": degrees.get("expert_tensor", 1),
        "parallel__data__degree": degrees["data"],
        "parallel__data__shard": degrees["data"],
        "parallel__rank_order": degrees.get("order", "tp-cp-ep-dp-pp"),
        "launch__gpus_per_node": 8,
    }
    found = Grid(job("megatron", "0.18.0", **fields)).group(*axes)
    assert (int(found.ranks), int(found.inside)) == (ranks, inside)
    assert bool(found.crosses) == (inside < ranks)


def test_the_number_of_gpus_per_node_can_be_told() -> None:
    fields = {"parallel__tensor": 8, "launch__gpus_per_node": 8}
    assert int(Grid(job("megatron", "0.18.0", **fields), gpus_per_node=4).group(Axis.TENSOR).inside) == 4


def test_a_ring_on_one_node() -> None:
    expected = 14 * 3.4e-6 + 1.75e9 / 450e9
    assert one(Operation.ALL_REDUCE, 1e9, 8, 8).seconds(network(H100))[0, 0] == pytest.approx(expected)
    gather = 7 * 3.4e-6 + 0.875e9 / 450e9
    assert one(Operation.ALL_GATHER, 1e9, 8, 8, 3).seconds(network(H100))[0, 0] == pytest.approx(3 * gather)


def test_a_ring_over_nodes_uses_the_adapters_of_its_ranks() -> None:
    whole = 28 * 3.4e-6 + 2 * 9.6e-6 + 2 * 15 / 16 * 1e9 / (8 * 50e9)
    assert one(Operation.ALL_REDUCE, 1e9, 16, 8).seconds(network(H100))[0, 0] == pytest.approx(whole)
    lone = 3 * 9.6e-6 + 0.75e9 / 50e9
    assert one(Operation.REDUCE_SCATTER, 1e9, 4, 1).seconds(network(H100))[0, 0] == pytest.approx(lone)
    capped = 30 * 3.4e-6 + 30 * 9.6e-6  # 32 ranks on two nodes cannot be faster than NVLink
    found = one(Operation.ALL_REDUCE, 1e9, 32, 16).seconds(network("nvlink3+infiniband-ndr"))[0, 0]
    assert found == pytest.approx(60 * 3.4e-6 + 2 * 9.6e-6 + 2 * 31 / 32 * 1e9 / 300e9)
    assert found != pytest.approx(capped)


def test_a_tree() -> None:
    expected = 2 * (7 * 1.2e-6 + 3 * 8.5e-6) + 2e6 / 400e9
    small = one(Operation.ALL_REDUCE, 1e6, 64, 8)
    assert small.seconds(network(H100), "tree")[0, 0] == pytest.approx(expected)
    ring = small.seconds(network(H100), "ring")[0, 0]
    assert ring == pytest.approx(112 * 3.4e-6 + 14 * 9.6e-6 + 2 * 63 / 64 * 1e6 / 400e9)
    assert small.seconds(network(H100), "fastest")[0, 0] == min(expected, ring)
    gather = one(Operation.ALL_GATHER, 1e6, 64, 8)
    assert gather.seconds(network(H100), "tree") == gather.seconds(network(H100), "ring")


def test_an_all_to_all_waits_for_the_slower_of_its_paths() -> None:
    expected = 9.6e-6 + 8 / 16 * 1e9 / 50e9
    assert one(Operation.ALL_TO_ALL, 1e9, 16, 8).seconds(network(H100))[0, 0] == pytest.approx(expected)
    near = 3.4e-6 + 7 / 8 * 1e9 / 450e9
    assert one(Operation.ALL_TO_ALL, 1e9, 8, 8).seconds(network(H100))[0, 0] == pytest.approx(near)


def test_a_send() -> None:
    near, far = (one(Operation.SEND, 1e9, 4, inside).seconds(network(H100))[0, 0] for inside in (4, 2))
    assert near == pytest.approx(3.4e-6 + 1e9 / 450e9)
    assert far == pytest.approx(9.6e-6 + 1e9 / 50e9)


def test_what_leaves_the_node() -> None:
    assert one(Operation.ALL_REDUCE, 1e9, 16, 8).crossing_bytes[0, 0] == pytest.approx(2 * 15 / 16 * 1e9 / 8)
    assert one(Operation.ALL_REDUCE, 1e9, 8, 8).crossing_bytes[0, 0] == 0
    assert one(Operation.ALL_TO_ALL, 1e9, 16, 8).crossing_bytes[0, 0] == pytest.approx(1e9 * 8 / 16)


def test_the_file_of_links_is_sound() -> None:
    for name, link in links().items():
        assert link.bandwidth_bytes_per_second > 1e9, name
        assert 0 < link.tree_latency_seconds <= link.ring_latency_seconds < 1e-4, name
        assert link.source, name
    for name, found in networks().items():
        assert found.inside.bandwidth_bytes_per_second > found.between.bandwidth_bytes_per_second, name


@pytest.mark.parametrize("name", ["dgx-z9", "nvlink9+pcie4", "nvlink4+"])
def test_an_unknown_network_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=r"no (network|link) called"):
        network(name)


def test_an_unknown_algorithm_is_named() -> None:
    with pytest.raises(UsageError, match="no algorithm 'star'"):
        one(Operation.ALL_REDUCE, 1, 2, 2).seconds(network(), "star")


def test_groups_of_one_take_no_time() -> None:
    assert np.all(one(Operation.ALL_REDUCE, 1e9, 1, 1).seconds(network(H100)) == 0)
