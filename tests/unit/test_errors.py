"""The exception tree: one root, and messages as written."""

from __future__ import annotations

import pytest

from surefoot import errors

# RenamedWarning is a warning, which nobody catches as an error.
CLASSES = [
    x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception) and not issubclass(x, Warning)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_the_root_and_stands_in_the_tree_of_the_module(kind: type):
    assert issubclass(kind, errors.SurefootError)
    assert kind.__name__ in (errors.__doc__ or "")


def test_an_unknown_option_shows_its_sentence_without_the_quotes_of_a_key_error():
    assert str(errors.UnknownOption("no tool 'x'")) == "no tool 'x'"
    assert str(errors.UnknownOption()) == ""
    assert isinstance(errors.UnknownOption(), KeyError)
