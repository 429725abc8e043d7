import io
from types import SimpleNamespace

import pytest

from surefoot.compat.sb3.files import open_files as m


def test_dotted_names_reach_inner_attributes():
    outer = SimpleNamespace(inner=SimpleNamespace(x=1))
    m.recursive_setattr(outer, "inner.x", 2)
    assert m.recursive_getattr(outer, "inner.x") == 2
    assert m.recursive_getattr(outer, "inner.y", None) is None


def test_the_suffix_is_added_to_write_and_tried_to_read(tmp_path):
    with m.open_path(tmp_path / "a", "w", suffix="bin") as file:
        file.write(b"x")
    assert (tmp_path / "a.bin").read_bytes() == b"x"
    with (
        pytest.warns(UserWarning, match="trying"),
        m.open_path(str(tmp_path / "a"), "r", verbose=2, suffix="bin") as file,
    ):
        assert file.read() == b"x"
    with pytest.warns(UserWarning, match="is created"):
        m.open_path(tmp_path / "new" / "b", "w").close()


def test_a_file_object_must_fit_the_mode(tmp_path):
    buffer = io.BytesIO()
    assert m.open_path(buffer, "w") is buffer
    with (tmp_path / "c").open("wb") as file, pytest.raises(ValueError, match="not readable"):
        m.open_path(file, "r")
    with pytest.raises(TypeError, match="neither a path"):
        m.open_path(3, "r")


def test_values_are_json_and_pickles_are_refused(tmp_path):
    m.save_to_pkl(tmp_path / "v", {"a": [1, 2.5]})
    assert (tmp_path / "v.pkl").read_text() == '{"a": [1, 2.5]}'
    assert m.load_from_pkl(tmp_path / "v") == {"a": [1, 2.5]}
    with pytest.raises(TypeError):
        m.save_to_pkl(tmp_path / "w", object())
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(ValueError, match="pickles are not read"):
        m.load_from_pkl(tmp_path / "p.pkl")
