"""The matrix as data: each cell has a source, each source is used, and no fact stands in two places."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch import release as pytorch
from ansible_collections.gaudi3.scale.plugins.module_utils._release import compat, matrix, need, rules
from ansible_collections.gaudi3.scale.plugins.module_utils._release.compat import FORBIDDEN, Matrix
from ansible_collections.gaudi3.scale.plugins.module_utils._release.matrix import CELLS, SOURCES, UNCONFIRMED
from ansible_collections.gaudi3.scale.plugins.module_utils._release.support_matrix import (
    UNSUPPORTED,
    known_releases,
    support,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import versions as serving


def sources() -> set[str]:
    """Every name in a field ``source`` of the tables, and those that the rules take by name."""
    found: set[str] = set()
    tables: list[Any] = [value for name, value in vars(matrix).items() if name.isupper() and isinstance(value, tuple)]
    for table in tables:
        for row in table:
            if is_dataclass(row):
                named = {each.name for each in fields(row)} & {"source", "page"}
                found |= {getattr(row, name) for name in named}
    found |= {each for line in matrix.LINES for each in line.torch_sources.values()}
    for module in (compat, need, rules):
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        found |= {name for name in SOURCES if f'"{name}"' in text}
    return found


def test_every_cell_has_a_source_that_is_named_and_every_source_a_cell() -> None:
    assert {cell.source for cell in CELLS} <= {*SOURCES, UNCONFIRMED}
    assert sources() - {UNCONFIRMED} == set(SOURCES)


def test_a_source_has_a_title_and_a_date_or_a_document() -> None:
    for said in SOURCES.values():
        assert any(word in said for word in ("20", "page", "dockerfiles", "notes", "docs", "own", "sample")), said


def test_the_other_parts_read_this_very_data() -> None:
    assert serving.PAIRINGS is matrix.PAIRINGS
    assert pytorch.PYTHONS is matrix.PYTHONS
    assert pytorch.FOLDERS is matrix.FOLDERS
    table = Matrix()
    assert list(table.releases) == known_releases()
    for release in table.releases:
        for system in matrix.FOLDERS:
            forbidden = table.goes(release, "system", system).level == FORBIDDEN
            assert forbidden is (support(release, system) == UNSUPPORTED), (release, system)


def test_the_table_has_no_cell_twice() -> None:
    keys = [(cell.release, cell.axis, cell.value) for cell in CELLS]
    assert len(set(keys)) == len(keys)


def test_what_is_known_of_the_newest_releases() -> None:
    table = Matrix()
    assert [cell.value for cell in table.values("1.24.1-482", "vllm")] == ["0.24.0", "0.26.0"]
    assert table.values("1.24.2-481", "torch") == []
    assert table.goes("1.24.2-481", "torch", "2.11.0").level == UNCONFIRMED
    assert table.goes("1.24.1-482", "system", "RedHat 9.4").level == FORBIDDEN
    assert table.pythons("1.24.1-482", "Ubuntu 22.04")[0] == ("3.10",)
    assert table.pythons("1.22.0-740", "Ubuntu 22.04") == (("3.10", "3.11"), SOURCES["dockerfiles"])
    assert table.pythons("1.23.0-695", "Ubuntu 22.04") == (("3.10", "3.11"), UNCONFIRMED)
