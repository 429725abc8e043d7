"""The arithmetic of the benchmarks: what is called faster, different or too much is so by hand."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import clone  # noqa: E402
import explore  # noqa: E402
import heatmap  # noqa: E402
import paths  # noqa: E402
import sb3_scripts  # noqa: E402
import scale_model  # noqa: E402
import speed  # noqa: E402
import supervise  # noqa: E402
import tables  # noqa: E402
import tools  # noqa: E402
import tune  # noqa: E402
from surefoot.decide.encoders.encoder import Likeness  # noqa: E402
from workloads import tool_arms, tool_streams  # noqa: E402


def side(**each: list[float]) -> dict[str, object]:
    """A side's runs from its columns, and their median."""
    runs = [dict(zip(each, row, strict=True)) for row in zip(*each.values(), strict=True)]
    return {"runs": runs, "median": speed.median(runs)}


def arguments(**given: object) -> argparse.Namespace:
    there, nowhere = sys.executable, "/nowhere/python"
    missing = dict.fromkeys(("jax", "rlgames", "rltools"), nowhere)
    plain = {"peer": there, **missing, "purejaxrl": None, "cleanrl": None, "rltools_source": None, "only": None}
    return argparse.Namespace(**{**plain, "seconds": 1.0, "path": "auto", **given})


def test_a_ratio_of_rates_is_by_medians_and_round_by_round():
    ours, peer = side(steps_per_cpu_second=[300.0, 100.0, 200.0]), side(steps_per_cpu_second=[10.0, 5.0, 4.0])
    (row,) = speed.ratios({"W1": {"sides": {speed.OWN: ours, speed.SB3: peer}}})
    assert row["times"] == pytest.approx(200 / 5)
    assert row["by_round"] == pytest.approx([30, 20, 50])
    assert (row["bar"], row["met"]) == (38, True)


def test_w4_compares_seconds_so_that_fewer_are_better():
    ours = side(process_cpu_seconds=[2.0], solved=[True])
    peer = side(process_cpu_seconds=[20.0], solved=[True])
    (row,) = speed.ratios({"W4": {"sides": {speed.OWN: ours, speed.SB3: peer}}})
    assert row["times"] == pytest.approx(10)
    assert row["met"]


def test_w5_counts_seconds_and_needs_a_return_that_is_not_lower():
    ours = side(cpu_seconds=[1.0, 1.0], **{"return": [-170.0, -190.0]})
    peer = side(cpu_seconds=[2.1, 2.1], **{"return": [-181.0, -181.0]})
    (row,) = speed.ratios({"W5": {"sides": {speed.OWN: ours, speed.RLTOOLS: peer}}})
    assert row["times"] == pytest.approx(2.1)
    assert row["met"]
    ours["runs"][0]["return"] = -173.0
    (row,) = speed.ratios({"W5": {"sides": {speed.OWN: ours, speed.RLTOOLS: peer}}})
    assert not row["met"], "-181.5 is lower than -181"


def test_a_bar_is_not_met_by_not_solving():
    ours = side(process_cpu_seconds=[2.0, 2.0], solved=[True, False])
    peer = side(process_cpu_seconds=[20.0, 20.0], solved=[True, True])
    (row,) = speed.ratios({"W4": {"sides": {speed.OWN: ours, speed.SB3: peer}}})
    assert not row["met"]


def test_a_peer_that_is_not_there_has_no_rows():
    found = speed.sides(arguments())
    assert list(found["W1"]) == [speed.OWN, speed.SYNC, speed.TORCH, speed.SB3]
    assert list(found["W3"]) == [speed.OWN]
    assert speed.JAX not in speed.sides(arguments(jax=sys.executable))["W1"], "jax alone is not PureJaxRL"
    assert speed.JAX in speed.sides(arguments(jax=sys.executable, purejaxrl=BENCHMARKS))["W1"]


def test_some_workloads_can_be_asked_for_and_w4_takes_the_round_as_its_seed():
    found = speed.sides(arguments(only="W2,W4"))
    assert list(found) == ["W2-pendulum", "W2-halfcheetah", "W2-zoo-pendulum", "W4"]
    assert found["W4"][speed.SB3](3)[-1] == "3"


def test_a_side_that_fails_is_shown_with_what_it_said(tmp_path: Path):
    with pytest.raises(SystemExit, match="it hurts"):
        speed.run([sys.executable, "-c", "raise ValueError('it hurts')"], None)


def test_a_childs_cpu_time_is_counted_from_its_start_without_what_it_takes_back():
    busy = "import time\nwhile time.process_time() < 0.2: pass\nprint('{\"not_counted_cpu_seconds\": 0.1}')"
    assert 0.1 <= speed.run([sys.executable, "-c", busy], None)["process_cpu_seconds"] < 0.2


