"""Documents in columns: Parquet and Arrow files through pyarrow, the Hugging Face hub's through `datasets`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.compressed import need
from gaudi3_scale.data.conversation import MEDIA
from gaudi3_scale.data.piece import Cursor, Piece
from gaudi3_scale.data.records import present, text_of_row
from gaudi3_scale.errors import ConfigError

BATCH_ROWS = 1000
ARROW_FILE = b"ARROW1"
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def parquet_rows(path: Path, config: DataConfig, start: int) -> Iterator[tuple[int, int, str]]:
    """Row, number of rows of the file and text of each row from `start` on; row groups before it are not read."""
    parquet, pa = need("pyarrow.parquet", "A Parquet file"), need("pyarrow", "A Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            names = _columns(str(path), file.schema_arrow.names, config)
            rows, first = file.metadata.num_rows, 0
            for group in range(file.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                if first + count > start:
                    row = first
                    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                        columns = [batch.column(name).to_pylist() for name in names]
                        for values in zip(*columns, strict=True):
                            if row >= start:
                                found = dict(zip(names, values, strict=True))
                                yield row, rows, text_of_row(found, f"Row {row} of {path}", config)
                            row += 1
                first += count
    except (pa.ArrowException, ValueError, OSError) as error:  # ValueError: a text that is no UTF-8
        raise ConfigError(f"{path} is not a whole Parquet file ({_reason(error)}): copy or make it again.") from None


def arrow_rows(path: Path, config: DataConfig, start: int) -> Iterator[tuple[int, int, str]]:
    """Row, about how many bytes end with it, and text of each row from `start` on, of an Arrow file or stream, such as
    `datasets` saves."""
    pa = need("pyarrow", "An Arrow file")
    names: list[str] = []
    row = 0
    try:
        with pa.memory_map(str(path)) as file:
            for end, batch in _batches(pa, file):
                batch.validate(full=True)  # or what a flipped bit points to is read from anywhere
                names = names or _columns(str(path), batch.schema.names, config)
                if row + batch.num_rows > start:
                    columns = [batch.column(name).to_pylist() for name in names]
                    for number, values in enumerate(zip(*columns, strict=True), row):
                        if number >= start:
                            found = dict(zip(names, values, strict=True))
                            yield number, end, text_of_row(found, f"Row {number} of {path}", config)
                row += batch.num_rows
    except (pa.ArrowException, ValueError, OSError, EOFError) as error:
        raise ConfigError(f"{path} is not a whole Arrow file ({_reason(error)}): copy or make it again.") from None


def _batches(pa: Any, file: Any) -> Iterator[tuple[int, Any]]:
    """The batches of rows of an Arrow file or of a stream, each with the bytes that end with it."""
    size = file.size()
    if file.read(len(ARROW_FILE)) == ARROW_FILE:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield size * (number + 1) // reader.num_record_batches, reader.get_batch(number)
        return
    # A stream that was cut off between two batches reads like a whole one.
    file.seek(max(0, size - len(END_OF_STREAM)))
    if file.read(len(END_OF_STREAM)) != END_OF_STREAM:
        raise EOFError("its end is missing")
    file.seek(0)
    for batch in pa.ipc.open_stream(file):
        yield file.tell(), batch


class HubSource:
    """`hf:NAME[:CONFIG][:SPLIT]`; NAME may be a local folder. The cursor counts rows."""

    def __init__(self, config: DataConfig) -> None:
        datasets = need("datasets", "A Hugging Face dataset")
        name, *rest = config.source.removeprefix("hf:").split(":")
        if not name or len(rest) > 2:
            raise ConfigError(
                f"data.source is {config.source!r}: write hf:NAME, hf:NAME:SPLIT or hf:NAME:CONFIG:SPLIT."
            )
        split = rest[-1] if rest else "train"
        try:
            self._rows: Any = datasets.load_dataset(name, rest[0] if len(rest) == 2 else None, split=split)
        except ConnectionError:
            raise ConfigError(
                f"data.source is {config.source!r}, and the Hugging Face hub cannot be reached (or HF_HUB_OFFLINE is "
                "set) while the dataset is not in the local cache: download it where there is a network and copy the "
                "cache (HF_HOME) here, or give the path of its files."
            ) from None
        except (ValueError, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ConfigError(
                f"data.source {config.source!r} cannot be loaded ({reason}): check the name, configuration and split."
            ) from None
        self._names = _columns(config.source, self._rows.column_names, config)
        self._config = config
        self.size = len(self._rows)

    def fingerprint(self) -> str:
        """The library's own, and the number of rows."""
        return f"{self._rows._fingerprint}-{self.size}"

    def done(self, cursor: Cursor) -> int:
        """Rows before the cursor."""
        return cursor[0]

    def pieces(self, cursor: Cursor) -> Iterator[Piece]:
        """Rows from the cursor on."""
        names, row = self._names, cursor[0]
        if row == self.size:  # the library skips no further than to the last row
            return
        for batch in self._batches(row):
            for values in zip(*(batch[name] for name in names), strict=True):
                row += 1
                found = dict(zip(names, values, strict=True))
                text = text_of_row(found, f"Row {row - 1} of {self._config.source}", self._config)
                yield Piece(text, True, [row, 0, 0])

    def _batches(self, row: int) -> Iterator[dict[str, list[Any]]]:
        """The columns of the rows from one on; pictures and sounds as they are stored, and not decoded."""
        stored = [name for name in self._names if name in MEDIA]
        read = self._rows.select_columns([name for name in self._names if name not in MEDIA]).skip(row)
        if not stored:
            yield from read.iter(BATCH_ROWS)
            return
        media = self._rows.select_columns(stored).with_format("arrow").skip(row)
        for batch, table in zip(read.iter(BATCH_ROWS), media.iter(BATCH_ROWS), strict=True):
            yield batch | table.to_pydict()

    def borders(self, parts: int) -> list[Cursor]:
        """Where each of this many parts begins, and where the last one ends."""
        return [[self.size * part // parts, 0, 0] for part in range(parts + 1)]


def _reason(error: Exception) -> str:
    """The first line of what a library says, printable and short."""
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in first)[:200].rstrip(".")


def _columns(where: str, names: list[str], config: DataConfig) -> list[str]:
    found = present(config, names, where, "column", "set data.field to the one with the text")
    for name in found:
        if names.count(name) > 1:
            raise ConfigError(f"{where} has {names.count(name)} columns {name!r}: write it again with one of them.")
    return found
