"""Trained policies over HTTP: what they answer is what the model itself would do."""

from __future__ import annotations

import asyncio
import base64

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot import PPO
from surefoot.errors import ConfigError
from surefoot.server.http.access import AccessGuard
from surefoot.server.read_only import read_only_app
from surefoot.server.trained_runs import Runs

from .conftest import Asking


class Small(gym.Env):
    """Two named parts in, a choice and a push out."""

    observation_space = spaces.Dict({"near": spaces.Box(-1, 1, (2, 2)), "kind": spaces.Discrete(3)})
    action_space = spaces.Dict({"go": spaces.Discrete(3), "push": spaces.Box(-1, 1, (2,))})

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, True, False, {}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """{name: directory} of models, one of each kind."""
    folder = tmp_path_factory.mktemp("models")
    cart = PPO("MlpPolicy", "CartPole-v1", n_steps=16, n_envs=1, batch_size=16, normalize_obs=True)
    cart.learn(64)
    kinds = {
        "cart": cart,
        "memory": PPO("MlpPolicy", "CartPole-v1", n_steps=16, n_envs=1, batch_size=16, memory="gru"),
        "small": PPO("MultiInputPolicy", Small(), n_steps=16, batch_size=16),
    }
    for name, model in kinds.items():
        model.save(folder / name)
    return {name: folder / name for name in kinds}


def told(saved, story):
    async def whole():
        app = read_only_app(Runs(list(saved.values())), AccessGuard())
        await app.start()
        return await story(Asking(app))

    return asyncio.run(whole())


ROW = [0.1, -0.5, 0.05, 0.3]


def test_it_says_what_it_sees_and_does(saved):
    async def story(ask):
        return {run["name"]: run for run in (await ask("GET", "/v1/runs")).json}

    runs = told(saved, story)
    assert runs["cart"]["observation"] == {"obs": {"shape": [4], "dtype": "float32"}}
    assert runs["cart"]["action"] == {"kind": "discrete", "n": 2, "start": 0}
    assert (runs["cart"]["memory"], runs["memory"]["memory"]) == (False, True)
    assert set(runs["small"]["observation"]) == {"near", "kind"}


def test_an_observation_is_answered_as_the_model_answers_it(saved):
    rows = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    expected = PPO.load(saved["cart"]).predict(rows, deterministic=True)[0].tolist()

    async def story(ask):
        many = {"acts": [{"observation": row.tolist()} for row in rows]}
        batch = (await ask("POST", "/v1/runs/cart/actions/batch", many)).json["acts"]
        coded = [{"observation_b64": base64.b64encode(row.astype("<f4").tobytes()).decode()} for row in rows]
        single = [(await ask("POST", "/v1/runs/cart/actions", body)).json["action"] for body in coded]
        return [each["action"] for each in batch], single

    assert told(saved, story) == (expected, expected)


def test_it_samples_where_it_is_asked_to_and_keeps_to_a_mask(saved):
    async def story(ask):
        many = {"acts": [{"observation": ROW, "deterministic": False}] * 200}
        drawn = {a["action"] for a in (await ask("POST", "/v1/runs/cart/actions/batch", many)).json["acts"]}
        masked = {"observation": ROW, "deterministic": False, "mask": [False, True]}
        kept = {(await ask("POST", "/v1/runs/cart/actions", masked)).json["action"] for _ in range(20)}
        return drawn, kept

    assert told(saved, story) == ({0, 1}, {1})


def test_named_parts_come_in_and_nested_actions_go_out(saved):
    async def story(ask):
        body = {"parts": {"kind": [2]}, "parts_b64": {"near": base64.b64encode(np.zeros(4, "<f4").tobytes()).decode()}}
        good = await ask("POST", "/v1/runs/small/actions", body)
        bad = await ask("POST", "/v1/runs/small/actions", {"parts": {"kind": [2]}})
        return good.json["action"], bad

    action, bad = told(saved, story)
    assert set(action) == {"go", "push"}
    assert len(action["push"]) == 2
    assert (bad.status, bad.json["pointer"]) == (422, "/parts")


def test_a_policy_that_remembers_goes_on_by_episode(saved):
    rows = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
    model, memory, contexts = PPO.load(saved["memory"]), None, []
    for row in rows:
        _, memory = model.predict(row, memory, deterministic=True)
        contexts.append(memory["memory"].numpy().copy())

    async def story(ask):
        began = []
        for row in rows:
            body = {"observation": row.tolist(), "episode": "e1"}
            began.append((await ask("POST", "/v1/runs/memory/actions", body)).json["began"])
            await ask("POST", "/v1/runs/memory/actions", {"observation": ROW, "episode": "other"})
        kept = ask.app.service.runs.run("memory")._episodes["e1"]["memory"].numpy()
        again = await ask("POST", "/v1/runs/memory/actions", {"observation": ROW, "episode": "e1", "start": True})
        nameless = await ask("POST", "/v1/runs/memory/actions", {"observation": ROW})
        return began, kept, again.json["began"], nameless

    began, kept, again, nameless = told(saved, story)
    assert (began, again) == ([True] + [False] * 5, True)
    np.testing.assert_allclose(kept, contexts[-1], atol=1e-5)
    assert (nameless.status, nameless.json["pointer"]) == (422, "/episode")


def test_a_policy_that_remembers_is_not_shared_among_processes(saved):
    async def whole():
        await read_only_app(Runs([saved["memory"]]), AccessGuard(), alone=False).start()

    with pytest.raises(ConfigError, match="memory is recurrent"):
        asyncio.run(whole())


@pytest.mark.parametrize(
    ("path", "body", "status", "pointer"),
    [
        ("cart/actions", {"observation": [1.0]}, 422, "/observation"),
        ("cart/actions", {}, 422, "/"),
        ("cart/actions", {"observation_b64": "AAAA"}, 422, "/observation_b64"),
        ("cart/actions", {"observation": ROW, "mask": [True]}, 422, "/"),
        ("cart/actions/batch", {"acts": [{"observation": ROW}, {"observation": []}]}, 422, "/acts/1/observation"),
        ("nobody/actions", {"observation": ROW}, 404, None),
    ],
)
def test_what_cannot_be_is_refused(saved, path, body, status, pointer):
    async def story(ask):
        return await ask("POST", f"/v1/runs/{path}", body)

    answer = told(saved, story)
    assert (answer.status, answer.json.get("pointer")) == (status, pointer)
