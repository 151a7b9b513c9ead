"""From documents to shards, once; killed at any instant, it goes on after the last complete shard."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.encode import Encoder, open_encoder
from gaudi3_scale.data.mixture import Mixture
from gaudi3_scale.data.part import Part, State, partial_of
from gaudi3_scale.data.shards import FORMAT, TOKENIZER, Corpus, format_of, read_index, width, write_index
from gaudi3_scale.data.sources import open_source
from gaudi3_scale.data.split import prepare_parts
from gaudi3_scale.data.tokenizer import Tokenizer, load_tokenizer
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import lock_file

Log = Callable[[str], None]


def silent(text: str) -> None:
    """For callers without a console."""


def collect(
    config: DataConfig, directory: Path, log: Log = silent, bar: bool = False, context: int | None = None
) -> Corpus:
    """The prepared data of a configuration's one source, made now if the directory does not have it yet.

    `context` is the model's, which the prompts of pairs have to fit into.

    Once there, it is not compared with its source again: a job goes on with the data it began with.
    """
    tokenizer = load_tokenizer(config)
    encoder = open_encoder(config, tokenizer, context)
    folder = directory / key(config, tokenizer, encoder)
    known = _known(folder, tokenizer)
    if known:
        return known
    source = open_source(config, log)
    if format_of(folder) not in (None, FORMAT):
        log(f"the data in {folder} was prepared by an earlier version, in another format: it is prepared again")
    elif format_of(folder) is not None:
        log(f"the data in {folder} is not as it was written: it is prepared again")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if config.parts > 1:
            parts = [Part(config, source, encoder, folder, number) for number in range(config.parts)]
            states = prepare_parts(parts, folder, lambda: _known(folder, tokenizer) is not None, log, bar)
            with _alone(folder):
                return _known(folder, tokenizer) or _finish(config, tokenizer, folder, states or [])
        with _alone(folder):
            known = _known(folder, tokenizer)  # another process may have made it meanwhile
            if known:
                return known
            state = Part(config, source, encoder, folder, None).run(log, bar)
            return _finish(config, tokenizer, folder, [state])
    except OSError as error:
        raise ConfigError(
            f"Preparing data in {folder} failed ({error}): there has to be space, and this user has to be allowed to "
            "read data.source and to write data.directory or output_dir."
        ) from None


def collect_all(
    config: DataConfig, directory: Path, log: Log = silent, bar: bool = False, context: int | None = None
) -> Corpus | Mixture:
    """The prepared data of a configuration: of its one source, or of all that are in its mixture."""
    if not config.mixture:
        return collect(config, directory, log, bar, context)
    parts = tuple(collect(each, directory, log, bar, context) for each in single(config))
    return Mixture(parts, tuple(each.weight for each in config.mixture))


def single(config: DataConfig) -> list[DataConfig]:
    """A configuration for each source of the mixture."""
    return [
        config.model_copy(
            update={
                "mixture": (),
                "source": each.source,
                "format": each.format,
                "field": each.field or config.field,
                "content": each.content or config.content,
            }
        )
        for each in config.mixture
    ]


def _known(folder: Path, tokenizer: Tokenizer) -> Corpus | None:
    """What is there, unless it was prepared for fewer ids than the tokenizer has."""
    known = read_index(folder)
    return known if known is not None and known.vocabulary == tokenizer.vocabulary else None


def key(config: DataConfig, tokenizer: Tokenizer, encoder: Encoder | None = None) -> str:
    """The folder's name: whatever changes the tokens or their files changes it."""
    digest = tokenizer.digest
    settings = [config.source, config.format, config.field, digest, tokenizer.separator, config.shard_tokens]
    more = {
        "content": encoder.digest if encoder is not None else "",
        "begin": tokenizer.begin,
        "parts": config.parts if config.parts > 1 else None,
    }
    settings += [[name, value] for name, value in more.items() if value not in (None, "")]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process prepares; the kernel takes the lock back from a dead one."""
    with lock_file(folder / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _finish(config: DataConfig, tokenizer: Tokenizer, folder: Path, states: list[State]) -> Corpus:
    """Write the index of all parts."""
    shards = tuple(shard for state in states for shard in state.shards)
    if not shards:
        raise ConfigError(f"data.source {config.source!r} has no text in it: give a file or folder that has some.")
    shutil.rmtree(folder / TOKENIZER, ignore_errors=True)
    tokenizer.save(folder / TOKENIZER)
    corpus = Corpus(
        folder=folder,
        source=config.source,
        dtype=width(tokenizer.vocabulary),
        documents=sum(shard.documents for shard in shards),
        vocabulary=tokenizer.vocabulary,
        separator=tokenizer.separator,
        mask=tokenizer.mask,
        unit=tokenizer.unit,
        shards=shards,
    )
    write_index(corpus)
    for partial in folder.glob(partial_of("*")):
        partial.unlink(missing_ok=True)
    (folder / partial_of("")).unlink(missing_ok=True)
    return corpus
