import torch
from gymnasium import spaces

from surefoot.compat.sb3.contrib.recurrent_policies import RecurrentActorCriticPolicy
from surefoot.compat.sb3.engine.recurrent_policies import RecurrentEnginePolicy
from surefoot.core.batch import Batch
from surefoot.nets.policy import PolicyInput


def test_stored_steps_are_evaluated_as_they_were_acted():
    torch.manual_seed(0)
    inner = RecurrentActorCriticPolicy(spaces.Box(-1, 1, (3,)), spaces.Discrete(4), lambda _: 1e-3, lstm_hidden_size=5)
    policy = RecurrentEnginePolicy(inner)
    obs, starts = torch.randn(6, 2, 3), torch.zeros(6, 2, dtype=torch.bool)
    starts[0], starts[3, 1] = True, True
    first = context = policy.initial_context(2)
    actions, log_probs, values, contexts = [], [], [], []
    with torch.no_grad():
        for x, start in zip(obs, starts, strict=True):
            contexts.append(context)
            out = policy.act(PolicyInput(obs={"obs": x}, start=start, context=context), generator=torch.Generator())
            actions, log_probs, values = [*actions, out.action], [*log_probs, out.log_prob], [*values, out.value]
            context = out.context
    stacked = {"log_prob": torch.stack(log_probs), "value": torch.stack(values)}
    batch = Batch(
        obs={"obs": obs},
        action=torch.stack(actions),
        advantage=torch.zeros(6, 2),
        target=torch.zeros(6, 2),
        start=starts,
        context=first,
        **stacked,
    )
    evaluation = policy.evaluate(batch)
    torch.testing.assert_close(evaluation.log_prob, stacked["log_prob"])
    torch.testing.assert_close(evaluation.value, stacked["value"])
    for name, expected in contexts[4].items():
        torch.testing.assert_close(policy.remembered(batch, [0, 4])[1][name], expected)
