"""Scripts: one call for the plain loop, else ticks."""

from surefoot.graph.export.script import to_script
from surefoot.graph.templates import template


def test_the_plain_loop_is_one_call_and_a_look_inside_makes_it_ticks() -> None:
    graph = template("cartpole")
    assert "Rollouts(env, either, agent, action, step, trainer)" in to_script(graph)
    graph.add("look", "Plot")
    graph.connect("step.rewards", "look.value")
    text = to_script(graph)
    assert "Rollouts" not in text
    assert (
        "for tick in range(ticks_for(config.total_steps, config.env_num_envs, config.trainer_rollout_steps)):" in text
    )
