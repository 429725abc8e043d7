"""Differences between two graphs."""

from surefoot.graph.diff import difference_line, differences
from surefoot.graph.templates import template


def test_a_difference_is_one_line() -> None:
    before, after = template("cartpole"), template("cartpole")
    after.nodes["trainer"].params["epochs"] = 3
    after.remove("print")
    after.run.seed = 4
    after.layout["env"] = (9.0, 9.0)
    lines = [difference_line(each) for each in differences(before, after)]
    assert lines == [
        "- node print: Print",
        "~ param trainer.epochs: 20 → 3",
        "- edge print.value: trainer.loss_info",
        "~ run seed: 0 → 4",
    ]
    assert differences(before, before.copy()) == []
