"""The network in numpy: finite weights, probabilities and draws."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.server.decisions.learning_process import save
from surefoot.server.decisions.numpy_network import draw, probabilities

from .service_cases import asked, run, told_by


def test_weights_that_are_not_finite_never_answer(tmp_path):
    async def story(service):
        await told_by(service, {"a": 8})
        before = service.policy("greet").network
        learn = service.apprentice.ask

        def poisoned(recipe, rollout):
            told = learn(recipe, rollout)
            learner = service.apprentice.learners["greet"]
            with torch.no_grad():
                next(iter(learner.policy.parameters()))[0, 0] = float("nan")
            save(learner, service.directory / "policies/greet", {})
            return told

        service.apprentice.ask = poisoned
        job = await service.lifecycle.finished(await service.lifecycle.update("greet"))
        (made,) = await service.decide("greet", [asked("after")])
        return job.state, job.message, service.policy("greet").network is before, made.policy_version

    state, message, same, version = run(tmp_path, story)
    assert (state, same, version) == ("failed", True, 0)
    assert "NaN or infinity" in message


def test_probabilities_are_a_softmax_over_what_is_allowed():
    found = probabilities(np.log([1.0, 2.0, 5.0]), np.array([True, True, False]))
    np.testing.assert_allclose(found, [1 / 3, 2 / 3, 0.0])


def test_a_uniform_number_draws_the_action_whose_part_it_lies_in():
    logits = np.log(np.tile([0.2, 0.3, 0.5], (4, 1)))
    _, actions = draw(logits, [None] * 4, np.array([0.1, 0.4, 0.6, 0.999]))
    assert actions == [0, 1, 2, 2]
    chances, masked = draw(np.zeros((1, 3)), [np.array([True, True, False])], np.array([0.999999]))
    assert (masked, chances[0].tolist()) == ([1], [0.5, 0.5, 0.0])
