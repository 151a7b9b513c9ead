"""A walk runs a page's blocks in one shell, stops where a reader would, and finds what a page has wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.walks.markdown import blocks
from tests.walks.places import Place
from tests.walks.plan import Plan, Walk, read
from tests.walks.walk import Outcome, run

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def walked(page: str, folder: Path, **given: Any) -> Outcome:
    """The outcome of a page in an empty folder."""
    place = folder / "place"
    place.mkdir()
    walk = Walk("page.md", "checkout", **given)
    return run(walk, blocks(page, "page.md"), Place(place, folder, {**ENVIRONMENT}), folder / "notes")


def test_blocks_share_a_shell_a_namespace_and_a_folder(tmp_path: Path) -> None:
    page = """
```sh
word=kept
cd "$(mktemp -d ./XXXX)" && echo "$word" > file && cd ..
```
```python
import pathlib
(found,) = pathlib.Path().glob("*/file")
```
```python
print(found.read_text(), end="")
pathlib.Path("by-python").write_text("made")
```
```sh
echo "$word" ; cat by-python
```
```text
kept
made
```
"""
    outcome = walked(page, tmp_path)
    assert outcome.faults == []
    assert outcome.row() == {"blocks": 4, "run": 4, "compared": 1, "elsewhere": "", "marked": ""}
    assert outcome.printed[2] == ("page.md:10", "kept\n")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```sh\necho before\nfalse\necho after\n```", "page.md:1 failed"),
        ("```python\nprint('before', flush=True)\n1 / 0\n```", "ZeroDivisionError"),
        ("```sh\necho before; no-such-command\n```", "no-such-command"),
        ("```sh\necho before; exit 0\n```", "page.md:1 failed"),
        ("```sh\necho before\n```\n```text\nafter\n```", "the page shows: after"),
    ],
)
def test_a_block_that_does_not_hold_is_told(block: str, said: str, tmp_path: Path) -> None:
    outcome = walked(block, tmp_path)
    (fault,) = outcome.faults
    assert said in fault and "before" in fault


def test_nothing_is_run_after_a_failure(tmp_path: Path) -> None:
    outcome = walked("```sh\nfalse\n```\n```sh\ntouch ran\n```\n", tmp_path)
    assert len(outcome.faults) == 1 and not (tmp_path / "place/ran").exists()


def test_a_marked_block_is_not_run_and_counted(tmp_path: Path) -> None:
    outcome = walked("<!-- not run: of no use -->\n```sh\ntouch ran\n```\n```sh\ntrue\n```", tmp_path)
    assert outcome.row() == {"blocks": 2, "run": 1, "compared": 0, "elsewhere": "", "marked": "1: of no use"}
    assert not (tmp_path / "place/ran").exists()


def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    begun = time.monotonic()
    outcome = walked("```sh\nsleep 77 & echo $! > child\nsleep 77\n```", tmp_path, minutes=0.01)
    assert "not ended after 1 s" in outcome.faults[0] and time.monotonic() - begun < 20
    child = Path(f"/proc/{(tmp_path / 'place/child').read_text().strip()}/stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_commands_may_fail_go_on_and_be_followed_by_hand(tmp_path: Path) -> None:
    page = """
```sh
mkdir NODE   # the reader's
ls nowhere 2>/dev/null \\
  NODE
sleep 60
```
"""
    outcome = walked(
        page,
        tmp_path,
        replace={"NODE": "gaudi-1"},
        exits={"ls nowhere 2>/dev/null gaudi-1": 2},
        after={"mkdir gaudi-1": "touch gaudi-1/by-hand"},
        background={"sleep 60": "test -d gaudi-1"},
        before="echo unseen",
    )
    assert outcome.faults == []
    assert (tmp_path / "place/gaudi-1/by-hand").exists()
    assert "by-hand" in outcome.printed[0][1] and "unseen" not in outcome.printed[0][1]


def test_a_command_that_has_to_fail_and_does_not_is_told(tmp_path: Path) -> None:
    assert walked("```sh\ntrue\n```", tmp_path, exits={"true": 2}).faults


def test_a_block_of_another_test_is_left_to_it_and_counted(tmp_path: Path) -> None:
    page = "```sh\ntouch ran   # now\n```\n```sh\ntrue\n```"
    outcome = walked(page, tmp_path, elsewhere={"touch ran": "tests/x.py"})
    assert outcome.row() == {"blocks": 2, "run": 1, "compared": 0, "elsewhere": "1: tests/x.py", "marked": ""}
    assert not (tmp_path / "place/ran").exists()


def test_what_the_plan_says_of_no_command_is_found() -> None:
    walk = Walk(
        "page.md",
        "checkout",
        exits={"a": 1},
        after={"b": "c"},
        background={"d": "e"},
        replace={"F": "g"},
        elsewhere={"h": "i"},
    )
    assert walk.unused(blocks("```sh\nd   # there\n```")) == ["a", "b", "h", "F"]


def test_a_page_has_the_machine_of_its_entry_or_of_the_first_pattern() -> None:
    plan = Plan({"docs/*": "cluster", "*": "checkout"}, {"cluster": {"A": "b"}}, 0, {"docs/x.md": {"kind": "trainer"}})
    assert [plan.walk(name).kind for name in ("docs/x.md", "docs/use/y.md", "README.md")] == [
        "trainer",
        "cluster",
        "checkout",
    ]
    assert plan.walk("docs/use/y.md").replaced("A page") == "b page"


def test_the_plan_is_read() -> None:
    assert read().walk("docs/use/plan.md").kind == "trainer"
