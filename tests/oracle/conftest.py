"""The real packages as fixtures: servers that answer questions about a configuration.

A test that asks for one of them is an oracle test (``pytest -m oracle``). Where the environment is absent it is
skipped; with ``TTX_ORACLE_REQUIRED=1`` it fails, so that CI cannot pass without having asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from environments import PACKAGES, OracleServer, environment

SERVERS = {
    "deepspeed": "deepspeed-0.19.2",
    "llm_analysis": "llm-analysis-0.2.2",
    "megatron": "megatron-0.18.0",
    "torchtitan_010": "torchtitan-0.1.0",
    "torchtitan_022": "torchtitan-0.2.2",
    "torchtitan_030": "torchtitan-0.3.0",
}


def export_interpreters() -> None:
    """Name the built environments' interpreters in variables, for tests that start programs of their own there."""
    for name, package in PACKAGES.items():
        found = environment(name)
        if package.python_variable and found.missing() is None:
            os.environ.setdefault(package.python_variable, str(found.python))
            if package.source_variable:
                os.environ.setdefault(package.source_variable, str(found.source))


export_interpreters()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SERVERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.oracle)


def server(name: str) -> Iterator[OracleServer]:
    found = environment(name)
    if reason := found.missing():
        if os.environ.get("TTX_ORACLE_REQUIRED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with found.serve() as running:
        yield running


@pytest.fixture(scope="session")
def deepspeed() -> Iterator[OracleServer]:
    """DeepSpeed 0.19.2 with transformers and accelerate; see drivers/deepspeed_config.py for what it answers."""
    yield from server(SERVERS["deepspeed"])


@pytest.fixture(scope="session")
def llm_analysis() -> Iterator[OracleServer]:
    """llm-analysis 0.2.2; see drivers/llm_analysis_memory.py for what it answers."""
    yield from server(SERVERS["llm_analysis"])


@pytest.fixture(scope="session")
def megatron() -> Iterator[OracleServer]:
    """Megatron-LM core 0.18.0; see drivers/megatron_arguments.py for what it answers."""
    yield from server(SERVERS["megatron"])


@pytest.fixture(scope="session")
def torchtitan_010() -> Iterator[OracleServer]:
    """torchtitan 0.1.0; see drivers/torchtitan_toml.py for what it answers."""
    yield from server(SERVERS["torchtitan_010"])


@pytest.fixture(scope="session")
def torchtitan_022() -> Iterator[OracleServer]:
    """torchtitan 0.2.2; see drivers/torchtitan_toml.py for what it answers."""
    yield from server(SERVERS["torchtitan_022"])


@pytest.fixture(scope="session")
def torchtitan_030() -> Iterator[OracleServer]:
    """torchtitan 0.3.0; see drivers/torchtitan_python.py for what it answers."""
    yield from server(SERVERS["torchtitan_030"])
