import io

import pytest

from surefoot.compat.sb3.record.formats import CSVOutputFormat, FormatUnsupportedError, HumanOutputFormat, Image


def test_the_table_groups_names_by_their_prefix():
    file = io.StringIO()
    HumanOutputFormat(file).write({"a/x": 1.23456, "a/y": 2, "b": "text"}, {})
    lines = file.getvalue().splitlines()
    assert [line.split("|")[1].rstrip() for line in lines[1:-1]] == [" a/", "    x", "    y", " b"]
    assert "1.23" in lines[2]


def test_a_new_column_is_empty_in_earlier_rows(tmp_path):
    writer = CSVOutputFormat(str(tmp_path / "x.csv"))
    writer.write({"a": 1}, {})
    writer.write({"a": 2, "b": 3}, {})
    writer.close()
    assert (tmp_path / "x.csv").read_text() == "a,b\n1,\n2,3\n"


def test_a_picture_is_refused_by_a_table():
    with pytest.raises(FormatUnsupportedError, match="stdout"):
        HumanOutputFormat(io.StringIO()).write({"p": Image(None, "HWC")}, {})
