"""What a collector deletes: by its own clock, the oldest first, of who has most, and nothing that is still written."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._logs.retention import File, superfluous

NOW, DAY = 1_000_000.0, 86400.0


def closed(node: str, days: float, size: int = 10) -> File:
    return File(f"{node}@{int(days * 100):04x}-1.journal", size, NOW - days * DAY)


def open_file(node: str, days: float = 0, size: int = 10) -> File:
    return File(f"{node}.journal", size, NOW - days * DAY)


def test_what_is_old_goes_also_of_a_node_that_is_no_more() -> None:
    old, new, gone, here = closed("a", 31), closed("a", 29), open_file("b", 40), open_file("a")
    assert superfluous([new, here, old, gone], NOW, 30 * DAY, 10**9) == [gone.name, old.name]


def test_the_oldest_go_until_the_rest_is_small_enough() -> None:
    files = [closed("a", 1), closed("b", 3), closed("c", 2), open_file("d")]
    assert superfluous(files, NOW, 30 * DAY, 40) == []
    assert superfluous(files, NOW, 30 * DAY, 39) == [files[1].name]
    assert superfluous(files, NOW, 30 * DAY, 20) == [files[1].name, files[2].name]


def test_a_node_that_writes_without_end_loses_its_own_lines() -> None:
    quiet, loud = [closed("a", 20), closed("b", 25)], [closed("c", days) for days in (1, 2, 3, 4)]
    assert superfluous([*quiet, *loud], NOW, 30 * DAY, 45) == [loud[3].name, loud[2].name]
    assert superfluous([*quiet, *loud], NOW, 30 * DAY, 20)[-2:] == [loud[1].name, quiet[1].name], "then all the same"


def test_what_is_still_written_stays_however_large() -> None:
    assert superfluous([open_file("a", size=10**6)], NOW, DAY, 1) == []


def test_a_time_in_the_future_is_not_old_and_foreign_files_stay() -> None:
    assert superfluous([closed("a", -400), File("notes@1-1.txt", 10**9, 0)], NOW, DAY, 10**6) == []
