"""Tiny random models of the families of causal language models in transformers, for the matrix and for docs/lm/models.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

VOCABULARY, WIDTH, LAYERS, WINDOW, POSITIONS = 50, 32, 2, 8, 64
PLAIN = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 2 * WIDTH,
    "max_position_embeddings": POSITIONS,
}
SHARED = {**PLAIN, "num_key_value_heads": 2}
"""Four query heads on two key heads."""
GPT = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": 4, "n_positions": POSITIONS}
LOCAL = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
MIXTURE = {"num_experts_per_tok": 2, "moe_intermediate_size": WIDTH}


@dataclass(frozen=True)
class Family:
    """One family: the class in transformers and a tiny config of it."""

    title: str
    model: str
    config: str
    settings: dict[str, Any]
    notes: str = ""
    scale: float = field(default=6.0)
    """Fresh weights are multiplied by this, because their logits are nearly uniform."""

    def build(self, seed: int = 0) -> Any:
        import transformers

        torch.manual_seed(seed)
        ends = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
        model = getattr(transformers, self.model)(getattr(transformers, self.config)(**ends, **self.settings)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(self.scale)
        return model


WINDOWED = "sliding window"
FAMILIES = [
    Family("GPT-2", "GPT2LMHeadModel", "GPT2Config", GPT, "written out"),
    Family(
        "GPT-2, attention scaled by layer",
        "GPT2LMHeadModel",
        "GPT2Config",
        {**GPT, "scale_attn_by_inverse_layer_idx": True},
    ),
    Family("Llama 2, Llama 3, SmolLM2", "LlamaForCausalLM", "LlamaConfig", SHARED, "written out"),
    Family("Qwen2, Qwen2.5", "Qwen2ForCausalLM", "Qwen2Config", SHARED),
    Family(
        "Qwen2 with windows",
        "Qwen2ForCausalLM",
        "Qwen2Config",
        {**SHARED, **LOCAL, "use_sliding_window": True, "max_window_layers": 1},
        WINDOWED,
    ),
    Family("Qwen3", "Qwen3ForCausalLM", "Qwen3Config", {**SHARED, "head_dim": 8}),
    Family("Qwen2-MoE", "Qwen2MoeForCausalLM", "Qwen2MoeConfig", {**SHARED, **MIXTURE, "num_experts": 4}, "experts"),
    Family("Mistral", "MistralForCausalLM", "MistralConfig", {**SHARED, "sliding_window": WINDOW}, WINDOWED),
    Family(
        "Mixtral",
        "MixtralForCausalLM",
        "MixtralConfig",
        {**SHARED, "num_local_experts": 4, "sliding_window": WINDOW},
        "experts, sliding window",
    ),
    Family("Gemma", "GemmaForCausalLM", "GemmaConfig", {**SHARED, "head_dim": 8}),
    Family(
        "Gemma 2",
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**SHARED, **LOCAL, "head_dim": 8, "query_pre_attn_scalar": 8, "final_logit_softcapping": 3.0},
        "sliding window, soft caps",
    ),
    Family(
        "Gemma 3 (text)",
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        {**SHARED, **LOCAL, "head_dim": 8, "query_pre_attn_scalar": 8},
        WINDOWED,
    ),
    Family("Phi-1, Phi-2", "PhiForCausalLM", "PhiConfig", SHARED, "head with a bias"),
    Family("Phi-3", "Phi3ForCausalLM", "Phi3Config", {**SHARED, "sliding_window": WINDOW}, WINDOWED),
    Family("Falcon", "FalconForCausalLM", "FalconConfig", {**PLAIN, "ffn_hidden_size": 64}),
    Family(
        "Falcon with ALiBi",
        "FalconForCausalLM",
        "FalconConfig",
        {**PLAIN, "ffn_hidden_size": 64, "alibi": True, "multi_query": False},
        "ALiBi",
    ),
    Family("SmolLM3", "SmolLM3ForCausalLM", "SmolLM3Config", SHARED),
    Family("GPT-NeoX, Pythia", "GPTNeoXForCausalLM", "GPTNeoXConfig", PLAIN),
    Family(
        "GPT-Neo",
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "hidden_size": WIDTH,
            "num_layers": LAYERS,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": WINDOW,
            "max_position_embeddings": POSITIONS,
        },
        WINDOWED,
    ),
    Family("GPT-J", "GPTJForCausalLM", "GPTJConfig", {**GPT, "rotary_dim": 4}, "head with a bias"),
    Family("CodeGen", "CodeGenForCausalLM", "CodeGenConfig", {**GPT, "rotary_dim": 4}, "head with a bias"),
    Family("GPT-BigCode, StarCoder", "GPTBigCodeForCausalLM", "GPTBigCodeConfig", GPT),
    Family("StarCoder 2", "Starcoder2ForCausalLM", "Starcoder2Config", {**SHARED, "sliding_window": WINDOW}, WINDOWED),
    Family("StableLM", "StableLmForCausalLM", "StableLmConfig", SHARED),
    Family("OLMo", "OlmoForCausalLM", "OlmoConfig", SHARED),
    Family("OLMo 2", "Olmo2ForCausalLM", "Olmo2Config", SHARED),
    Family("Bloom", "BloomForCausalLM", "BloomConfig", {"hidden_size": WIDTH, "n_layer": LAYERS, "n_head": 4}, "ALiBi"),
    Family(
        "OPT",
        "OPTForCausalLM",
        "OPTConfig",
        {**PLAIN, "ffn_dim": 64, "word_embed_proj_dim": 16},
        "embeddings narrower than the layers",
    ),
    Family(
        "MPT",
        "MptForCausalLM",
        "MptConfig",
        {"d_model": WIDTH, "n_layers": LAYERS, "n_heads": 4, "max_seq_len": POSITIONS},
        "ALiBi",
    ),
    Family("Cohere, Command R", "CohereForCausalLM", "CohereConfig", {**SHARED, "logit_scale": 0.25}, "scaled logits"),
    Family(
        "Cohere 2",
        "Cohere2ForCausalLM",
        "Cohere2Config",
        {**SHARED, **LOCAL, "logit_scale": 0.25},
        "sliding window, scaled logits",
    ),
    Family("Granite", "GraniteForCausalLM", "GraniteConfig", {**SHARED, "logits_scaling": 4.0}, "scaled logits"),
    Family("GLM-4", "GlmForCausalLM", "GlmConfig", {**SHARED, "head_dim": 8}),
    Family("Nemotron", "NemotronForCausalLM", "NemotronConfig", SHARED),
    Family("Helium", "HeliumForCausalLM", "HeliumConfig", {**SHARED, "head_dim": 8}),
]
REFUSED = [
    Family(
        "Mamba",
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": WIDTH, "num_hidden_layers": LAYERS},
        "state-space model: no attention cache",
    ),
    Family(
        "RecurrentGemma",
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        {**PLAIN, "lru_width": WIDTH, "attention_window_size": WINDOW},
        "recurrent state",
    ),
    Family(
        "T5, BART and other encoder–decoders",
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": WIDTH, "num_layers": LAYERS, "num_heads": 4, "d_kv": 8, "d_ff": 64},
        "encoder–decoder",
    ),
]
