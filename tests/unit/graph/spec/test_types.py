"""Types, shapes and clocks of ports."""

from surefoot.graph.spec.types import CONST, ONCE, TICK, Clock, Type, every, may_meet, misfit, tensor, when


def test_a_letter_in_a_shape_fits_any_size() -> None:
    assert misfit(tensor("float32", 8, 4), tensor("float32", "N", 4)) is None
    assert misfit(tensor("float32", 8, 4), tensor("float32", "N", 3)) == "it takes [N, 3] but gets [8, 4]"
    assert misfit(tensor("float32", 8), tensor("float32", "N", 3)) == "it takes [N, 3] but gets [8]"


def test_a_number_is_accepted_as_an_array_but_an_array_is_no_number() -> None:
    assert misfit(Type("number"), tensor()) is None
    assert misfit(tensor(), Type("number")) == "it takes a number but gets an array"


def test_parts_and_tags_of_observations_must_agree() -> None:
    raw = Type("obs", parts=(("obs", "float32", (8, 4)),), tags=frozenset({"raw"}))
    assert misfit(raw, raw) is None
    assert misfit(raw, raw.tagged("normalised")) == "it takes normalised values but gets raw ones"
    goal = Type("obs", parts=(("goal", "float32", (8, 2)), ("obs", "float32", (8, 4))))
    assert misfit(raw, goal) == "it takes the parts goal, obs but gets obs"


def test_a_type_is_shown_in_one_line_and_as_json_without_unknown_fields() -> None:
    raw = Type("obs", parts=(("obs", "float32", (8, 4)),), tags=frozenset({"raw"}))
    assert str(raw) == "obs {obs [8, 4] float32} raw"
    assert raw.to_json() == {
        "kind": "obs",
        "text": str(raw),
        "parts": {"obs": {"dtype": "float32", "shape": [8, 4]}},
        "tags": ["raw"],
    }


def test_clocks_have_rates_and_meet_unless_one_is_only_in_the_first_tick() -> None:
    assert [clock.rate for clock in (CONST, ONCE, TICK, every(4), when("a.b"))] == [0.0, 0.0, 1.0, 0.25, 1.0]
    assert not may_meet(ONCE, every(2))
    assert may_meet(every(2), every(3))
    assert str(every(1)) == str(TICK) == "tick"
    assert (str(every(3)), str(Clock("when", of="a.b"))) == ("every(3)", "when(a.b)")
