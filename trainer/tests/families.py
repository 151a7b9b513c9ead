"""Model families, each as the smallest configuration of its architecture that the trainer can be tried on."""

from __future__ import annotations

from typing import Any

WIDTH: dict[str, Any] = {"vocab_size": 264, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
NO_IDS: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA: dict[str, Any] = {
    **WIDTH,
    **NO_IDS,
    "intermediate_size": 64,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
HEADS: dict[str, Any] = {"head_dim": 8}
EXPERTS: dict[str, Any] = {"num_local_experts": 4, "num_experts_per_tok": 2}
QWEN_EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
}
BERT: dict[str, Any] = {**WIDTH, **NO_IDS, "intermediate_size": 64, "max_position_embeddings": 64}

GPT: dict[str, Any] = {"vocab_size": 264, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}

DENSE: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {**LLAMA, "tie_word_embeddings": True}),
    "mistral": ("MistralForCausalLM", {**LLAMA, "sliding_window": 16}),
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "qwen3": ("Qwen3ForCausalLM", {**LLAMA, **HEADS}),
    "gemma": ("GemmaForCausalLM", {**LLAMA, **HEADS}),
    "gemma2": ("Gemma2ForCausalLM", {**LLAMA, **HEADS, "sliding_window": 16, "query_pre_attn_scalar": 8}),
    "gemma3_text": ("Gemma3ForCausalLM", {**LLAMA, **HEADS, "sliding_window": 16, "query_pre_attn_scalar": 8}),
    "phi": ("PhiForCausalLM", LLAMA),
    "phi3": ("Phi3ForCausalLM", LLAMA),
    "olmo2": ("Olmo2ForCausalLM", LLAMA),
    "granite": ("GraniteForCausalLM", LLAMA),
    "starcoder2": ("Starcoder2ForCausalLM", LLAMA),
    "stablelm": ("StableLmForCausalLM", LLAMA),
    "cohere": ("CohereForCausalLM", LLAMA),
    "smollm3": ("SmolLM3ForCausalLM", LLAMA),
}
OLDER: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": (
        "GPT2LMHeadModel",
        {**GPT, **NO_IDS},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", {**BERT}),
    "gptj": (
        "GPTJForCausalLM",
        {**GPT, "rotary_dim": 4, **NO_IDS},
    ),
    "falcon": ("FalconForCausalLM", {**WIDTH, **NO_IDS}),
    "bloom": ("BloomForCausalLM", {"vocab_size": 264, "hidden_size": 32, "n_layer": 2, "n_head": 4, **NO_IDS}),
    "opt": (
        "OPTForCausalLM",
        {**WIDTH, **NO_IDS, "ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    ),
}
EXPERT: dict[str, tuple[str, dict[str, Any]]] = {
    "mixtral": ("MixtralForCausalLM", {**LLAMA, **EXPERTS}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {**LLAMA, **HEADS, **QWEN_EXPERTS}),
    "olmoe": ("OlmoeForCausalLM", {**LLAMA, "num_experts": 4, "num_experts_per_tok": 2}),
    "granitemoe": ("GraniteMoeForCausalLM", {**LLAMA, **EXPERTS}),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        {
            **LLAMA,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 32,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
        },
    ),
}
MASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", BERT),
    "roberta": ("RobertaForMaskedLM", {**BERT, "pad_token_id": 0, "type_vocab_size": 1}),
    "modernbert": (
        "ModernBertForMaskedLM",
        {**BERT, "num_hidden_layers": 3, "local_attention": 16, "cls_token_id": None, "sep_token_id": None},
    ),
}
"""By `model_type`: the class with the head, and what differs from its defaults."""

FAMILIES = {**DENSE, **OLDER, **EXPERT, **MASKED}
