"""Features of responses: hashed words, counts, and mean states of an encoder."""

from __future__ import annotations

import math

import pytest
import torch
from lm_helpers import tiny_encoder

from surefoot.errors import ConfigError
from surefoot.lm.policy.tiny import make_tiny
from surefoot.lm.rewards.text_features import LanguageModelStates, TextFeatures, counts_of, hashed_words


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return TextFeatures(tiny_encoder(tmp_path_factory.mktemp("encoder")))


def test_words_are_counted_by_the_logarithm_and_hashed_the_same_in_every_process():
    bag = hashed_words("No no, yes")
    assert sorted(bag.values()) == pytest.approx([1.0, 1.0, 1.0, 1.0 + math.log(2)])
    assert hashed_words("yes") == {zlib_bucket("yes"): 1.0}


def zlib_bucket(text):
    import zlib

    return zlib.crc32(text.encode()) % 2**15


def test_counts_are_those_a_person_would_count():
    counts = counts_of("I can't help with that. Why?\nNo 1")
    assert counts[0] == pytest.approx(math.log1p(8))
    assert counts[5:] == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert counts_of("")[:4] == [0.0, 0.0, 0.0, 0.0]


def test_states_are_means_over_the_tokens_whatever_the_batch(features):
    prompts, responses = ["hello", "what"], ["abc", "a much longer answer"]
    together = features(prompts, responses)
    alone = features(prompts[:1], responses[:1])
    assert torch.allclose(together.dense[0], alone.dense[0], atol=1e-5)
    ids = features.tokenizer("abc", return_tensors="pt")
    with torch.no_grad():
        hidden = features.encoder(**ids, output_hidden_states=True).hidden_states
    assert features.layers == (1,)
    assert torch.allclose(alone.dense[0, :16], hidden[1].mean(1)[0], atol=1e-5)
    assert together.dense.shape == (2, features.width)


def test_states_of_a_language_model_are_those_of_one_text_at_a_time(tmp_path):
    states = LanguageModelStates(make_tiny(tmp_path, layers=4))
    assert states.layers == (2,)
    together = states(["abc", "", "a much longer answer"])
    ids = states.tokenizer("\nabc", return_tensors="pt")
    with torch.no_grad():
        hidden = states.model(**ids, output_hidden_states=True).hidden_states[2][0]
    # The line break before the text is not part of the mean.
    assert torch.allclose(together[0, 0], hidden[1:].mean(0), atol=1e-5)
    assert torch.allclose(together[0, 1], hidden[-1], atol=1e-5)
    assert torch.isfinite(together).all()


def test_layers_above_those_that_are_read_are_left_out_without_changing_the_states(tmp_path):
    transformers = pytest.importorskip("transformers")
    states = LanguageModelStates(make_tiny(tmp_path, layers=6))
    assert (states.layers, states.model.config.num_hidden_layers) == ((3, 4), 5)
    whole = transformers.AutoModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        ids = states.tokenizer("\nabc", return_tensors="pt")
        hidden = whole(**ids, output_hidden_states=True).hidden_states
    assert torch.allclose(states(["abc"])[0, 3], hidden[4][0, -1], atol=1e-5)


def test_what_is_no_language_model_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no language model at"):
        LanguageModelStates(tmp_path)


def test_an_answer_that_repeats_the_question_is_most_similar_to_it(features):
    assert features(["abc"], ["abc"]).dense[0, -1] == pytest.approx(1.0, abs=1e-5)


def test_an_empty_response_has_features_too(features):
    assert torch.isfinite(features([""], [""]).dense).all()


def test_what_is_no_encoder_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no encoder at"):
        TextFeatures(tmp_path)


def test_peaks_are_the_highest_states_of_the_tokens(features):
    texts = ["sun", "a much longer text about the sun"]
    both = features.states(texts, peaks=True)
    plain = features.states(texts)
    layers = plain.shape[1]
    assert torch.allclose(both[:, :layers], plain)
    ids = features.tokenizer(texts[:1], return_tensors="pt")
    hidden = features.encoder(**ids, output_hidden_states=True).hidden_states[-1][0]
    assert torch.allclose(both[0, -1], hidden.amax(0), atol=1e-5), "padding of the shorter text is no token"
