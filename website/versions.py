"""Let the sites of several releases know each other: they lie side by side, each in a folder named after its version.

python -m website.versions FOLDER        after a release's -docs.zip was unpacked there as FOLDER/VERSION
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

FIRST_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<title>gaudi3.scale</title>
<a href="{newest}/index.html">gaudi3.scale {newest}</a>
"""


def order(version: str) -> tuple[list[int], bool]:
    """What versions are sorted by: numbers as numbers, and a release after its candidates."""
    numbers, _sign, candidate = version.partition("-")
    return [int(each) for each in numbers.split(".")], not candidate


def write(folder: Path) -> list[str]:
    """Write the list of versions into each of them, the newest first, and a first page that leads to the newest."""
    names = [path.parent.name for path in folder.glob("*/index.html")]
    versions = sorted((name for name in names if re.fullmatch(r"\d+(\.\d+)+(-.+)?", name)), key=order, reverse=True)
    for version in versions:
        (folder / version / "versions.json").write_text(json.dumps(versions) + "\n")
    if versions:
        (folder / "index.html").write_text(FIRST_PAGE.format(newest=versions[0]))
    return versions


def main() -> int:
    if len(sys.argv) != 2 or not (found := write(Path(sys.argv[1]))):
        print("Give the folder in which each version of the site has a folder of its own.", file=sys.stderr)
        return 2
    print(", ".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
