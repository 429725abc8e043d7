"""Findings as text and JSON."""

from __future__ import annotations

from surefoot.telemetry.doctor.findings import Finding, patch_text, sentence


def test_a_finding_goes_to_json_and_back():
    finding = Finding(rule="R02", severity="error", title="t", evidence={"x": 1.0}, causes=["c"], patch={"lr": 1e-4})
    assert Finding.from_json(finding.to_json()) == finding


def test_a_sentence_has_evidence_causes_and_remedy():
    finding = Finding(
        rule="R02", severity="warn", title="t", evidence={"x": 1.0}, causes=["a", "b"], patch={"lr": 1e-4}
    )
    assert sentence(finding) == "doctor: warn R02: t (x 1); try --set lr=0.0001"
    assert "; possible causes: a, or b; try" in sentence(finding, causes=True)


def test_a_patch_is_written_as_the_command_line_reads_it():
    assert patch_text({"normalize_obs": True, "epochs": 4, "curiosity": "rnd"}) == (
        "--set normalize_obs=true --set epochs=4 --set curiosity=rnd"
    )
