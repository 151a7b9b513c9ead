"""Tiny models that write down what is said in the sounds."""

from __future__ import annotations

import json
from pathlib import Path

from stand_ins_media import LETTERS, LISTEN, RATE, WAVES

MARKS = ["<pad>", "<s>", "</s>", "<unk>", "|"]


def speech(folder: Path) -> None:
    """A wav2vec2 with its alphabet, and a whisper.

    The wav2vec2 is in a cache of the hub's and goes by its name there: a model's folder is a checkpoint to resume
    from for run_speech_recognition_ctc.py. The alphabet is given, as one that the program makes of its texts has a
    sign more in transformers 4 than in 5.
    """
    import torch
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(1)
    signs = [*MARKS, *LETTERS.strip()]
    cache = folder / "hub" / "models--tiny--wav2vec2"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text("0")
    path = cache / "snapshots" / "0"
    Wav2Vec2ForCTC(Wav2Vec2Config(**WAVES, vocab_size=len(signs))).save_pretrained(path)
    (path / "preprocessor_config.json").write_text(json.dumps(LISTEN))
    (folder / "alphabet").mkdir()
    (folder / "alphabet" / "vocab.json").write_text(json.dumps({sign: number for number, sign in enumerate(signs)}))
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token", "word_delimiter_token"), MARKS, strict=True))
    settings = {"tokenizer_class": "Wav2Vec2CTCTokenizer", **names}
    (folder / "alphabet" / "tokenizer_config.json").write_text(json.dumps(settings))
    path = folder / "whisper"
    end = _whisper_tokenizer(path)
    whisper = WhisperConfig(
        vocab_size=end + len(SPOKEN),
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=50,
        max_target_positions=64,
        dropout=0.0,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=end + 1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    WhisperForConditionalGeneration(whisper).save_pretrained(path)
    listen = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": 8,
        "sampling_rate": RATE,
        "hop_length": 160,
        "chunk_length": 1,
        "n_fft": 400,
        "padding_value": 0.0,
    }
    (path / "preprocessor_config.json").write_text(json.dumps(listen))


SPOKEN = ["endoftext", "startoftranscript", "en", "transcribe", "translate", "notimestamps"]


def _whisper_tokenizer(path: Path) -> int:
    """A token a byte and whisper's own marks; the number of the first of these is given back."""
    from tokenizers import pre_tokenizers

    path.mkdir()
    vocabulary = {sign: number for number, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    first = len(vocabulary)
    plain = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
    marks = {
        str(first + number): {"content": f"<|{name}|>", "special": True, **plain} for number, name in enumerate(SPOKEN)
    }
    end = f"<|{SPOKEN[0]}|>"
    (path / "vocab.json").write_text(json.dumps({**vocabulary, end: first}))
    (path / "merges.txt").write_text("#version: 0.2\n")
    settings = {
        "tokenizer_class": "WhisperTokenizer",
        "added_tokens_decoder": marks,
        "model_max_length": 64,
        **dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), end),
    }
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return first
