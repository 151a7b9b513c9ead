"""Every source file has a test that a stranger finds: by its name, or in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite import sources


def test_every_source_file_has_its_test_by_name_or_in_the_list() -> None:
    assert sources.faults(sources.listed()) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "plugins/module_utils/_jobs/unit.py", "plugins/module_utils/_jobs/log.py", "deploy/src/gaudi3_deploy/lock.py",
        "tests/unit/plugins/module_utils/_jobs/test_unit.py", "tests/unit/plugins/modules/test_log.py",
        "deploy/tests/commands/test_lock.py", "trainer/src/gaudi3_scale/__init__.py",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_a_source_without_a_test_is_found(tree: Path) -> None:
    log, unit = "plugins/module_utils/_jobs/log.py", "plugins/module_utils/_jobs/unit.py"
    # A test of that name in another folder is none of a family's.
    assert sources.faults({}, tree) == [f"{log} has no test of its name and is not in the list."]
    assert sources.faults({log: "tests/unit/plugins/module_utils/_jobs/test_unit.py"}, tree) == []
    assert sources.faults({log: "tests/gone.py"}, tree) == ["tests/gone.py is listed and is not there."]
    listed = {log: "deploy/tests/commands/test_lock.py", unit: "deploy/tests/commands/test_lock.py", "old.py": "x"}
    assert sources.faults(listed, tree) == [
        f"{unit} has a test of its name: take it off the list.",
        "old.py is listed and is not there.",
        "x is listed and is not there.",
    ]


def test_a_source_is_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "list.yml"
    sources.write({"b.py": "two.py", "a.py": "one.py", "c.py": "one.py"}, path)
    assert path.read_text() == f"{sources.HEAD}one.py:\n  - a.py\n  - c.py\ntwo.py:\n  - b.py\n"
    assert sources.listed(path) == {"a.py": "one.py", "b.py": "two.py", "c.py": "one.py"}
    path.write_text("one.py: [a.py]\ntwo.py: [a.py]\n")
    with pytest.raises(ValueError, match=r"^a\.py is listed with one\.py and with two\.py: keep one\.$"):
        sources.listed(path)