def test_the_table_of_bars_has_the_ratio_its_spread_and_the_verdict():
    rate = {"workload": "W1", "ours": "us", "peer": "them", "times": 31.04, "by_round": [33.0, 29.0], "bar": 30}
    told = tables.bars([{**rate, "met": True}, {**rate, "workload": "W4", "bar": 6, "met": False}])
    assert told[2] == "| W1: us | them | ≥ 30 × | **31.0 ×** | 29.0 … 33.0 | met |"
    assert told[3] == "| W4: us | them | ≤ 1/6 | **1/31.0** | 1/33.0 … 1/29.0 | not met |"


def test_ten_differences_of_one_sign_have_the_smallest_p_there_is():
    assert paths.sign_flip_p([1.0] * 10) == pytest.approx(2 / 2**10)
    assert paths.sign_flip_p([-3.0, -1.0]) == pytest.approx(0.5)


def test_no_difference_has_a_p_of_one():
    assert paths.sign_flip_p([1.0, -1.0, 2.0, -2.0]) == 1.0
    assert paths.sign_flip_p([0.0] * 4) == 1.0


def test_many_pairs_are_sampled_and_come_to_the_same():
    few = [0.3, -0.1, 0.4, 0.2, -0.2, 0.5, 0.1, -0.4, 0.3, 0.2]
    exact = paths.sign_flip_p(few)
    padded = paths.sign_flip_p([*few, *[0.0] * 10])
    assert padded == pytest.approx(exact, abs=0.02)


def test_holms_correction_is_that_of_the_book():
    # 0.01 · 4, 0.02 · 3, 0.03 · 2 (held at 0.06), 0.2 · 1
    assert paths.holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])


def test_the_interval_holds_the_mean_and_shrinks_to_it():
    low, high = paths.interval([1.0, 2.0, 3.0, 4.0])
    assert low < 2.5 < high
    assert paths.interval([7.0, 7.0]) == (7.0, 7.0)


def test_a_verdict_needs_enough_seeds():
    def rows(seeds: int, *p: float) -> list[dict[str, float]]:
        return [{"seeds": seeds, "p_holm": value} for value in p]

    assert paths.verdict(rows(3, 1.0)) == "too few seeds"
    assert paths.verdict(rows(10, *[0.5] * 6)) == "indistinguishable"
    assert paths.verdict(rows(10, 0.5, 0.04, 0.5)) == "they differ"


def test_pairs_are_compared_by_seed():
    def runs(shift: float) -> dict[str, dict[str, float]]:
        return {str(s): {"final_third": 10.0 * s + shift, "area": 5.0 * s} for s in range(10)}

    final, area = paths.compare({"Env-v0": {"native": runs(1.0), "torch": runs(0.0)}}, "native", "torch")
    assert (final["difference"], final["low"], final["high"]) == pytest.approx((1.0, 1.0, 1.0))
    assert final["p_holm"] == pytest.approx(2 * 2 / 2**10)
    assert (area["difference"], area["p"]) == (0.0, 1.0)


def test_the_arithmetic_of_an_update_is_counted_by_hand():
    made = {"obs": 3, "width": 5, "depth": 1, "envs": 2, "steps": 7, "epochs": 4}
    actor = 2 * 15 + 2 * 15 + (2 + 2 + 2) * 10  # the first layer needs no gradient of its input
    critic = 2 * 15 + 2 * 15 + (2 + 2 + 2) * 5
    assert heatmap.flops(made) == (actor + critic) * 2 * 7 * 4


def test_every_cell_divides_into_its_minibatches_and_none_is_endless():
    cells = [cell for each in heatmap.design(quick=False).values() for cell in each]
    assert len(cells) == 44
    for cell in cells:
        assert cell["envs"] * cell["steps"] % cell["minibatch"] == 0
        assert heatmap.flops(cell) <= max(heatmap.WORK, 1.2e11)
    assert heatmap.cell() == {"width": 64, "depth": 2, "obs": 4, "minibatch": 256, "envs": 8, "epochs": 4, "steps": 128}


def numbered(*streams: list[tuple[int, int]], ghosts: tuple[tuple[int, int], ...] = ()) -> SimpleNamespace:
    """A rollout of streams of (env, step), with ghost rows at (row, stream)."""
    obs = np.zeros((len(streams[0]), len(streams), 6), np.float32)
    obs[..., 4:] = np.swapaxes(np.array(streams), 0, 1) * supervise.UNIT
    valid = np.ones(obs.shape[:2], bool)
    for at in ghosts:
        valid[at] = False
    return SimpleNamespace(obs={"obs": obs}, valid=valid)


