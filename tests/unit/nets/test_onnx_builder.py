"""Names, splits and constants of an ONNX graph under construction."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.nets.onnx_builder import ExportPort, Sheet, optional_module


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    with pytest.raises(ConfigError, match=r'no_such_package is not installed; run: pip install "surefoot\[onnx\]"'):
        optional_module("no_such_package.helper")


def test_inputs_and_outputs_have_any_number_of_rows():
    pytest.importorskip("onnx")
    sheet = Sheet()
    sheet.give("y", sheet.op("Tanh", sheet.take("x", "float32", 3)), "float32", 3)
    assert sheet.inputs == [ExportPort("x", "float32", ("batch", 3))]
    assert sheet.outputs == [ExportPort("y", "float32", ("batch", 3))]
    assert [node.op_type for node in sheet.nodes] == ["Tanh", "Identity"]


def test_a_split_into_one_part_and_a_join_of_one_part_add_no_node():
    pytest.importorskip("onnx")
    sheet = Sheet()
    assert sheet.split("x", [4]) == ["x"]
    assert sheet.join(["x"]) == "x"
    assert sheet.nodes == []
    assert len(sheet.split("x", [1, 3])) == 2


def test_a_named_constant_is_stored_once_and_float64_becomes_float32():
    pytest.importorskip("onnx")
    sheet = Sheet()
    assert sheet.constant(np.zeros(2), "weight") == sheet.constant(np.zeros(2), "weight") == "weight"
    assert len(sheet.constants) == 1
    assert sheet.constants["weight"].data_type == 1  # FLOAT
