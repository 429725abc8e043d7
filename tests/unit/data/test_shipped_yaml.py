"""Files of the package are read as plain values."""

import pytest
import yaml

from surefoot.data.shipped_yaml import read_shipped


def package_with(tmp_path, monkeypatch, name: str, text: str) -> str:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "table.yaml").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_file_of_a_package_is_read(tmp_path, monkeypatch):
    package = package_with(tmp_path, monkeypatch, "shipped_table", "rows:\n- {name: é, size: 3}\n")
    assert read_shipped(package, "table.yaml") == {"rows": [{"name": "é", "size": 3}]}


def test_a_file_cannot_construct_python_objects(tmp_path, monkeypatch):
    package = package_with(tmp_path, monkeypatch, "shipped_object", "!!python/object/apply:os.getcwd []\n")
    with pytest.raises(yaml.YAMLError):
        read_shipped(package, "table.yaml")
