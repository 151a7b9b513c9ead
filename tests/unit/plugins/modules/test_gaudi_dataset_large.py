"""Sets of the size that real ones have, in sparse files: killed at random instants, gone on with, equal at the end."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._data import copy, index
from ansible_collections.gaudi3.scale.plugins.module_utils._data.source import Folder
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_dataset
from tests.suite.proof import Proof

KEY = "755fdfaaf01f"
#: Files, bytes of each, and bytes from one page that is not empty to the next.
SHAPES = {"64 MB": (4, 16 * 2**20, 4 * 2**20), "10 GB": (10, 10**9, 128 * 2**20)}
PROOF = Proof("large-sets", {"size": list(SHAPES)}, sample=["64 MB"])


def make(folder: Path, count: int, size: int, step: int) -> None:
    """A set of files that have the same bytes, on the disk once."""
    folder.mkdir(parents=True)
    first, draw = folder / "shard-00000.bin", random.Random(PROOF.seed)
    with first.open("wb") as file:
        for place in range(0, size - 4096, step):
            file.seek(place)
            file.write(draw.randbytes(4096))
        file.truncate(size)
    found = hashlib.sha256()
    with first.open("rb") as file:
        for block in iter(lambda: file.read(2**22), b""):
            found.update(block)
    starts, shards = bytes(8), []
    for number in range(count):
        name = f"shard-{number:05}"
        if number:
            (folder / f"{name}.bin").hardlink_to(first)
        (folder / f"{name}.starts").write_bytes(starts)
        told = {"file": f"{name}.bin", "tokens": size, "documents": 1, "sha256": found.hexdigest()}
        shards.append({**told, "starts_sha256": hashlib.sha256(starts).hexdigest()})
    (folder / "index.json").write_text(json.dumps({"format": 2, "dtype": "uint8", "shards": shards}))


def come(draft: Path) -> int:
    """Bytes that a copy has so far."""
    total = 0
    for each in draft.glob("*.bin*"):
        # A file may get its name meanwhile.
        with contextlib.suppress(FileNotFoundError):
            total += each.stat().st_size
    return total


@pytest.mark.parametrize("shape", PROOF.parameters(SHAPES))
def test_a_set_that_is_killed_at_random_instants_is_equal(
    shape: tuple[int, int, int], run_module: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = request.node.callspec.id
    PROOF.skip_if_held(case)
    count, size, _step = shape
    source, local = tmp_path / "mnt" / KEY, tmp_path / "local"
    make(source, *shape)
    local.mkdir()
    text, draw = (source / "index.json").read_bytes(), random.Random(PROOF.seed)
    files = index.read(text, "index.json")
    draft, had = local / f".{KEY}.part", []
    for part in sorted(draw.random() * 0.9 for _each in range(4)):
        if not (child := os.fork()):
            copy.copy(Folder(str(source)), str(local), KEY, text, files, copy.begun(str(local), KEY, files))
            os._exit(0)
        while come(draft) < part * count * size and not os.waitpid(child, os.WNOHANG)[0]:
            time.sleep(0.002)
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except (ProcessLookupError, ChildProcessError):
            break  # It was whole before.
        had.append(sum(each.stat().st_size for each in draft.glob("*.bin")))
    given = {"source": str(source), "path": str(local)}
    done = run_module(gaudi_dataset, **given)
    # Whole files of the killed ones are not copied again.
    assert had == sorted(had) and done["copied"] <= count * (size + 8) - max(had, default=0)
    assert run_module(gaudi_dataset, verify=True, **given)["changed"] is False
    assert not draft.exists() and len(list((local / KEY).glob("*.bin"))) == count
    used = sum(each.stat().st_blocks for each in (local / KEY).iterdir()) * 512
    assert used <= count * size + 2**20  # and what the file system needs to find it
    PROOF.note(case, {"killed with": ", ".join(f"{each / 1e6:.0f} MB" for each in had)})
