"""The report as numbers and as JSON."""

from __future__ import annotations

import json
from dataclasses import fields

from surefoot.learn.report import EpochReport, UpdateReport

EPOCH = EpochReport(0, 2, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def a_report(**numbers) -> UpdateReport:
    return UpdateReport(update=3, policy_version=3, samples=64, path="torch", path_reason="", **numbers)


def test_metrics_are_plain_numbers_without_counters_texts_and_none():
    metrics = a_report(loss=0.5).metrics()
    assert metrics["loss"] == 0.5
    assert metrics["samples"] == 64
    assert not {"update", "policy_version", "path", "epochs", "seconds", "action_std"} & set(metrics)


def test_a_policy_with_a_standard_deviation_has_one_more_metric():
    without, with_std = a_report().metrics(), a_report(action_std=0.7).metrics()
    assert with_std == without | {"action_std": 0.7}


def test_the_names_of_a_row_are_one_object_for_all_reports():
    assert a_report().row()[0] is a_report(loss=1.0).row()[0]


def test_as_dict_is_json_with_every_field_but_the_gradient_steps():
    report = a_report(epochs=(EPOCH,), seconds={"learn": 0.5})
    loaded = json.loads(json.dumps(report.as_dict()))
    assert set(loaded) == {entry.name for entry in fields(UpdateReport)} - {"gradient_steps"}
    assert loaded["epochs"] == [{**EPOCH._asdict()}]
