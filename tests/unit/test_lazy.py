"""Names of a package that are imported on first use."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from surefoot._lazy import lazy_names


def test_a_name_is_loaded_from_its_module_once_and_then_stands_in_the_package(monkeypatch: pytest.MonkeyPatch):
    package, module = ModuleType("lazy_example"), ModuleType("lazy_example.inner")
    module.thing = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lazy_example", package)
    monkeypatch.setitem(sys.modules, "lazy_example.inner", module)
    load, names = lazy_names("lazy_example", {"thing": "inner", "another": "inner"})
    assert vars(package)["__all__"] == names() == ["another", "thing"]
    assert "thing" not in vars(package)
    assert load("thing") is module.thing is vars(package)["thing"]
    with pytest.raises(AttributeError, match="module 'lazy_example' has no attribute 'missing'"):
        load("missing")
