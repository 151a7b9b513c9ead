"""Manifests signed with a key that whoever may write to the target does not have.

A manifest holds the digest of every file, so that its signature covers the whole checkpoint.
"""

from __future__ import annotations

import hashlib
import hmac
import stat
from dataclasses import replace
from pathlib import Path

from gaudi3_scale.checkpoint.manifest import Manifest
from gaudi3_scale.errors import ConfigError

SHORTEST = 32
"""Bytes of a key."""


class Signer:
    """HMAC-SHA256 with one key, the same on all nodes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def load(cls, path: Path) -> Signer:
        """The key in a file that its owner alone can read."""
        advice = "make one with `head -c 32 /dev/urandom > FILE; chmod 600 FILE`, and give every node the same."
        try:
            with path.open("rb") as file:
                mode = path.stat().st_mode
                key = file.read(4096)
        except OSError as error:
            raise ConfigError(
                f"checkpoint.signing_key_file {path} cannot be read ({error.strerror}): {advice}"
            ) from None
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise ConfigError(
                f"checkpoint.signing_key_file {path} has the mode {stat.S_IMODE(mode):04o}, so that others can read "
                "the key: chmod 600 it."
            )
        if len(key) < SHORTEST:
            raise ConfigError(
                f"checkpoint.signing_key_file {path} has {len(key)} bytes, which are fewer than {SHORTEST}: {advice}"
            )
        return cls(key)

    def sign(self, manifest: Manifest) -> Manifest:
        """The manifest with its signature."""
        return replace(manifest, signature=self._of(manifest))

    def good(self, manifest: Manifest) -> bool:
        """Is it as it was signed? Which of the files lie here is no part of that."""
        return manifest.signature is not None and hmac.compare_digest(manifest.signature, self._of(manifest))

    def _of(self, manifest: Manifest) -> str:
        text = replace(manifest, here=(), signature=None).dump()
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
