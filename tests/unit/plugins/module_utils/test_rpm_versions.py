"""Versions are ordered as rpm orders them."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._rpm_versions import compare_rpm

RPM = """
1.0 = 1.0; 1.0 < 2.0; 2.0 < 2.0.1; 2.0.1 < 2.0.1a; 5.5p1 < 5.5p2; 5.5p1 < 5.5p10; 10xyz < 10.1xyz; xyz10 < xyz10.1;
xyz.4 < 8; 5.5p2 < 5.6p1; 6.0 < 6.0.rc1; 10a1 < 10b2; 7.1 < 7.1.2; 20101121 < 20101122; 2_0 = 2.0; a+ = a_; 1.05 = 1.5;
1.0~rc1 < 1.0; 1.0~rc1~git123 < 1.0~rc1; 1.0 < 1.0^; 1.0^git1 < 1.0^git2; 1.0^git1 < 1.01; 1.0^20160101 < 1.0.1;
1.0~rc1 < 1.0~rc1^git1; 1.0^git1~pre < 1.0^git1; 2.0-1 < 1:1.0-1; 1.0-1 < 1.0-2; 1.0 = 1.0-2; 0:1.0-1 = 1.0-1
"""


@pytest.mark.parametrize("row", [each.strip() for each in RPM.split(";")])
def test_they_are_ordered_as_its_own_table_says(row: str) -> None:
    left, sign, right = row.split()
    wanted = 1 if sign == "<" else 0
    assert [compare_rpm(*each) for each in ((left, right), (right, left))] == [-wanted, wanted]


@pytest.mark.parametrize(
    ("left", "right"), [("1.2", f"1.1{'0' * 5000}"), ("1.0", "x:1.0"), (f"{'9' * 5000}:1", f"1{'0' * 5000}:0")]
)
def test_what_a_repository_may_say_is_ordered_whatever_it_is(left: str, right: str) -> None:
    assert [compare_rpm(*each) for each in ((left, right), (right, left))] == [-1, 1]
