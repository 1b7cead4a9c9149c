"""Adds ``--accept``, which stores what the product says now as the expectation."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="store the present outcome of the examples as expected")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether to store instead of to compare."""
    return bool(request.config.getoption("--accept", default=False))
