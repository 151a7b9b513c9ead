"""Text to token ids: bytes as they are, or a tokenizer of the `tokenizers` library, which uses all cores by itself."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaudi3_scale.config import DataConfig
from gaudi3_scale.config.registered import PREFIX, is_registered
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.git_lfs import HEAD_BYTES, is_pointer

Tokens = npt.NDArray[np.integer[Any]]
FILE = "tokenizer.json"
COMPANIONS = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "[SEP]")
MASK_TOKENS = ("[MASK]", "<mask>", "<|mask|>")
BYTE_MASK = 256


class ByteTokenizer:
    """Each byte is its own id; documents are separated by a newline, and 256 is free for a mask."""

    digest = "bytes"
    unit = "byte"
    vocabulary = 256
    separator = 10
    begin: int | None = None
    mask = BYTE_MASK

    def encode(self, texts: Sequence[bytes | str]) -> list[Tokens]:
        """The ids of each text."""
        return [np.frombuffer(t if isinstance(t, bytes) else t.encode(), dtype=np.uint8) for t in texts]

    def file_digest(self) -> str:
        """SHA-256 of the tokenizer.json that `save` writes."""
        return hashlib.sha256(self._as_file().to_str(pretty=True).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """As a tokenizer.json with the same ids, for whoever uses the model elsewhere."""
        folder.mkdir(parents=True, exist_ok=True)
        self._as_file().save(str(folder / FILE), pretty=True)
        _write_config(folder, {"mask_token": "<|mask|>"})

    def _as_file(self) -> Any:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        alphabet = _byte_alphabet()
        tokenizer = Tokenizer(models.BPE({alphabet[byte]: byte for byte in range(256)}, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken("<|mask|>", normalized=False)])
        return tokenizer


class FileTokenizer:
    """A tokenizer.json, alone or in a transformers folder."""

    unit = "token"

    def __init__(self, path: Path, end_of_text: str, begin_of_text: str = "") -> None:
        """`end_of_text` and `begin_of_text` as in the configuration's `data`."""
        from tokenizers import Tokenizer

        self._path = path
        file = path / FILE if path.is_dir() else path
        if not file.is_file():
            raise ConfigError(
                f"data.tokenizer is {str(path)!r}, where there is no {FILE}: give bytes, the path of such a file or of "
                "a folder that has one (transformers' AutoTokenizer(...).save_pretrained writes it)."
            )
        _check_pointer(file)
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises no narrower one
            raise ConfigError(f"data.tokenizer {str(file)!r} is no tokenizer ({error}): write it again.") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # one that is written in a text is text
        self.digest = hashlib.sha256(file.read_bytes()).hexdigest()
        # Ids may have gaps, so that their number is no bound on them.
        self.vocabulary: int = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
        self._end = end_of_text or self._named("eos_token") or self._first_of(END_TOKENS)
        end = self._tokenizer.token_to_id(self._end) if self._end else None
        if end is None:
            what = f"no token {self._end!r}" if self._end else "no token that is known to end a text"
            raise ConfigError(
                f"data.tokenizer {str(path)!r} has {what}: set data.end_of_text to the token that goes after each "
                "document."
            )
        self.separator: int = end
        self.begin = self._begin(begin_of_text)
        mask = self._named("mask_token") or self._first_of(MASK_TOKENS)
        self.mask: int | None = self._tokenizer.token_to_id(mask) if mask else None

    def _begin(self, wanted: str) -> int | None:
        """Id of the token before each document."""
        if not wanted:
            return None
        token = self._named("bos_token") if wanted == "auto" else wanted
        found = self._tokenizer.token_to_id(token) if token else None
        if found is None:
            what = f"no token {token!r}" if token else "no bos_token in tokenizer_config.json"
            raise ConfigError(
                f"data.tokenizer {str(self._path)!r} has {what}: set data.begin_of_text to the token that begins "
                "each document, or leave it empty."
            )
        return int(found)

    def encode(self, texts: Sequence[bytes | str]) -> list[Tokens]:
        """The ids of each text, without any that a template would add; bytes that are no UTF-8 are replaced.

        What is written like a special token is text: its ids are those of its characters.
        """
        decoded = [t if isinstance(t, str) else t.decode("utf-8", errors="replace") for t in texts]
        encoded = self._tokenizer.encode_batch_fast(decoded, add_special_tokens=False)
        return [np.array(each.ids, dtype=np.uint32) for each in encoded]

    def file_digest(self) -> str:
        """SHA-256 of the tokenizer.json."""
        return self.digest

    def save(self, folder: Path) -> None:
        """Copy the files, so that a model trained with it can be exported with it."""
        folder.mkdir(parents=True, exist_ok=True)
        home = self._path if self._path.is_dir() else self._path.parent
        shutil.copyfile(home / FILE if self._path.is_dir() else self._path, folder / FILE)
        if self._path.is_dir() and (home / COMPANIONS[0]).is_file():
            for name in COMPANIONS:
                if (home / name).is_file():
                    shutil.copyfile(home / name, folder / name)
        else:
            mask = None if self.mask is None else self._tokenizer.id_to_token(self.mask)
            _write_config(folder, {"eos_token": self._end, **({"mask_token": mask} if mask else {})})

    def _named(self, key: str) -> str | None:
        """A special token by its role, from the files that transformers writes beside the tokenizer."""
        if self._path.is_dir():
            for name in COMPANIONS[:2]:
                value = _object(self._path / name).get(key)
                if value:
                    return str(value["content"] if isinstance(value, dict) else value)
        return None

    def _first_of(self, tokens: Iterable[str]) -> str | None:
        return next((t for t in tokens if self._tokenizer.token_to_id(t) is not None), None)


