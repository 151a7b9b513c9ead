"""What keeps a job from running under another launcher than systemd, as far as launchers have it in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gaudi3_scale.config import Config

OF_DEVICES = ("HABANA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES", "HL_VISIBLE_DEVICES", "HLS_MODULE_ID")
"""Set by what gives a job its cards; with others it would get other jobs' cards."""
MOST_NODES = 65533
"""More than a cluster has; Slurm counts in 16 bits, and Kubernetes in 32."""
LAUNCHER_SECONDS = 5
"""Seconds of stop_timeout that the launcher keeps for itself, as under systemd."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"TOKEN|PASSW|SECRET|CREDENTIAL|(API|ACCESS|PRIVATE|AUTH)_?KEY", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def variable(name: str, gives_cards: str, secret: str) -> Iterator[str]:
    """What is wrong with a variable of `environment`; the texts say who sets the cards', and where a secret goes."""
    if not _VARIABLE.fullmatch(name):
        yield f"environment has {name!r}, but a variable's name has letters, digits and '_', and no digit first."
    elif name in OF_DEVICES:
        yield f"environment has {name}, which {gives_cards} sets: take it out."
    elif name == "TORCH_ELASTIC_SHUTDOWN_TIMEOUT":
        yield f"environment has {name}, which follows from stop_timeout: set that."
    elif _SECRET.search(name):
        yield f"environment has {name}, which looks like a secret, and {secret}."


def leaving(config: Config, stop_timeout: int, launcher: str) -> Iterator[str]:
    """What is wrong with how the job is to leave."""
    seconds = stop_timeout - LAUNCHER_SECONDS
    if config.interruption.grace > seconds:
        yield (
            f"interruption.grace is {config.interruption.grace:g} s, and stop_timeout leaves the processes "
            f"{seconds} s: raise stop_timeout, or leave grace out."
        )
    if config.cost.on_budget == "stop":
        yield (
            f"cost.on_budget is stop, which ends the job with exit code 75, and {launcher} has such a job start again "
            "and again: set it to alert."
        )


def open_secrets(config: Config, sentence: str) -> Iterator[str]:
    """The values with a password in an address; `sentence` says who would see it and where it goes instead."""
    for key, value in _texts(config.model_dump(mode="json"), ""):
        if _PASSWORD.search(value):
            yield f"{key} has a password in its address, and {sentence}."


def read_by(config: Config) -> dict[str, str]:
    """The files and folders that the job reads, by their keys; other values name shapes, data sets or nothing."""
    data, metrics = config.data, config.metrics
    found: dict[str, object] = {
        "model.name": config.model.name if "/" in config.model.name else None,
        "data.source": data.source,
        **{f"data.mixture.{number}.source": each.source for number, each in enumerate(data.mixture)},
        "data.tokenizer": data.tokenizer if data.tokenizer != "bytes" else None,
        "checkpoint.signing_key_file": config.checkpoint.signing_key_file,
        "metrics.certificate": metrics.certificate,
        "metrics.key": metrics.key,
        "metrics.client_authority": metrics.client_authority,
    }
    texts = {key: str(value) for key, value in found.items() if value}
    return {key: text for key, text in texts.items() if text != "stdlib" and not text.startswith("hf:")}


def written_by(config: Config) -> dict[str, str]:
    """The files and folders that the job writes, by their keys."""
    data, target = config.data, config.checkpoint.target
    found: Mapping[str, object] = {
        "output_dir": config.output_dir,
        "data.directory": data.directory,
        "checkpoint.target": None if target is None or target.startswith("s3://") else target,
        "interruption.file": config.interruption.file,
    }
    return {key: str(place) for key, place in found.items() if place is not None}


def _texts(value: object, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _texts(each, f"{key}.{number}")
    elif isinstance(value, str):
        yield key, value
