"""The plain loop as one object."""

from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.templates import template


def test_the_loop_as_one_object_has_the_digits_of_its_six_nodes() -> None:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 2, "torch"
    with Interpreter(graph) as run:
        run.run()
        expected = run.sha256()
    program = Compiled(graph)
    assert "Rollouts(" in program.source
    program.run()
    assert program.sha256() == expected
    assert program.nodes["trainer"].updates == 2
