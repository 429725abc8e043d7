"""Types of the language-model nodes."""

from surefoot.graph.nodes.language import NODES
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.types import CONST, TICK, Type, tensor


def test_there_is_one_response_and_one_score_per_prompt() -> None:
    prompts = NODES["PromptSource"].outputs_of(complete_params(NODES["PromptSource"], {"batch": 5}), {})
    sampled = NODES["LMSampler"].outputs_of(complete_params(NODES["LMSampler"], {}), prompts)
    assert sampled["responses"] == Type("responses", shape=(5,))
    scores = NODES["RewardModel"].outputs_of({}, {"responses": sampled["responses"]})
    assert scores == {"scores": tensor("float64", 5)}
    assert NODES["RewardModel"].outputs_of({}, {})["scores"].shape == ("N",)


def test_the_model_itself_is_constant() -> None:
    assert NODES["LMSampler"].clocks_of({}, {"prompts": TICK})[1] == {"responses": TICK, "language": CONST}
