"""Compressed files as streams of bytes: gzip, bzip2, xz and zstd, each read to its very end or refused.

The readers of Python's library end a bzip2 or xz file without an error where something that is no further stream
follows a whole one, and so lose the rest of a damaged file.
"""

from __future__ import annotations

import bz2
import importlib
import io
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install

CHUNK_BYTES = 2**16
MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9]"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    # pzstd puts a frame that is skipped before the first one.
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd"}
PADDED = {"gzip", "xz"}
"""Formats whose files may end with zero bytes."""
ZSTD_WINDOW_BYTES = 2**31
"""The largest that zstd --long=31 makes, as large corpora have."""


def need(module: str, what: str) -> Any:
    """A module that `what` is read with; ConfigError where its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ConfigError(
            f"{what} is read with the package {package}, which is not installed: {how_to_install('data')}."
        ) from None


def _zstd() -> Any:
    zstandard = need("zstandard", "A file that zstd compressed")
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()


STREAMS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": _zstd,
}
"""What decompresses one stream of a file, which may hold several."""


def compression_of(path: Path, head: bytes, by_content: bool = True) -> str | None:
    """How a file is compressed, by its first bytes and its suffix; None for not at all.

    Args:
        head: The file's first bytes, at least 6 unless the file is shorter.
        by_content: Whether a file without a suffix of compression may be compressed.

    Raises:
        ConfigError: Its suffix promises another form than it has.
    """
    named = SUFFIXES.get(path.suffix.lower())
    found = next((name for name, magic in MAGIC.items() if magic.match(head)), None)
    if named is not None and found != named:
        what = f"compressed by {found}" if found else "empty" if not head else f"not compressed by {named}"
        raise ConfigError(
            f"{path} is {what}, and its name ends with {path.suffix}: download it again, or give it the name of what "
            "it is."
        )
    return found if named or by_content else None


def open_bytes(path: Path, compression: str | None) -> IO[bytes]:
    """A buffered file of bytes, decompressed where it is compressed; it has `peek`, `read` and `readline`."""
    if compression is None:
        return path.open("rb")
    return cast("IO[bytes]", io.BufferedReader(_Decompressed(path, compression), CHUNK_BYTES))


def skip(file: IO[bytes], size: int) -> None:
    """Go forward to a position of the decompressed bytes."""
    if isinstance(getattr(file, "raw", None), _Decompressed):
        while size > 0 and (data := file.read(min(size, CHUNK_BYTES))):
            size -= len(data)
    else:
        file.seek(size)


class _Decompressed(io.RawIOBase):
    """The streams of a file, one after the other."""

    def __init__(self, path: Path, compression: str) -> None:
        self._path = path
        self._name = compression
        self._stream: Any = STREAMS[compression]()
        self._begun = False
        self._file = path.open("rb")
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._file.read(CHUNK_BYTES)
            self._rest = b""
            if not data:
                if self._begun and not self._stream.eof:
                    raise ConfigError(f"{self._path} is cut off after {self._read():,} bytes: download it again.")
                return 0
            self._ready = memoryview(self._decompress(data))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _decompress(self, data: bytes) -> bytes:
        if self._stream.eof:  # of the stream before
            if self._name in PADDED and not data.strip(b"\0"):
                return b""
            self._stream = STREAMS[self._name]()
            if self._name in PADDED:
                data = data.lstrip(b"\0")
        self._begun = True
        try:
            made: bytes = self._stream.decompress(data)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
            raise self._damaged(error) from None
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise self._damaged(error) from None
        self._rest = self._stream.unused_data if self._stream.eof else b""
        return made

    def _damaged(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"{self._path} is damaged within its first {self._read():,} bytes ({str(error).rstrip('.')}): download it "
            "again."
        )

    def _read(self) -> int:
        return self._file.tell()
