"""torch.distributed.checkpoint's file storage, with digests taken while writing and nothing unpickled blindly."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta

from gaudi3_scale.checkpoint.manifest import STATE, DamagedCheckpointError, Entry

CHUNK = 8 * 2**20


class HashingFile(io.IOBase):
    """A new file that is hashed while it is written, so that it need not be read again."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=2**20)
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, data: Any) -> int:
        """Append; bytes or anything with the buffer protocol."""
        written = self._file.write(data)
        self._digest.update(data)
        self._size += written
        return written

    def tell(self) -> int:
        """Bytes so far."""
        return self._size

    def writable(self) -> bool:
        """Yes."""
        return True

    def flush(self) -> None:
        """Hand everything to the operating system."""
        if not self._file.closed:
            self._file.flush()

    def fileno(self) -> int:
        """For fsync, so flushed."""
        self._file.flush()
        return self._file.fileno()

    def close(self) -> None:
        """No more is written."""
        self._file.close()
        super().close()

    def finish(self) -> Entry:
        """Make the content durable and close; what the manifest says of it."""
        os.fsync(self.fileno())
        self.close()
        return self.entry

    @property
    def entry(self) -> Entry:
        """What the manifest says of it."""
        return Entry(self._size, self._digest.hexdigest())


class _HashingFileSystem(FileSystem):
    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Generator[io.IOBase, None, None]:
        """A new file, entered under its name once it is complete."""
        if mode != "wb":
            with super().create_stream(path, mode) as stream:
                yield stream
            return
        file = HashingFile(Path(path))
        try:
            yield file
        finally:
            file.close()
        self.entries[Path(path).name] = file.entry

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Rename the file and its entry."""
        super().rename(path, new_path)
        self.entries[Path(new_path).name] = self.entries.pop(Path(path).name)


class HashingWriter(FileSystemWriter):
    """Writes a rank's tensors into one durable file of a directory that is being built."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, sync_files=True, thread_count=1, per_thread_copy_ahead=0)
        self.fs: _HashingFileSystem = _HashingFileSystem()

    @property
    def entries(self) -> dict[str, Entry]:
        """The files this process wrote."""
        return self.fs.entries

    def storage_meta(self) -> StorageMeta | None:
        """Nothing: a path and a random name would make equal checkpoints differ from node to node."""
        return None


class VerifiedReader(FileSystemReader):
    """Reads files that were verified against the manifest; what is unpickled may only be descriptions of tensors."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Which tensor lies where."""
        with (Path(self.path) / ".metadata").open("rb") as file:
            metadata: Metadata = _Unpickler(file).load()
        return metadata


class _Unpickler(pickle.Unpickler):
    """Digests tell damage, not malice: a checkpoint from a bucket must not be able to run code."""

    MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")
    NAMES = (
        ("torch", "Size"),
        ("torch.serialization", "_get_layout"),
        ("torch.distributed.checkpoint.planner", "_MEM_FORMAT_ENCODING"),
        ("collections", "OrderedDict"),
        ("builtins", "set"),
    )

    def find_class(self, module: str, name: str) -> Any:
        """Classes of DCP's own description, dtypes and sizes."""
        if (module, name) == ("builtins", "getattr"):
            return _member  # how Python 3.11.0 to 3.11.3 pickle a member of an enumeration
        found = None
        if module in self.MODULES or (module, name) in self.NAMES:
            found = super().find_class(module, name)
        elif module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if found is None or (module in self.MODULES and not isinstance(found, type)):
            raise DamagedCheckpointError(f"its .metadata refers to {module}.{name}, which describes no tensor")
        return found


def _member(kind: Any, name: str) -> Any:
    """A member of an enumeration that `find_class` let through, and nothing else."""
    if not (isinstance(kind, type) and issubclass(kind, Enum) and name in kind.__members__):
        raise DamagedCheckpointError(f"its .metadata refers to {name} of {kind!r}, which describes no tensor")
    return kind[name]


def write_state(path: Path, state: dict[str, Any]) -> Entry:
    """Everything that is no tensor of model or optimizer, of types that `torch.load(weights_only=True)` accepts."""
    file = HashingFile(path / STATE)
    try:
        torch.save(state, cast("IO[bytes]", file))
        return file.finish()
    finally:
        file.close()