def test_a_step_used_twice_and_one_left_out_are_counted():
    tickets = supervise.Tickets()
    tickets.look(numbered([(7, 0), (7, 1), (7, 1)], [(2**24 - 1, 0), (2**24 - 1, 1), (2**24 - 1, 2)], ghosts=((2, 0),)))
    tickets.look(numbered([(9, 0), (9, 1), (9, 2)], [(2**24 - 1, 3), (2**24 - 1, 4), (2**24 - 1, 5)]))
    assert (tickets.used, tickets.twice, tickets.skipped, tickets.ghosts) == (11, 0, 0, 1)
    tickets.look(numbered([(9, 2), (9, 3)], [(2**24 - 1, 7), (2**24 - 1, 8)]))
    assert (tickets.used, tickets.twice, tickets.skipped) == (15, 1, 1)


def test_steps_to_the_bar_are_told_by_their_median_range_and_how_many_got_there():
    runs = [{"steps": n, "reached": n < 900} for n in (300, 0, 900)]
    assert clone.summary(runs) == (300, "300 (0 … 900; 2/3)")


def test_what_a_clone_saves_is_the_share_of_the_steps_from_scratch():
    scratch = [{"steps": 1000, "reached": True, "first": 0.0}]
    arm = {"recorded": 50, "runs": [{"steps": 250, "reached": True, "first": 12.0}]}
    row = clone.table({"X-v0": {"bar": 5, "teacher": 9.0, "scratch": scratch, "clone": {"3": arm}}}).splitlines()[-1]
    assert [cell.strip() for cell in row.split("|")][1:-1] == [
        *("X-v0", "5", "9.0", "3 (50)", "12.0 (12.0 … 12.0)"),
        *("250 (250 … 250; 1/1)", "1,000 (1,000 … 1,000; 1/1)", "75%"),
    ]


def test_the_mazes_verdict_is_that_every_seed_did_what_was_expected(capsys):
    def runs(*ends: float) -> dict[str, dict[str, object]]:
        return {str(s): {"success": end, "first_reward": None, "cpu_seconds": 1.0} for s, end in enumerate(ends)}

    never, always = explore.Side("never", False, {}), explore.Side("always", True, {})
    assert explore.report([never, always], {"never": runs(0.0, 0.8), "always": runs(0.9, 1.0)}) == 0
    assert explore.report([never], {"never": runs(0.0, 0.95)}) == 1
    assert explore.report([always], {"always": runs(1.0, 0.89)}) == 1
    assert "| always | 2 | 1/2 | 0.95 (1.00, 0.89) | 0 | 1.0 |" in capsys.readouterr().out


def test_a_thinned_curve_keeps_its_end():
    points = [(i, float(i)) for i in range(103)]
    thin = explore.thinned(points)
    assert len(thin) <= explore.POINTS
    assert thin[-1] == (102, 102.0)
    assert thin == sorted(thin)


def test_tools_are_compared_by_seed_and_the_bar_is_an_interval_below_zero():
    ours, other = {"0": 0.6, "1": 0.7, "2": 0.65}, {"0": 0.5, "1": 0.61, "2": 0.54, "9": 0.1}
    mean, low, high = tools.paired(ours, other)
    assert mean == pytest.approx(0.1)
    assert low < mean < high
    cells = {"10/plain": {"ours": other, "residual": ours, "nearest": ours}, "10/late": {"ours": ours, "vw": ours}}
    met = dict(tools.verdicts({"cells": cells, "cost": {"total": 200.0, "decide": 61.0}}))
    assert list(met.values()) == [False, True, True, False]


def test_auroc_is_the_share_of_pairs_in_the_right_order():
    assert tools.auroc(np.array([0.9, 0.5]), np.array([0.1, 0.5])) == pytest.approx((1 + 1 + 1 + 0.5) / 4)


