"""`make contract`: run the rows of `programs.yml` one after another and write `docs/understand/contract.md`.

A row that did what it has to do with the same sources is not run again. What a row prints goes into
`.cache/contract/output/ROW.txt`.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from pathlib import Path

from tests.contract import child, record
from tests.contract.programs import ROOT, rows

OUTPUT = ROOT / ".cache" / "contract" / "output"


def main() -> int:
    """Run what is asked for; exit code 1 where a row did not do what it has to do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="ids of rows, * allowed; all when none is given")
    parser.add_argument("--device", type=Path, default=child.Twin().device, help="folder of the built device")
    parser.add_argument("--simulator", type=Path, default=child.Twin().simulator, help="source of the simulated node")
    parser.add_argument("--again", action="store_true", help="run what held too")
    parser.add_argument("--no-record", action="store_true", help="leave record and table as they are")
    options = parser.parse_args()
    twin = child.Twin(options.device.resolve(), options.simulator.resolve())
    every = rows()
    chosen = [row for row in every if not options.rows or any(fnmatch.fnmatch(row.id, name) for name in options.rows)]
    if not chosen:
        parser.error("no row has such an id")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    noted = record.held()
    missed: list[str] = []
    started = time.monotonic()
    for number, row in enumerate(chosen, 1):
        head = f"[{number}/{len(chosen)} {time.monotonic() - started:5.0f} s] {row.id}"
        before = noted.get(row.id, {})
        expected = child.REFUSED if row.refused else child.PASSES
        if not options.again and before.get("result") == expected and before["key"] == record.key(row, twin):
            print(f"{head}: {expected}, as before", flush=True)
            continue
        print(f"{head} ...", end="", flush=True)
        outcome = child.run(row, twin)
        (OUTPUT / f"{row.id}.txt").write_text(outcome.output)
        if not options.no_record:
            record.note(row, twin, outcome)
        if outcome.result == child.FAILS or (outcome.result != child.NOT_RUN and not outcome.is_expected(row)):
            missed.append(row.id)
        print(f" {outcome.result} in {outcome.seconds:.0f} s{': ' if outcome.line else ''}{outcome.line}", flush=True)
    if not options.no_record:
        record.write_table(every, twin)
        print(
            f"{len(every)} rows: {record.summary(record.counts(every, record.held()))}; see docs/understand/contract.md"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
