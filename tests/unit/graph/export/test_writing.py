"""Names in generated code."""

from surefoot.graph.export.writing import Names


def test_no_name_is_a_keyword_a_builtin_or_given_twice() -> None:
    names = Names("env")
    results = [
        names.new(wanted) for wanted in ("lambda", "print", "env", "env", "config", "__class__", "_", "x", "x", "x")
    ]
    assert len(set(results)) == len(results)
    assert not {"lambda", "print", "env", "config", "__class__", "_"} & set(results)
