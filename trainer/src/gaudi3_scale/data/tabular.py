"""Documents in columns: Parquet files through pyarrow, and datasets of the Hugging Face hub through `datasets`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.piece import Cursor, Piece
from gaudi3_scale.errors import ConfigError

BATCH_ROWS = 1000


def parquet_rows(path: Path, field: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Row, number of rows of the file and text of each row from `start` on that has a text; row groups before it are
    not read."""
    parquet = _need("pyarrow.parquet", "A Parquet file")
    try:
        file = parquet.ParquetFile(path)
    except _need("pyarrow", "A Parquet file").ArrowInvalid:
        raise ConfigError(f"{path} is not a Parquet file: mend or delete it, or set data.format.") from None
    with file:
        _check_column(str(path), file.schema_arrow.names, field)
        rows, first = file.metadata.num_rows, 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if first + count > start:
                row = first
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[field]):
                    for text in batch.column(0).to_pylist():
                        if row >= start and text is not None:
                            yield row, rows, _string(text, f"Row {row} of {path}", field)
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
        _check_column(config.source, self._rows.column_names, config.field)
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
        field, row = self._config.field, cursor[0]
        if row == self.size:  # the library skips no further than to the last row
            return
        for batch in self._rows.select_columns([field]).skip(row).iter(BATCH_ROWS):
            for text in batch[field]:
                row += 1
                if text is not None:
                    yield Piece(_string(text, f"Row {row - 1} of {self._config.source}", field), True, [row, 0, 0])


def _check_column(where: str, names: list[str], field: str) -> None:
    if field not in names:
        raise ConfigError(
            f"{where} has no column {field!r}, only {', '.join(map(repr, names))}: set data.field to the one with the "
            "text."
        )


def _string(value: Any, where: str, field: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where} has a {type(value).__name__} in {field!r}: it has to be a string.")
    return value


def _need(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ConfigError(
            f"{what} is read with the package {package}, which is not installed: pip install 'gaudi3-scale[data]'."
        ) from None
