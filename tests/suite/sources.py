"""Where each source file is tested: by a test of its own name, or in one that the list names.

python -m tests.suite.sources TEST SOURCE ...     put these sources into the list, as tested there
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/suite/tested_in.yml"
#: Sources, and the folders that have their tests.
AREAS = {
    "plugins": ["tests/unit/plugins"],
    "trainer/src": ["trainer/tests"],
    "doctor/src": ["doctor/tests"],
    "migration/src": ["migration/tests"],
    "watch/src": ["watch/tests"],
    "website": ["website/tests"],
    "benchmark-tool/src": ["benchmark-tool/tests"],
    "deploy/src": ["deploy/tests"],
    "simulator/src": ["simulator/tests"],
    "containers": ["tests/containers"],
}
HEAD = "---\n# Sources without a test of their own name, by the test that shows most of what they do.\n"


def sources(root: Path = ROOT) -> list[str]:
    """All source files, without links, and without those that only name a package or a program, or only document."""
    return [
        str(path.relative_to(root))
        for area in AREAS
        for path in sorted((root / area).rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py")
        and "doc_fragments" not in path.parts
        and "tests" not in path.relative_to(root / area).parts
        and not path.is_symlink()
    ]


def own_test(source: str, root: Path = ROOT) -> Path | None:
    """The test with the name of a source file; of the plugins' code in the folder of its family."""
    area = next(each for each in AREAS if source.startswith(f"{each}/"))
    name = f"test_{Path(source).stem.lstrip('_')}.py"
    if source.startswith("plugins/"):
        path = root / "tests/unit" / Path(source).parent / name
        return path if path.exists() else None
    return next((path for folder in AREAS[area] for path in sorted((root / folder).rglob(name))), None)


def listed(path: Path = LIST) -> dict[str, str]:
    """The test of each source file that the list has; ValueError where one is listed twice."""
    found: dict[str, str] = {}
    for test, names in (yaml.safe_load(path.read_text()) or {}).items():
        for source in names:
            if source in found:
                raise ValueError(f"{source} is listed with {found[source]} and with {test}: keep one.")
            found[source] = test
    return found


def faults(found: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """What is wrong with the list, a sentence each."""
    known = sources(root)
    wrong = [f"{each} has no test of its name and is not in the list." for each in known if not
             (own_test(each, root) or each in found)]  # fmt: skip
    wrong += [f"{each} has a test of its name: take it off the list." for each in found if each in known
              and own_test(each, root)]  # fmt: skip
    wrong += [f"{each} is listed and is not there." for each in found if each not in known]
    return wrong + [f"{test} is listed and is not there." for test in set(found.values()) if not (root / test).exists()]


def write(found: Mapping[str, str], path: Path = LIST) -> None:
    """Write the list anew, in order."""
    tests: dict[str, list[str]] = {}
    for source in sorted(found):
        tests.setdefault(found[source], []).append(source)
    lines = [line for test in sorted(tests) for line in (f"{test}:", *(f"  - {each}" for each in tests[test]))]
    path.write_text(HEAD + "\n".join(lines) + "\n")


def main(test: str, names: Iterable[str]) -> None:
    """Put sources into the list."""
    write({**listed(), **dict.fromkeys(names, test)})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
