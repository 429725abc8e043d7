"""The structs of the wire: their names in Python, and the former ones."""

import pytest

from surefoot.server import schema


@pytest.mark.parametrize(("former", "name"), [("Decision", "DecisionResponse"), ("Promotion", "PromotionBody")])
def test_a_struct_is_found_under_its_former_name_with_a_warning(former, name):
    with pytest.warns(DeprecationWarning, match=f"schema.{former} is now schema.{name}"):
        assert getattr(schema, former) is getattr(schema, name)


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = schema.Nonsense
