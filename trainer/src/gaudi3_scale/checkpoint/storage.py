"""torch.distributed.checkpoint's file storage, with digests taken while writing. `reading` is its counterpart."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.checkpoint.metadata import StorageMeta

from gaudi3_scale.checkpoint.manifest import STATE, Entry
from gaudi3_scale.checkpoint.state import pack

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
        return self._size

    def writable(self) -> bool:
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


def write_state(path: Path, state: dict[str, Any]) -> Entry:
    """Everything that is no tensor of model or optimizer; TrainerError if it holds an object that is not stored."""
    with HashingFile(path / STATE) as file:
        file.write(pack(state))
        return file.finish()
