"""Documents in columns: Parquet files through pyarrow, and datasets of the Hugging Face hub through `datasets`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.piece import Cursor, Piece
from gaudi3_scale.data.records import fields, text_of
from gaudi3_scale.errors import ConfigError

BATCH_ROWS = 1000


def parquet_rows(path: Path, config: DataConfig, start: int) -> Iterator[tuple[int, int, str]]:
    """Row, number of rows of the file and text of each row from `start` on that has a text; row groups before it are
    not read."""
    parquet = _need("pyarrow.parquet", "A Parquet file")
    try:
        file = parquet.ParquetFile(path)
    except _need("pyarrow", "A Parquet file").ArrowInvalid:
        raise ConfigError(f"{path} is not a Parquet file: mend or delete it, or set data.format.") from None
    with file:
        names = fields(config)
        _check_columns(str(path), file.schema_arrow.names, names)
        rows, first = file.metadata.num_rows, 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if first + count > start:
                row = first
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                    columns = [batch.column(name).to_pylist() for name in names]
                    for values in zip(*columns, strict=True):
                        if row >= start and values[0] is not None:
                            yield row, rows, text_of(values, f"Row {row} of {path}", config)
                        row += 1
            first += count


class HubSource:
    """`hf:NAME[:CONFIG][:SPLIT]`; NAME may be a local folder. The cursor counts rows."""

    def __init__(self, config: DataConfig) -> None:
        datasets = _need("datasets", "A Hugging Face dataset")
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
        _check_columns(config.source, self._rows.column_names, fields(config))
        self._config = config
        self.size = len(self._rows)

    def fingerprint(self) -> str:
        """The library's own, and the number of rows."""
        return f"{self._rows._fingerprint}-{self.size}"

    def done(self, cursor: Cursor) -> int:
        """Rows before the cursor."""
        return cursor[0]

    def pieces(self, cursor: Cursor) -> Iterator[Piece]:
        """Rows from the cursor on that have a text."""
        names, row = fields(self._config), cursor[0]
        if row == self.size:  # the library skips no further than to the last row
            return
        for batch in self._rows.select_columns(names).skip(row).iter(BATCH_ROWS):
            for values in zip(*(batch[name] for name in names), strict=True):
                row += 1
                if values[0] is not None:
                    text = text_of(values, f"Row {row - 1} of {self._config.source}", self._config)
                    yield Piece(text, True, [row, 0, 0])

    def borders(self, parts: int) -> list[Cursor]:
        """Where each of so many parts begins, and where the last one ends."""
        return [[self.size * part // parts, 0, 0] for part in range(parts + 1)]


def _check_columns(where: str, names: list[str], wanted: list[str]) -> None:
    for field in wanted:
        if field not in names:
            raise ConfigError(
                f"{where} has no column {field!r}, only {', '.join(map(repr, names))}: set data.field to the one with "
                "the text."
            )


def _need(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ConfigError(
            f"{what} is read with the package {package}, which is not installed: pip install 'gaudi3-scale[data]'."
        ) from None
