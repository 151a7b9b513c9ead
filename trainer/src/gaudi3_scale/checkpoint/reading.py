"""Tensors out of a checkpoint's files by their bytes alone: nothing is unpickled.

torch.distributed.checkpoint stores each part of a tensor as `torch.save` would: a zip archive, uncompressed, of the
tensor's bytes and a pickle that describes them. The description is not needed, since type and shape are known.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from gaudi3_scale.checkpoint.description import read_description
from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError, Entry

DATA = "/data/0"
BYTE_ORDER = "/byteorder"
HEADER = 30
"""Bytes of a zip entry's own header, before its name."""


class VerifiedReader(FileSystemReader):
    """Reads files that were verified against the manifest; digests tell damage, and nothing here trusts the content."""

    def __init__(self, path: Path, files: Mapping[str, Entry]) -> None:
        """`files` are all of the manifest."""
        super().__init__(path)
        self._folder = path
        self._files = files
        self._parts: dict[tuple[str, torch.Size], tuple[torch.dtype, torch.Size]] = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = read_description(self._folder, self._files)
        for name, about in metadata.state_dict_metadata.items():
            for chunk in getattr(about, "chunks", ()):
                self._parts[name, chunk.offsets] = (about.properties.dtype, chunk.sizes)  # type: ignore[union-attr]
        return metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of the plan into the planner's tensors, one file after the other."""
        by_file: dict[str, list[ReadItem]] = defaultdict(list)
        for item in plan.items:
            if item.type != LoadItemType.TENSOR:
                raise DamagedCheckpointError(f"its .metadata says of {item.storage_index.fqn} that it is no tensor")
            by_file[self.storage_data[item.storage_index].relative_path].append(item)
        for name, items in by_file.items():
            if name not in self._files:
                raise DamagedCheckpointError(f"its .metadata refers to {name!r}, which is no file of it")
            with (self._folder / name).open("rb") as file:
                for item in items:
                    self._read(file, item, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read(self, file: IO[bytes], item: ReadItem, planner: LoadPlanner) -> None:
        index, place = item.storage_index, self.storage_data[item.storage_index]
        assert index.offset is not None
        dtype, sizes = self._parts[index.fqn, index.offset]
        stored = read_stored(file, place.offset, place.length, dtype, sizes)
        part = stored[tuple(slice(o, o + n) for o, n in zip(item.storage_offsets, item.lengths, strict=True))]
        target = planner.resolve_tensor(item).detach()
        if target.size() != part.size():
            raise DamagedCheckpointError(f"{index.fqn} has the size {list(part.size())} there")
        target.copy_(part)
        planner.commit_tensor(item, target)


class _Slice(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, file: IO[bytes], start: int, length: int) -> None:
        self._file, self._start, self._length, self._at = file, start, length, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._at)
        data = self._file.read(max(0, min(len(buffer), self._length - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def read_stored(file: IO[bytes], start: int, length: int, dtype: torch.dtype, sizes: torch.Size) -> torch.Tensor:
    """A contiguous tensor that `torch.save` put at this place of a file; DamagedCheckpointError if it is another."""
    tensor = torch.empty(sizes, dtype=dtype)
    wanted = tensor.nbytes
    try:
        with zipfile.ZipFile(_Slice(file, start, length)) as archive:
            (entry,) = [each for each in archive.infolist() if each.filename.endswith(DATA)]
            orders = [archive.read(each) for each in archive.infolist() if _is_order(each)]
        if entry.compress_type != zipfile.ZIP_STORED or not entry.file_size == entry.compress_size == wanted:
            raise DamagedCheckpointError(f"{entry.file_size} bytes are stored where {wanted} belong")
        if orders != [sys.byteorder.encode()]:
            raise DamagedCheckpointError("it was written by a machine of another byte order")
        file.seek(start + entry.header_offset)
        header = file.read(HEADER)
        begin = entry.header_offset + HEADER + sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        if len(header) != HEADER or begin + wanted > length:
            raise DamagedCheckpointError("a tensor ends outside of its place")
        file.seek(start + begin)
        if wanted and _fill(file, tensor.reshape(-1).view(torch.uint8).numpy().data) != wanted:
            raise DamagedCheckpointError("a tensor's bytes end too early")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, RuntimeError, OSError) as error:
        raise DamagedCheckpointError(f"a tensor's bytes cannot be read ({type(error).__name__})") from None
    return tensor


def _is_order(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.endswith(BYTE_ORDER) and entry.file_size <= 16 and entry.compress_type == zipfile.ZIP_STORED


def _fill(file: IO[bytes], buffer: memoryview) -> int:
    done = 0
    while done < len(buffer):
        got = file.readinto(buffer[done:])  # type: ignore[attr-defined]
        if not got:
            break
        done += got
    return done
