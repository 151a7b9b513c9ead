"""Backups of two clusters under one name: never taken for each other, and refused where nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import belonging
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.belonging import Snapshot
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def listed(*about: str) -> list[Snapshot]:
    """Snapshots, the newest first, each by its cluster and machine."""
    found = []
    for number, each in enumerate(about):
        cluster, _slash, machine = each.partition("/")
        found.append(Snapshot(f"s{number}", f"2026-11-{30 - number}", "mon", "/copy", "", cluster, machine))
    return found


def refusal(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(Refusal) as caught:
        call(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("known", "cluster", "names"),
    [
        (listed("/m1", "/m1"), "", ["s0", "s1"]),
        (listed("b/m2", "a/m1", "/m1", "a/m1"), "a", ["s1", "s3"]),
        # The machine was replaced, and its backups go on.
        (listed("/m2", "/m2", "/m1", "/m1"), "", ["s0", "s1", "s2", "s3"]),
        # What nobody knows the machine of.
        (listed("/m2", "/", "/m1"), "", ["s0", "s1", "s2"]),
        ([], "a", []),
    ],
)
def test_the_newest_of_this_cluster_is_meant(known: list[Snapshot], cluster: str, names: list[str]) -> None:
    assert [each.name for each in belonging.meant(known, cluster, "mon")] == names


@pytest.mark.parametrize(
    ("known", "cluster", "said"),
    [
        (
            listed("b/m2", "a/m1", "/m1"), "",
            "the repository has backups of mon of the clusters a, b: say which is meant by cluster (backup_cluster), "
            "or name a snapshot.",
        ),
        (
            listed("b/m2"), "a",
            "the repository has no backup of mon of the cluster a, but of b: correct cluster (backup_cluster), or name "
            "a snapshot.",
        ),
        (
            listed("/m2", "/m1"), "a",
            "no backup of mon says of which cluster it is: see which one is of a, and name it as snapshot (s0, s1).",
        ),
        (
            listed("/m2", "/m2", "/m1", "/m2"), "",
            "the backups of mon are of two machines in turn, such as s0 and s2: see which one is of yours, and name it "
            "as snapshot.",
        ),
    ],
)  # fmt: skip
def test_what_could_be_another_clusters_is_refused(known: list[Snapshot], cluster: str, said: str) -> None:
    assert refusal(belonging.meant, known, cluster, "mon") == said


def test_of_two_machines_of_one_name_nothing_is_removed() -> None:
    for fine in (listed("/m1", "/m1"), listed("/m2", "/m1"), listed("/m2", "/", "/m1"), []):
        belonging.refuse_two_machines(fine, "mon")
    said = refusal(belonging.refuse_two_machines, listed("/m1", "/m2", "/m1"), "mon")
    assert said.startswith("the backups of mon are of two machines in turn, such as s0 and s1, and none is removed: na")


def test_a_named_snapshot_of_another_cluster_is_refused() -> None:
    (one,) = listed("b/m2")
    assert refusal(belonging.refuse_other, one, "a") == (
        "snapshot s0 is of the cluster b, and cluster is a: correct one of them."
    )
    belonging.refuse_other(one, "b")
    belonging.refuse_other(one, "")


@pytest.mark.parametrize("name", ["a,b", "-a", "a b", "", "hall-2.rack_1"])
def test_a_name_has_no_comma_which_would_part_restics_tags(name: str) -> None:
    if name in ("", "hall-2.rack_1"):
        belonging.check(name)
    else:
        assert refusal(belonging.check, name).startswith(f"cluster is {name!r}: give letters, digits, dots")


def test_a_machine_is_known_by_its_identifier_which_nobody_learns(tmp_path: Path) -> None:
    assert belonging.machine_of(str(tmp_path)) == ""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    found = belonging.machine_of(str(tmp_path))
    assert len(found) == 12 and found not in "0123456789abcdef0123456789abcdef"