Tokenizer = ByteTokenizer | FileTokenizer


def load_tokenizer(config: DataConfig) -> Tokenizer:
    """The tokenizer of `data.tokenizer`."""
    if config.tokenizer == "bytes":
        for name in ("end_of_text", "begin_of_text"):
            if getattr(config, name):
                raise ConfigError(
                    f"data.{name} is set, but bytes have no such token: leave it out, or give a tokenizer."
                )
        return ByteTokenizer()
    if is_registered(config.tokenizer):
        raise ConfigError(
            f"data.tokenizer is {config.tokenizer!r}, which only `gaudi3-train fit` fetches: give the folder that "
            f"`gaudi3-train registry fetch {config.tokenizer.removeprefix(PREFIX)} FOLDER` makes."
        )
    try:
        return FileTokenizer(Path(config.tokenizer), config.end_of_text, config.begin_of_text)
    except OSError as error:
        raise ConfigError(
            f"data.tokenizer {config.tokenizer!r} cannot be read ({error.strerror}): give this user the right to."
        ) from None


def train_tokenizer(texts: Iterator[bytes | str], vocabulary: int) -> Any:
    """A byte-level BPE of this many tokens (all 256 bytes among them, so that every text has ids), as a
    `tokenizers.Tokenizer`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|endoftext|>", "<|mask|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    decoded = (t if isinstance(t, str) else t.decode("utf-8", errors="replace") for t in texts)
    tokenizer.train_from_iterator(decoded, trainer)
    return tokenizer


def _object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty where there is no such file.

    A damaged one is refused: without it another token would end the documents than the one that the model knows.
    """
    if not path.exists():
        return {}
    _check_pointer(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is no JSON: copy or download it again.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} holds no JSON object: copy or download it again.")
    return found


def _check_pointer(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if is_pointer(head):
        raise ConfigError(f"{path} is a pointer of Git LFS and not the file: run 'git lfs pull' in its folder.")


def _write_config(folder: Path, tokens: dict[str, Any]) -> None:
    # The class that takes tokenizer.json as it is; a model's own class may rebuild it by its family's rules.
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **tokens}
    (folder / COMPANIONS[0]).write_text(json.dumps(config, indent=1))


def _byte_alphabet() -> list[str]:
    """The character that stands for each byte in byte-level tokenizers: printable Latin-1 ones are themselves."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
