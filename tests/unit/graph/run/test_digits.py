"""The hash of all weights."""

import numpy as np

from surefoot.graph.run.digits import parameters_sha256, weights_of


class Weights:
    def __init__(self, **arrays: np.ndarray) -> None:
        self.arrays = arrays

    def state_dict(self) -> dict[str, np.ndarray]:
        return self.arrays


def test_the_hash_depends_on_values_names_and_shapes_but_not_on_the_order() -> None:
    a, b = Weights(w=np.zeros(4, np.float32)), Weights(w=np.ones(2, np.float32))
    expected = parameters_sha256({"a": a, "b": b})
    assert parameters_sha256({"b": b, "a": a}) == expected
    assert parameters_sha256({"a": b, "b": a}) != expected
    assert parameters_sha256({"a": Weights(w=np.zeros((2, 2), np.float32)), "b": b}) != expected


def test_nodes_without_weights_are_left_out() -> None:
    assert weights_of({"a": object(), "b": Weights()}) == {}
