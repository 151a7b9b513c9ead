"""What is on record of the rows, and the table in the documentation.

The record is one file. A row that did what it has to do with the same sources is not run again.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.contract.child import FAILS, NOT_RUN, PASSES, REFUSED, Outcome, Twin
from tests.contract.programs import HERE, ROOT, Row
from tests.suite.proof import commit

RECORD = ROOT / ".cache" / "contract" / "record.json"
PAGE = ROOT / "docs" / "understand" / "contract.md"
PINS = {
    "suite": ("torch.txt", "trainer.txt", "extras.txt"),
    "frameworks": ("torch.txt", "trainer.txt", "contract.txt"),
    "optimum": ("torch.txt", "trainer.txt", "contract-optimum.txt"),
}
TEXT = """\
For whoever asks what the simulator is worth: programs that other people wrote for Gaudi, unmodified, on the simulated
device and the simulated node.

Packages come from the Python package index; repositories are read below
`CONTRACT_SOURCES`, laid out as `OWNER/NAME`, and are no part of this project. A program in Go or Rust is not built: its
commands and calls are taken from its source and made, and what it reads of the answer is looked for. Rows are data:
`tests/contract/programs.yml`. The rows of vllm-gaudi and vllm-fork look up hardware, versions and processors: no model
was served by them.
"""

NEXT = ("", "## Next", "", "- [simulator.md](simulator.md): how the simulator works and is checked.")


@lru_cache
def _digest_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in inside):
            digest.update("/".join(inside).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def key(row: Row, twin: Twin) -> str:
    """Digest of what the outcome of ``row`` depends on."""
    parts = [repr(replace(row, calls="", refused="", fails="", quick=False)), _digest_of(twin.device)]
    kind, target = row.run.split()[:2]
    if kind == "check":
        parts.append(_digest_of(HERE / "checks" / f"{target}.py"))
    if row.stand_ins:
        parts.append(_digest_of(HERE / "stand_ins"))
    parts += [_digest_of(ROOT / "requirements" / name) for name in PINS[row.environment]]
    if row.node:
        parts += [_digest_of(twin.simulator), _digest_of(HERE / "machine.py")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def held() -> dict[str, dict[str, Any]]:
    """What is on record, by row."""
    try:
        return dict(json.loads(RECORD.read_text()))
    except (OSError, ValueError):
        return {}


def note(row: Row, twin: Twin, outcome: Outcome) -> None:
    """Put down what ``row`` did; other runs may write at the same time."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    with (RECORD.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = held()
        rows[row.id] = {
            "key": key(row, twin),
            "result": outcome.result,
            "line": outcome.line,
            "seconds": round(outcome.seconds),
        }
        draft = RECORD.with_suffix(".new")
        draft.write_text(json.dumps(rows, indent=1) + "\n")
        draft.replace(RECORD)


def counts(rows: Sequence[Row], noted: dict[str, dict[str, Any]]) -> Counter[str]:
    """How many rows have which result."""
    return Counter(noted.get(row.id, {}).get("result", NOT_RUN) for row in rows)


def summary(found: Counter[str]) -> str:
    """The counts as a sentence."""
    kinds = (PASSES, FAILS, REFUSED, NOT_RUN)
    words = {PASSES: "pass", FAILS: "fail", REFUSED: "are refused on purpose", NOT_RUN: "were not run"}
    return ", ".join(f"{found[kind]} {words[kind]}" for kind in kinds)


def write_table(rows: Sequence[Row], twin: Twin) -> None:
    """Write `docs/understand/contract.md` of what is on record with the present sources."""
    noted = held()
    fresh = {row.id: noted[row.id] for row in rows if row.id in noted and noted[row.id]["key"] == key(row, twin)}
    today = f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}"
    lines = [
        "# Contract: other people's programs on the simulator",
        "",
        TEXT.strip(),
        "",
        f"Written by `make contract` on {today}, commit {commit()}, with Python {platform.python_version()}:",
        f"of {len(rows)} rows {summary(counts(rows, fresh))}.",
        "",
        "| program | source | call | result | remark |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        found = fresh.get(row.id, {"result": NOT_RUN, "line": row.missing() or "not run with these sources"})
        remark = row.fails if found["result"] == FAILS and row.fails else _plain(found["line"])
        result = f"**{FAILS}**" if found["result"] == FAILS else found["result"]
        cells = (row.program, row.source, row.calls, result, remark)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    PAGE.write_text("\n".join([*lines, *NEXT]) + "\n")


def _plain(line: str) -> str:
    """A line of output without paths of this machine."""
    return line.replace(str(ROOT) + "/", "").replace("`", "'")[:300]
