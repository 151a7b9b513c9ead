"""The first import of torch, which loads the installed device plugins and fails where one cannot be loaded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    from gaudi3_scale.config import Config

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


@contextlib.contextmanager
def without_plugins() -> Iterator[None]:
    """Import torch in here for what needs no device."""
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        yield
    finally:
        del os.environ[AUTOLOAD]
        if before is not None:
            os.environ[AUTOLOAD] = before


def refuse_known_bad() -> None:
    """Raise ConfigError where this Python would import a release that is known to do harm; nothing is imported."""
    from gaudi3_doctor import known_bad

    sentence = known_bad.complaint(known_bad.own_versions())
    if sentence:
        raise ConfigError(sentence)


def import_torch(device: str, otherwise: str) -> None:
    """Import it with the plugins, unless it is for processors alone (`device` is cpu).

    Raises ConfigError where a plugin cannot be loaded, whose last words are `otherwise`: what to do without one. So it
    does where a release is installed that is known to do harm.
    """
    refuse_known_bad()
    if device == "cpu":
        os.environ.setdefault(AUTOLOAD, "0")
    try:
        import torch  # noqa: F401  (for its effect)
    except RuntimeError as error:
        if "backend extension" not in str(error) or error.__cause__ is None:
            raise
        cause = error.__cause__
        reason = (str(cause).strip() or "no message").splitlines()[0]
        raise ConfigError(
            f"torch cannot load the plugin of this node's cards ({type(cause).__name__}: {reason}): repair the "
            f"installation of habana-torch-plugin, or {otherwise}."
        ) from None


def import_torch_for(config: Config) -> None:
    """Import it for a job; where that fails, leave a status.json that says so."""
    try:
        import_torch(config.device, "set device to cpu to train on the node's processors")
    except ConfigError as failure:
        if os.environ.get("LOCAL_RANK", "0") == "0":
            _say_failed(config, str(failure))
        raise


def _say_failed(config: Config, error: str) -> None:
    from gaudi3_scale.status import FILE, Progress, StatusFile

    size = int(os.environ.get("WORLD_SIZE", "1"))
    samples = config.train.first_batch(size)
    progress = Progress(config.train.max_steps, size, config.device, config.model.sequence_length, samples)
    with contextlib.suppress(OSError):  # what cannot be written is said on stderr all the same
        config.output_dir.mkdir(parents=True, exist_ok=True)
        StatusFile(config.output_dir / FILE).write("failed", progress, error)
