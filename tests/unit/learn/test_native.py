"""What the kernel and the Python side of an update must agree on. `tests/property/test_kernel.py` compares their updates."""

from __future__ import annotations

import pytest

from surefoot import native
from surefoot.learn.optimizer import SLOTS
from surefoot.learn.report_builder import COLUMNS
from surefoot.nets.torsos import ACTIVATIONS

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)


def test_the_kernel_fills_every_column_of_the_table():
    assert len(COLUMNS) == native.kernel.TABLE_COLUMNS


def test_the_kernel_knows_every_optimizer_by_its_name():
    assert set(native.kernel.OPTIMIZERS) == set(SLOTS)


def test_the_activations_of_the_kernel_are_activations_of_networks():
    assert set(native.kernel.ACTIVATIONS) <= set(ACTIVATIONS)
