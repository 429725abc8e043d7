import msgspec
import pytest

from surefoot.learn.report import UpdateReport
from surefoot.telemetry import schema
from surefoot.telemetry.schema import (
    METRICS,
    EpisodeRecord,
    Episodes,
    EvaluationRecord,
    FindingRecord,
    HeaderRecord,
    Record,
    UpdateRecord,
    decode,
)


def test_every_number_of_an_update_report_is_described():
    report = UpdateReport(update=1, policy_version=1, samples=8, path="torch", path_reason="", action_std=0.5)
    assert set(METRICS) == set(report.metrics())


def test_healthy_bands_run_from_low_to_high():
    bands = [metric.healthy for metric in METRICS.values() if metric.healthy]
    assert len(bands) >= 5
    assert all(low <= high for low, high in bands)


def test_no_two_metrics_share_a_name_elsewhere():
    tags = [alias.tag for metric in METRICS.values() for alias in (metric.sb3, metric.cleanrl) if alias]
    assert len(tags) == len(set(tags))


PUBLISHED = {
    b'{"kind":"run","v":"2.0.0","run":"r","seq":1,"t":5.5,"env_steps":0,"updates":0,"env":"CartPole-v1","seed":3,'
    b'"config":{"ppo":{"lr":0.0003}},"session":"a"}': HeaderRecord,
    b'{"kind":"update","v":"2.0.0","run":"r","seq":2,"t":6,"env_steps":8,"updates":1,"m":{"lr":0.1,"loss":null},'
    b'"nonfinite":{"m.loss":"nan"}}': UpdateRecord,
    b'{"kind":"episode","v":"2.0.0","run":"r","seq":3,"t":6,"env_steps":8,"updates":1,"return":-1.5,"length":4,'
    b'"env":0}': EpisodeRecord,
    b'{"kind":"eval","v":"2.0.0","run":"r","seq":4,"t":6,"env_steps":8,"updates":1,"episodes":1,"return_mean":2,'
    b'"return_std":0,"return_min":2,"return_max":2,"length_mean":2,"returns":[2.0],"lengths":[2]}': EvaluationRecord,
}


@pytest.mark.parametrize(("line", "kind"), PUBLISHED.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_lines_as_first_published_are_still_read(line: bytes, kind: type[Record]):
    record = decode(line)
    assert type(record) is kind
    assert (record.v, record.run, record.t >= 5.5) == ("2.0.0", "r", True)


def test_a_field_of_a_later_version_is_ignored():
    line = next(iter(PUBLISHED)).replace(b'"seed":3', b'"seed":3,"moon":"full"').replace(b"2.0.0", b"2.7.0")
    record = decode(line)
    assert isinstance(record, HeaderRecord)
    assert record.seed == 3


def test_a_negative_count_is_refused():
    line = next(iter(PUBLISHED)).replace(b'"env_steps":0', b'"env_steps":-1')
    with pytest.raises(msgspec.ValidationError, match="env_steps"):
        decode(line)


def test_return_keeps_its_plain_name_in_the_file():
    episode = decode(list(PUBLISHED)[2])
    assert isinstance(episode, EpisodeRecord)
    assert episode.return_ == -1.5
    assert b'"return":-1.5' in msgspec.json.encode(episode)


def test_episodes_are_summed_up():
    summary = Episodes.of([1.0, 5.0, 6.0], [10, 20, 60], [True, None, False])
    assert summary == Episodes(
        count=3, return_mean=4.0, return_min=1.0, return_max=6.0, length_mean=30.0, success_rate=0.5
    )


def test_no_episodes_are_no_summary():
    assert Episodes.of([], []) is None


def test_silence_about_success_is_not_failure():
    summary = Episodes.of([1.0], [10], [None])
    assert summary is not None
    assert summary.success_rate is None


def test_a_finding_says_what_when_why_and_what_to_do():
    line = (
        b'{"kind":"finding","v":"2.0.0","run":"r","seq":9,"t":6,"env_steps":80,"updates":10,"rule":"R03",'
        b'"severity":"error","title":"the policy moves too far an update","status":"resolved","since_update":7,'
        b'"since_env_steps":56,"evidence":{"approx_kl":0.3},"causes":["lr is too high"],"patch":{"lr":0.0003},'
        b'"primary":false}'
    )
    finding = decode(line)
    assert isinstance(finding, FindingRecord)
    assert (finding.severity, finding.status, finding.since_update, finding.since_env_steps) == (
        "error",
        "resolved",
        7,
        56,
    )
    assert (finding.evidence, finding.causes, finding.patch) == ({"approx_kl": 0.3}, ["lr is too high"], {"lr": 3e-4})
    assert not finding.primary
    assert msgspec.json.decode(msgspec.json.encode(finding)) == msgspec.json.decode(line)


def test_a_severity_that_is_none_is_refused():
    with pytest.raises(msgspec.ValidationError, match="severity"):
        decode(
            b'{"kind":"finding","v":"2.0.0","run":"r","seq":9,"t":6,"env_steps":80,"updates":10,"rule":"R03",'
            b'"severity":"bad","title":"x"}'
        )


def test_a_struct_is_found_by_its_former_name_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"schema\.UpdateRecord"):
        assert getattr(schema, "Update") is schema.UpdateRecord  # noqa: B009  the name that type checkers do not know
    with pytest.raises(AttributeError, match="Nothing"):
        getattr(schema, "Nothing")  # noqa: B009
