"""Text that C reads back as it was meant."""

from __future__ import annotations

import numpy as np

from surefoot.nets.c_text import c_name, c_numbers, called_functions, with_prefix


def test_numbers_keep_their_bits_as_text():
    values = np.concatenate(
        [
            np.random.default_rng(0).standard_normal(100).astype(np.float32),
            np.array([1e-42, 3.4e38, 0.0, 1.0, 16777217.0, -1e-5], np.float32),
        ]
    )
    text = c_numbers(values).replace("f,", " ").split()
    np.testing.assert_array_equal(np.array([float(word) for word in text], np.float32), values)


def test_a_port_has_a_name_that_c_allows():
    assert [c_name(name) for name in ("obs", "a.b-c", "int", "2d", "é")] == ["obs", "a_b_c", "_int", "_2d", "__"]


def test_a_function_brings_those_that_it_calls_and_no_others():
    text = called_functions("y = policy_elu(x);")
    assert [name for name in ("clamp", "tanh", "exp", "expm1", "elu") if f"float policy_{name}(" in text] == [
        "clamp", "tanh", "exp", "expm1", "elu",
    ]  # fmt: skip
    assert "} policy_bits;" in text
    assert "policy_log(" not in text
    assert called_functions("policy_relu(x)").count("static inline") == 1


def test_a_prefix_is_put_before_whole_names():
    assert with_prefix("policy_act my_policy_x POLICY_H", "walk") == "walk_act my_policy_x WALK_H"