def a_tool_task(queries: int = 300, options: int = 8) -> tool_streams.Task:
    rng = np.random.default_rng(0)
    described, right = np.eye(16, dtype=np.float32)[:options], rng.integers(0, options, queries)
    x = described[right] + 0.3 * rng.standard_normal((queries, 16)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    likeness = Likeness(10.0, 10.0, 0.4)
    return tool_streams.Task(name="t", x=x, right=right, tools=described, likeness=likeness, outside=x[:0])


def test_streams_of_tools_change_as_their_regime_says():
    task = a_tool_task()
    streams = {name: list(tool_streams.moments(task, name, 0, 300)) for name in tool_streams.REGIMES}
    assert len(streams["plain"]) == 300
    assert not any(m.flipped for m in streams["plain"])
    assert np.mean([m.flipped for m in streams["flips"]]) == pytest.approx(0.1, abs=0.05)
    assert np.mean([m.observed for m in streams["missing"]]) == pytest.approx(0.7, abs=0.08)
    same = [a.right == b.right for a, b in zip(streams["plain"], streams["drift"], strict=True)]
    assert all(same[:150])
    assert np.mean(same[150:]) == pytest.approx(0.5, abs=0.2)
    changing = streams["tools"]
    assert len(changing[0].option) == 6, "two of eight come later"
    assert len(changing[-1].described) == 10, "two get a new index"
    assert (changing[-1].described[8:, None] == changing[-1].described[:8]).all(axis=-1).any(axis=1).all()
    assert all(m.right in m.option for m in changing)


@pytest.mark.parametrize("arm", [arm for arm in tool_arms.ARMS if arm != "vw"])
def test_every_learner_of_the_tool_benchmark_plays(arm: str):
    task = a_tool_task()
    right = tool_arms.play(tool_arms.make(arm, task, 0), task, "tools", 0, 200)
    assert right.mean() > 0.5


def test_the_gap_of_a_search_is_that_of_the_two_iqms_and_an_outlier_widens_its_interval():
    assert tune.gap_interval([5.0] * 4, [1.0] * 4) == (4.0, 4.0, 4.0)
    gap, low, high = tune.gap_interval([0.0, 0.0, 0.0, 100.0], [0.0] * 4)
    assert gap == 0.0
    assert low <= 0.0 < high


def costs(**changed: float) -> scale_model.Cost:
    plain = {"ask": 0.0, "walk": 1.0, "learn": 2.0, "behind": 2.0, "jitter": 0.0, "crowd_walk": 1.0, "crowd_learn": 1.0}
    return scale_model.Cost(**{**plain, "bytes": 1.0, **changed})


FREE = scale_model.Handing(piece=0.0, step=0.0, travel=0.0)


@pytest.mark.parametrize(
    ("changed", "walkers", "overlap", "seconds"),
    [
        ({}, 1, False, 8 + 16),
        ({}, 2, False, 4 + 16),
        ({}, 4, False, 2 * 2 + 16),  # four on two cores
        ({"ask": 3.0}, 2, False, 4 + 3 + 16),  # the policy's call is not shared out
        ({"crowd_walk": 1.5}, 2, False, 4 * 1.5 + 16),
        ({"crowd_walk": 1.5}, 1, False, 8 + 16),  # alone there is no crowd
        ({"behind": 3.0}, 1, True, 24),
        ({"behind": 0.25}, 1, True, 8),
        ({}, 2, True, 4 * 1.5 + (16 - 4)),  # three on two cores until the walkers are done
        ({"behind": 0.25}, 2, True, 2 * 1.5 + (4 - 2)),  # and until the learner is
    ],
)
def test_the_model_of_throughput_adds_up_by_hand(changed, walkers, overlap, seconds):
    found = scale_model.update(costs(**changed), FREE, steps=1, streams=8, walkers=walkers, cores=2, overlap=overlap)
    assert found == pytest.approx(seconds)


def test_handing_over_costs_by_piece_and_by_step_and_the_slowest_of_many_is_waited_for():
    handing = scale_model.Handing(piece=1.0, step=0.5, travel=0.25)
    alone = scale_model.update(costs(), handing, steps=1, streams=8, walkers=2, cores=9, overlap=False)
    assert alone == pytest.approx(4 + 16 + 2 * 1.0 + 8 * 0.5 + 0.25)
    assert scale_model.late(costs(jitter=0.1), 1) == 1.0
    assert scale_model.late(costs(jitter=0.1), 2) == pytest.approx(1 + 0.1 / np.sqrt(np.pi), rel=0.01)


def test_more_machines_help_until_the_learner_is_full_and_then_not_at_all():
    slow, shape = costs(walk=100.0, behind=0.5), {"steps": 4, "streams": 2}
    assert scale_model.full(slow, FREE, **shape) == pytest.approx(200.0)
    each = [
        8 * count * 8 / scale_model.machines(slow, FREE, **shape, weights=0, count=count) for count in (1, 8, 64, 512)
    ]
    assert each == pytest.approx([8 / 100, 64 / 100, 1 / 0.5, 1 / 0.5])
    heavy = scale_model.machines(slow, FREE, **shape, weights=10**12, count=512)
    assert heavy == pytest.approx(512 * 10**12 / scale_model.GIGABIT)


def test_a_line_through_costs_has_no_negative_part():
    assert scale_model.line([(1, 3.0), (2, 5.0), (4, 9.0)]) == pytest.approx((1.0, 2.0))
    assert scale_model.line([(1, 2.0), (2, 2.0), (4, 1.9)])[1] == 0.0


def test_the_page_of_scripts_is_that_of_the_results():
    assert sb3_scripts.page(json.loads(sb3_scripts.RESULTS.read_text())) == sb3_scripts.PAGE.read_text(encoding="utf-8")
