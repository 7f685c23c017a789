"""Write a tiny language model that vLLM serves, without a network.

Two layers of a Llama with seeded random weights: at temperature 0 its output is the same rubbish every
time. Every byte is one token, so a prompt has as many tokens as its UTF-8 text has bytes. Run with the
Python of the environment that ``install.sh`` makes: ``python tiny_model.py FOLDER``.
"""

import json
import sys
from pathlib import Path

HIDDEN = 64
LAYERS = 2
HEADS = 2
KV_HEADS = 1
VOCABULARY = 320
"""256 bytes and four special tokens, padded to a multiple of 64."""
MAX_LENGTH = 16_384
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(folder: Path) -> dict[str, int]:
    """Write a byte-level tokenizer and return the ids of its special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # type: ignore[import-not-found]

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_LENGTH,
        "eos_token": "<|im_end|>",
        "pad_token": "<|pad|>",
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration, indent=1))
    return {name: tokenizer.token_to_id(name) for name in SPECIAL}


def write_configuration(folder: Path, ids: dict[str, int]) -> None:
    """Write the model's shape."""
    ends = {"eos_token_id": ids["<|im_end|>"], "pad_token_id": ids["<|pad|>"]}
    shape = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "head_dim": HIDDEN // HEADS,
        "attention_bias": False,
        "mlp_bias": False,
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN * 2,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": MAX_LENGTH,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "torch_dtype": "float32",
        "use_cache": True,
        "rope_theta": 10000.0,
        "initializer_range": 0.02,
        **ends,
    }
    (folder / "config.json").write_text(json.dumps(shape, indent=1))
    (folder / "generation_config.json").write_text(json.dumps(ends))


def write_weights(folder: Path, *, seed: int) -> None:
    """Write seeded random weights."""
    import torch  # type: ignore[import-not-found]
    from safetensors.torch import save_file  # type: ignore[import-not-found]

    generator = torch.Generator().manual_seed(seed)
    kv = KV_HEADS * HIDDEN // HEADS

    def random(rows: int, columns: int) -> "torch.Tensor":
        return torch.randn(rows, columns, generator=generator) * 0.5 / columns**0.5

    weights = {
        "model.embed_tokens.weight": random(VOCABULARY, HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": random(VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        weights |= {
            prefix + "self_attn.q_proj.weight": random(HIDDEN, HIDDEN),
            prefix + "self_attn.k_proj.weight": random(kv, HIDDEN),
            prefix + "self_attn.v_proj.weight": random(kv, HIDDEN),
            prefix + "self_attn.o_proj.weight": random(HIDDEN, HIDDEN),
            prefix + "mlp.gate_proj.weight": random(HIDDEN * 2, HIDDEN),
            prefix + "mlp.up_proj.weight": random(HIDDEN * 2, HIDDEN),
            prefix + "mlp.down_proj.weight": random(HIDDEN, HIDDEN * 2),
            prefix + "input_layernorm.weight": torch.ones(HIDDEN),
            prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN),
        }
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})


def main(folder: Path) -> None:
    """Write the whole model into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_configuration(folder, write_tokenizer(folder))
    write_weights(folder, seed=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
