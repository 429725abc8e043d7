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
    load, names = lazy_names("lazy_example", {"thing": "lazy_example.inner", "another": "lazy_example.inner"})
    assert vars(package)["__all__"] == names() == ["another", "thing"]
    assert "thing" not in vars(package)
    assert load("thing") is module.thing is vars(package)["thing"]
    with pytest.raises(AttributeError, match="module 'lazy_example' has no attribute 'missing'"):
        load("missing")


def test_without_a_table_the_names_are_the_re_exports_that_type_checkers_read(tmp_path, monkeypatch):
    (tmp_path / "lazy_package").mkdir()
    (tmp_path / "lazy_package/inner.py").write_text("thing, other = 1, 2\n")
    (tmp_path / "lazy_package/__init__.py").write_text(
        "from typing import TYPE_CHECKING\nfrom surefoot._lazy import lazy_names\nif TYPE_CHECKING:\n"
        "    from lazy_package.inner import thing as thing\n    from lazy_package.inner import other as renamed\n"
        "__getattr__, __dir__ = lazy_names(__name__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import lazy_package

    assert dir(lazy_package) == ["thing"]
    assert "lazy_package.inner" not in sys.modules
    assert lazy_package.thing == 1
