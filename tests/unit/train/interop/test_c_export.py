"""Exported headers: proven, described, with a self-test that sees a wrong bit."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box, Discrete, Hybrid
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, PolicyError
from surefoot.nets import c_header as writer
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.c_export import export_c

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
ROW = {"obs": Box((4,))}


def trained(observation, action, **net):
    policy = ActorCritic(observation, action, NetConfig(hidden=(8,), **net))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return policy


def wrong_words(place, name, *options):
    """What the self-test of a header returns in a program that was compiled with the strictest warnings."""
    program = place / "program"
    (place / "main.c").write_text(
        f'#include <stdio.h>\n#include "{name}.h"\nint main(void) {{ printf("%d", {name}_self_test()); return 0; }}\n'
    )
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-D{name.upper()}_SELF_TEST", *options]
    subprocess.run(["cc", *strict, "-o", program, place / "main.c"], check=True)
    return int(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("net", [{"memory": "lstm"}, {"beta": True, "normalize_obs": True}])
@pytest.mark.parametrize("options", [(), ("-DWALK_NO_VALUE", "-O3", "-std=gnu11")], ids=str)
def test_the_self_test_of_a_header_finds_the_same_bits(net, options, tmp_path):
    export_c(trained(ROW, Hybrid((3, 2), Box((2,), -1.0, 2.0)), **net), tmp_path / "walk.h", origin={}, masks=True)
    assert wrong_words(tmp_path, "walk", *options) == 0


def test_the_self_test_counts_outputs_of_another_weight(tmp_path):
    path = tmp_path / "walk.h"
    export_c(trained(ROW, Discrete(3)), path, origin={})
    text = path.read_text()
    bias = re.search(r"walk_value_out_bias\[1\] = \{ ([-0-9.e]+)f", text)
    path.write_text(text.replace(bias[0], bias[0].replace(bias[1], repr(float(bias[1]) + 0.001))))
    assert wrong_words(tmp_path, "walk") == 10  # one value in each of ten examples


def test_the_header_says_what_it_is(tmp_path):
    world = make_world("Pendulum-v1", 20)
    policy = trained(world.observation, world.action)
    result = export_c(
        policy, tmp_path / "swing.h", origin={"run": 'a"b*/', "updates": 3}, env="Pendulum-v1", world=world
    )
    text = (tmp_path / "swing.h").read_text()
    assert '#define SWING_RUN "a\\"b*/"\n#define SWING_UPDATES 3\n#define SWING_ENV "Pendulum-v1"' in text
    assert "obs float32[3]: observation: cos of the angle (1), sin of the angle (1), angular velocity (rad/s)" in text
    assert f'#define SWING_WEIGHTS_SHA256 "{result.contract["weights_sha256"]}"' in text
    assert result.contract["model"]["bytes"] == (tmp_path / "swing.h").stat().st_size
    assert result.contract["proof"]["shown_by_the_world"] == 500
    assert max(result.contract["proof"]["largest_difference"].values()) <= 1e-5
    assert wrong_words(tmp_path, "swing") == 0


def test_two_policies_live_in_one_program(tmp_path):
    for name in ("walk", "run"):
        export_c(trained(ROW, Discrete(3)), tmp_path / f"{name}.h", origin={}, observations=40)
    (tmp_path / "walk.h").write_text((tmp_path / "walk.h").read_text() + '#include "run.h"\n')
    assert wrong_words(tmp_path, "walk") == 0


def test_a_directory_gets_a_policy(tmp_path):
    export_c(trained(ROW, Discrete(3)), tmp_path / "out", origin={}, observations=40)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["policy.h"]


def test_a_header_that_answers_otherwise_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "LOG_STD_RANGE", (-20.0, -1.0))
    with pytest.raises(PolicyError, match="outputs of the C header differ"):
        export_c(trained(ROW, Box((2,), -1.0, 1.0)), tmp_path / "walk.h", origin={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("compiler", "sentence"), [("no-such-cc", "no 'no-such-cc' here"), ("false", "cannot compile")]
)
def test_without_a_compiler_nothing_is_written(compiler, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(ConfigError, match=sentence):
        export_c(trained(ROW, Discrete(3)), tmp_path / "walk.h", origin={})
    assert list(tmp_path.iterdir()) == []


def test_examples_are_the_first_rows_of_batches_and_their_outputs(tmp_path):
    policy = trained(ROW, Discrete(3))
    text = export_c(policy, tmp_path / "walk.h", origin={}) and (tmp_path / "walk.h").read_text()
    rows = re.search(r"static const walk_input in\[10\] = \{\n(.*?)\};", text, re.DOTALL)[1]
    inputs = np.array(re.findall(r"[-0-9.e]+(?=f)", rows), np.float32).reshape(10, 4)
    words = re.findall(r"0x([0-9a-f]{8})u", text[text.index("expected[10]") :])
    outputs = np.array([int(w, 16) for w in words], np.uint32).reshape(10, 5)
    with torch.no_grad():
        logits, value, _ = policy.network({"obs": torch.from_numpy(inputs)})
    np.testing.assert_array_equal(outputs[:, 0], logits.argmax(1).numpy())
    np.testing.assert_allclose(outputs[:, 1:4].copy().view(np.float32), logits.softmax(1).numpy(), rtol=1e-5)
    np.testing.assert_allclose(outputs[:, 4].copy().view(np.float32), value.numpy(), rtol=1e-5)
