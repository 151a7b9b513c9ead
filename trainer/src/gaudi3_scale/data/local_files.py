"""The files of a source on this node. What cannot be read stops the job: half a corpus trains without an error, too."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaudi3_scale.data.forms import is_companion
from gaudi3_scale.errors import ConfigError

SPLITS = "dataset_dict.json"
SAVED = "state.json"
HUB = ("blobs", "refs", "snapshots")


def local_files(root: Path) -> tuple[list[Path], list[Path]]:
    """The regular files of a file or folder, hidden ones left out, and those that hold none of the records beside
    them, such as README.md: where the others are texts, these are texts as well. Among them are the tables that
    `datasets` has made of a saved dataset and not saved (its cache), and those of an earlier one in the same folder.

    Raises:
        ConfigError: There is no such path, or some of it cannot be read.
    """
    kind = _kind(root, f"data.source is {str(root)!r}, which")
    if not stat.S_ISDIR(kind):
        if not stat.S_ISREG(kind):  # a pipe keeps its reader waiting, and is read only once
            raise ConfigError(
                f"data.source is {str(root)!r}, which is no regular file: write what it gives into one, and give that."
            )
        return [root], []
    found = list(_walk(root, set()))
    if all((root / name).is_dir() for name in HUB):
        raise ConfigError(
            f"{root} is what the Hugging Face hub's cache has of a repository, with each file under two names: set "
            "data.source to one of the folders in its snapshots."
        )
    for path in found:
        if path.name == SPLITS:
            raise ConfigError(
                f"{path.parent} holds several splits ({SPLITS}): set data.source to the folder of one of them."
            )
    others = {other for path in found if path.name == SAVED for other in _not_saved(path, found)}
    companions = [path for path in found if is_companion(path) or path in others]
    return [path for path in found if path not in set(companions)], companions


def _walk(folder: Path, above: set[tuple[int, int]]) -> Iterator[Path]:
    """Regular files below a folder, links followed."""
    try:
        status = folder.stat()
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise _closed(folder, error) from None
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise ConfigError(f"{folder} is a link to a folder that it lies in: delete the link.")
    for path in paths:
        if path.name.startswith("."):
            continue
        kind = _kind(path, str(path))
        if stat.S_ISDIR(kind):
            yield from _walk(path, above | {here})
        elif stat.S_ISREG(kind):
            yield path
        else:
            raise ConfigError(f"{path} is no regular file: take it out of data.source.")


def _kind(path: Path, what: str) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise ConfigError(
                f"{path} is a link to {str(path.readlink())!r}, which is not on this node: delete it or mend it."
            ) from None
        raise ConfigError(
            f"{what} does not exist on this node: give stdlib, the path of a file or folder of text, JSONL or Parquet, "
            "or hf:NAME."
        ) from None
    except OSError as error:
        raise _closed(path, error) from None


def without_links(root: Path, paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """The paths, each file once, and the links below ``root`` to files that have another of these names, too.

    A file with two names of its own stays twice, as both are meant.
    """
    top = root.resolve()
    links = {path for path in paths if path.resolve() != top / path.relative_to(root)}
    names: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda each: each in links):
        names.setdefault(path.resolve(), path)
    kept = set(names.values())
    return [path for path in paths if path in kept], [path for path in paths if path not in kept]


def _closed(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read ({error.strerror}): give this user the right to, or take it out of data.source."
    )


def _not_saved(path: Path, found: list[Path]) -> list[Path]:
    """The tables beside a state of `datasets` that are none of what it has saved; what it has saved must be there."""
    try:
        state: Any = json.loads(path.read_bytes())
        named = [str(each["filename"]) for each in state["_data_files"]]
        chosen = state.get("_indices_data_files")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []  # the state of something else
    missing = sorted(name for name in named if not (path.parent / name).is_file())
    if missing:
        raise ConfigError(
            f"{path.parent} was saved with {missing[0]}"
            + (f" and {len(missing) - 1} more, which are" if missing[1:] else ", which is")
            + " not there: copy the folder again."
        )
    if chosen:
        raise ConfigError(
            f"{path.parent} holds a selection of rows, which is not read: call flatten_indices(), and save it again."
        )
    beside = [each for each in found if each.parent == path.parent and each.suffix == ".arrow"]
    return [each for each in beside if each.name not in named]
