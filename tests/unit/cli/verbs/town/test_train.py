"""The town's commands: what makes no sense together is refused with a reason; promotion remembers."""

from pathlib import Path

import pytest

from surefoot.cli.main import main, read_arguments
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.train import TownTrainArgs
from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.spec import town_spec
from surefoot.town.training.teach import parse_stages


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": "rollout", "samples": Path("m")}, "live towns only"),
        ({"mode": "replay"}, "needs --samples"),
        ({"mode": "replay", "samples": Path("m"), "rollout_ticks": 3}, "--rollout-ticks has no effect"),
        ({"mode": "replay", "samples": Path("m"), "steps": 3}, "no live steps"),
        ({"mode": "rollout", "rollout_ticks": 0}, "--rollout-ticks is 0; it must be at least 1"),
        ({"mode": "rollout", "towns": 0}, "--towns is 0"),
        ({"mode": "rollout", "steps": 0}, "--steps is 0"),
        ({"mode": "mixed", "epochs": 0}, "--epochs is 0"),
        ({"mode": "rollout", "steps": 3, "epochs": 3}, "one of them"),
        ({"mode": "mixed", "set": ("replay_share=1",)}, "between 0 and 1"),
        ({"mode": "mixed", "samples": Path("m"), "set": ("central=true",)}, "leave one of them out"),
        ({"mode": "bc", "train_ppo": True}, "belongs to mode replay"),
    ],
)
def test_what_makes_no_sense_together_is_refused_with_a_reason(given: dict, says: str) -> None:
    args = TownTrainArgs(scenario="queue_conflict", **given)
    with pytest.raises(Usage, match=says):
        args.refuse(args.chosen_mode(load_scenario("queue_conflict")))


def test_the_mode_follows_from_what_is_given() -> None:
    scenario = load_scenario("queue_conflict")
    assert TownTrainArgs(scenario="x").chosen_mode(scenario) == "rollout"
    assert TownTrainArgs(scenario="x", samples=Path("d")).chosen_mode(scenario) == "replay"
    assert TownTrainArgs(scenario="x", rollout_ticks=5).chosen_mode(scenario) == "rollout"
    assert TownTrainArgs(scenario="x", mode="anneal").chosen_mode(scenario) == "anneal"


def test_set_holds_options_of_the_town_and_settings_of_ppo() -> None:
    args = TownTrainArgs(scenario="x", seed=3, set=("lr=1e-4", "replay_shuffle=true", "max_lag=2", "clip=0.3"))
    town, ppo = args.parsed_set
    assert (town.replay_shuffle, town.max_lag, town.replay_share) == (True, 2, 0.5)
    assert ppo == {"lr": "1e-4", "clip": "0.3", "seed": 3}


def test_flags_of_the_earlier_system_are_settings() -> None:
    words = ["x", "--clip-param", "0.3", "--ppo-max-grad-norm=1", "--no-normalize-advantages", "--replay-manifest", "m"]
    args = read_arguments("town train", [*words, "--replay-share", "0.25", "--set", "lr=1e-4"])
    assert args.samples == Path("m")
    assert args.parsed_set[0].replay_share == 0.25
    assert args.parsed_set[1] == {"clip": "0.3", "max_grad_norm": "1", "normalize_advantage": "off", "lr": "1e-4"}


def test_further_flags_of_the_earlier_system_are_settings() -> None:
    words = [
        "--ppo-log-frequency",
        "2",
        "--ppo-log-max-entries=50",
        "--rollout-auto-seed-agents",
        "--anneal-log-dir",
        "logs",
    ]
    words += ["--replay-sample", "a.npz", "--replay-meta", "b.json", "--ppo-normalize-advantages"]
    args = read_arguments("town train", ["x", *words])
    town, ppo = args.parsed_set
    assert (town.ppo_log_frequency, town.ppo_log_max_entries, town.auto_seed_agents) == (2, 50, True)
    assert (town.anneal_log_dir, town.replay_meta, args.samples) == ("logs", "b.json", Path("a.npz"))
    assert ppo == {"normalize_advantage": "minibatch"}


def test_a_schedule_is_read_and_a_wrong_one_named() -> None:
    assert [(s.mode, s.epochs) for s in parse_stages("bc:3, ppo:5", epochs=2)] == [("bc", 3), ("ppo", 2)]
    for wrong in ("bc", "rl:3", "ppo:0"):
        with pytest.raises(ConfigError):
            parse_stages(wrong)
    assert main(["town", "train", "queue_conflict", "--mode", "anneal", "--anneal-schedule", "bc"]) == 64


def test_fewer_towns_live_longer_between_updates_but_no_longer_than_an_episode() -> None:
    scenario = load_scenario("queue_conflict")
    assert (scenario.training.towns, scenario.training.rollout_ticks, scenario.ticks) == (256, 20, 80)
    assert [town_spec(scenario, towns=towns).ppo.rollout_steps for towns in (None, 128, 8, 512)] == [20, 40, 80, 20]
    assert town_spec(scenario, towns=8, rollout_ticks=5).ppo.rollout_steps == 5
