"""An exported folder has the same logits, merged or apart."""

from __future__ import annotations

import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny
from transformers import AutoModelForCausalLM, AutoTokenizer

from surefoot.errors import ConfigError
from surefoot.lm.export import export
from surefoot.lm.policy.adapters import settle_adapters
from surefoot.lm.policy.backbone import Backbone

IDS = torch.tensor([[3, 4, 5, 6]])


def trained(family="gpt2", **how):
    backbone = Backbone(tiny(family, vocabulary=VOCABULARY, layers=3), **how)
    with torch.no_grad():
        for p in backbone.trained().values():
            p.add_(0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    return backbone


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_merged_it_loads_with_equal_logits(tmp_path, family):
    backbone = trained(family, targets="all")
    export(backbone, char_tokenizer(), tmp_path / "out", merged=True, base="tiny", numbers={"score": 0.5, "steps": 3})
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    assert torch.allclose(again(IDS).logits, backbone.model(IDS).logits, atol=1e-4)
    assert AutoTokenizer.from_pretrained(tmp_path / "out")("ab")["input_ids"] == char_tokenizer()("ab")["input_ids"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| score | 0.5 |" in card
    assert list(backbone.adapters()), "exporting must not merge the policy that goes on learning"


@pytest.mark.parametrize(("family", "top"), [("gpt2", None), ("llama", 2)])
def test_apart_peft_loads_it_with_equal_logits(tmp_path, family, top):
    peft = pytest.importorskip("peft")
    backbone = trained(family, top=top)
    tiny(family, vocabulary=VOCABULARY, layers=3).save_pretrained(tmp_path / "base")
    export(backbone, char_tokenizer(), tmp_path / "out", merged=False, base=str(tmp_path / "base"))
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    again = peft.PeftModel.from_pretrained(base, tmp_path / "out").eval()
    assert torch.allclose(again(IDS).logits, backbone.model(IDS).logits, atol=1e-4)


def test_adapters_on_top_of_settled_ones_are_merged_together_and_leave_the_reference_in_between(tmp_path):
    first = trained()
    settle_adapters(first.model)
    tuned = first.model(IDS).logits.detach()
    second = Backbone(first.model, seed=9)
    assert torch.allclose(second.model(IDS).logits, tuned, atol=1e-5)
    with torch.no_grad():
        for p in second.trained().values():
            p.add_(0.1)
    with second.reference():
        assert torch.allclose(second.model(IDS).logits, tuned, atol=1e-5)
    with pytest.raises(ConfigError, match="--merge"):
        export(second, char_tokenizer(), tmp_path / "no", merged=False)
    export(second, char_tokenizer(), tmp_path / "out", merged=True)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    assert torch.allclose(again(IDS).logits, second.model(IDS).logits, atol=1e-4)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        export(trained(), char_tokenizer(), tmp_path, merged=True)


def test_the_card_of_a_whole_model_says_so_and_names_a_base_that_can_be_found(tmp_path):
    export(trained(train="full"), char_tokenizer(), tmp_path / "out", merged=False, base="smollm2")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "library_name: transformers" in card
    assert "all weights were trained" in card
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in card
    export(trained(train="full"), char_tokenizer(), tmp_path / "local", merged=False, base=str(tmp_path))
    assert f"base_model: {tmp_path.resolve()}\n" in (tmp_path / "local" / "README.md").read_text()
    assert "peft" not in card
