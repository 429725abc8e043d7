"""Types and clocks of the tool-selection nodes."""

from surefoot.graph.nodes.tools import NODES
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.types import TICK, every, tensor, when


def test_there_is_one_vector_and_one_reward_per_question() -> None:
    source = NODES["QuerySource"].outputs_of(complete_params(NODES["QuerySource"], {"batch": 6}), {})
    vectors = NODES["QueryEncoder"].outputs_of({}, {"queries": source["queries"]})["vectors"]
    assert vectors == tensor("float32", 6, "D")
    assert NODES["ToolReward"].outputs_of({}, {"queries": source["queries"]})["right"] == tensor("bool", 6)


def test_updates_and_exams_have_their_own_clocks() -> None:
    fires, clocks = NODES["ToolTrainer"].clocks_of({}, {"choices": TICK})
    assert fires == TICK
    assert set(clocks.values()) == {when("training_complete")}
    assert NODES["ToolExam"].clocks_of({}, {"trigger": every(5)})[0] == every(5)
