import json

import pytest

from surefoot.compat.sb3.record.logger import configure, make_output_format


def test_means_and_exclusions_reach_the_files(tmp_path):
    logger = configure(str(tmp_path), ["json", "csv"])
    logger.record_mean("a", 1.0)
    logger.record_mean("a", 3.0)
    logger.record("b", 7, exclude="csv")
    logger.dump()
    logger.close()
    assert json.loads((tmp_path / "progress.json").read_text()) == {"a": 2.0, "b": 7}
    assert (tmp_path / "progress.csv").read_text() == "a\n2.0\n"


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a log format"):
        make_output_format("xml", str(tmp_path))
