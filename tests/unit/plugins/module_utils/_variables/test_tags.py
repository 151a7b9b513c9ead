"""A tag that no task has is refused, as the run would leave out what was meant, or do what should be left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.tags import TAGS, tags_problem

ROOT = Path(__file__).resolve().parents[5]
SITE = str(ROOT / "playbooks/site.yml")


def tags_of(node: Any) -> Iterator[str]:
    """All tags in a file of tasks or plays."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "tags":
                yield from [value] if isinstance(value, str) else value
            else:
                yield from tags_of(value)
    elif isinstance(node, list):
        for each in node:
            yield from tags_of(each)


def test_the_tags_are_those_of_all_tasks_and_plays() -> None:
    files = [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = {tag for path in files for tag in tags_of(yaml.load(path.read_text(), Loader=loader))}
    assert sorted(found - {"always"}) == list(TAGS)


@pytest.mark.parametrize(
    ("option", "tag", "end"),
    [
        ("tags", "tunning", "did you mean tuning?"),
        ("skip_tags", "trian", "did you mean train?"),
        (
            "tags",
            "rubbish",
            "give a phase, which is one of preflight, tuning, drivers, fabric, firewall, pytorch, monitoring, train, "
            "verify, or a tag of a role.",
        ),
    ],
)
def test_a_tag_that_nothing_has_is_refused(option: str, tag: str, end: str) -> None:
    told = tags_problem({option: ["drivers", tag], "args": ["gaudi3.scale.site"]}, str(ROOT))
    assert told == f"--{option.replace('_', '-')} has {tag}, which is no tag of this collection: {end}"
    assert tags_problem({option: [tag], "args": [SITE]}, str(ROOT)) == told
    assert tags_problem({option: [tag], "args": [str(ROOT / "site.yml")]}, str(ROOT)) == told


def test_ansibles_own_tags_and_those_of_other_playbooks_pass() -> None:
    for tags in ([], ["all"], ["never", "always", "tagged", "untagged"], ["drivers", "trainer_job"]):
        assert tags_problem({"tags": tags, "skip_tags": tags, "args": [SITE]}, str(ROOT)) == ""
    assert tags_problem({"tags": ["mine"], "args": ["/srv/mine.yml"]}, str(ROOT)) == ""
    assert tags_problem({"tags": ["mine"], "args": [SITE, "/srv/mine.yml"]}, str(ROOT)) == ""
    assert tags_problem({}, str(ROOT)) == ""
