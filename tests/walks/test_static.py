"""Every code block has a language and a walk or a mark, the marks are few and get fewer, and data parses."""

from __future__ import annotations

import configparser
import io
import json
import re
import subprocess
from typing import Any

import hcl2
import pytest
import yaml
from ansible.parsing.yaml.loader import AnsibleLoader

from tests.walks.markdown import COMMANDS, DATA, OTHER, ROOT, RUN, Block, all_blocks, blocks
from tests.walks.plan import KINDS, PLAN, read

PAGES = all_blocks()
PLANNED = read()
WALKED = [block for found in PAGES.values() for block in found if block.language in RUN]
AT_MOST = 0.05
"""The share of the blocks that may carry the mark."""


def faults(block: Block) -> list[str]:
    """What is wrong with a block by itself."""
    if block.is_indented:
        return ["it is a block by its indent: put it between ``` lines, with its language"]
    if not block.language:
        return ["its fence names no language"]
    found = []
    if block.language not in RUN | DATA | OTHER:
        found.append(f"{block.language} is no language of these documents")
    if block.language == COMMANDS and re.search(r"^\s*\$ ", block.code, re.M):
        found.append("it has a prompt: put the commands alone, and the output into a block of `text`")
    if block.reason and block.language not in RUN:
        found.append("it carries the mark, though nothing runs it")
    return found


def data_fault(language: str, code: str) -> str:
    """Why data does not parse; empty where it does."""
    try:
        if language == "yaml":
            list(_documents(code))
        elif language == "json":
            json.loads(code)
        elif language == "ini":
            configparser.ConfigParser(interpolation=None, strict=False).read_string(code)
        elif language == "hcl":
            hcl2.load(io.StringIO(code))
    except (yaml.YAMLError, ValueError, configparser.Error) as error:
        return str(error)
    except Exception as error:  # the parser of HCL has exceptions of its own
        return f"{type(error).__name__}: {error}"
    return ""


def _documents(code: str) -> list[Any]:
    loader = AnsibleLoader(code)
    found = []
    while loader.check_data():
        found.append(loader.get_data())
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_data_parses(page: str) -> None:
    wrong = [f"{block.place}: {fault}" for block in PAGES[page] for fault in faults(block)]
    wrong += [
        f"{block.place}: {fault}"
        for block in PAGES[page]
        if block.language in DATA and (fault := data_fault(block.language, block.code))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", sorted({block.page for block in WALKED}))
def test_every_block_belongs_to_a_walk_or_is_marked(page: str) -> None:
    walk = PLANNED.walk(page)
    assert walk.kind in KINDS, f"no pattern of {PLAN.name} fits {page}"
    found = PAGES[page]
    assert walk.unused(found) == [], f"{PLAN.name} says of {page} what it has not"
    assert [name for name in walk.files.values() if not (ROOT / name).exists()] == []
    for test in walk.elsewhere.values():
        assert page.rpartition("/")[2] in (ROOT / test).read_text(), f"{test} does not read {page}"


def test_the_plan_names_pages_that_are_there() -> None:
    assert [page for page in PLANNED.pages if page not in PAGES] == []


MARKED = [f"{block.place}: {block.reason}" for block in WALKED if block.reason]


def test_the_plan_has_the_number_of_marked_blocks() -> None:
    assert len(WALKED) > 10
    assert len(MARKED) == PLANNED.marked_at_most, f"{PLAN.name}: marked_at_most has to be {len(MARKED)}"


def test_few_blocks_are_marked() -> None:
    share = len(MARKED) / len(WALKED)
    assert share <= AT_MOST, f"{share:.1%} of the blocks are not run:\n" + "\n".join(MARKED)


def test_marks_do_not_get_more() -> None:
    """The number of every earlier version of the plan, where there is a history."""
    name = str(PLAN.relative_to(ROOT))
    log = subprocess.run(["git", "log", "--format=%h", "--", name], cwd=ROOT, capture_output=True, text=True)
    earlier = []
    for commit in log.stdout.split():
        shown = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True)
        found = re.search(r"^marked_at_most: (\d+)$", shown.stdout, re.M)
        earlier += [int(found[1])] if found else []
    assert all(PLANNED.marked_at_most <= number for number in earlier)


@pytest.mark.parametrize(
    ("markdown", "fault"),
    [
        ("    indented\n", "by its indent"),
        ("```\nx\n```\n", "names no language"),
        ("```console\nx\n```\n", "is no language"),
        ("```sh\n$ make test\n```\n", "has a prompt"),
        ("<!-- not run: why -->\n```yaml\na: 1\n```\n", "though nothing runs it"),
    ],
)
def test_a_block_that_is_wrong_is_found(markdown: str, fault: str) -> None:
    (block,) = blocks(markdown)
    assert fault in faults(block)[0]


@pytest.mark.parametrize(
    ("language", "code"),
    [("yaml", "a: [1"), ("yaml", "a: 1\n b: 2"), ("json", "{a: 1}"), ("ini", "a = 1"), ("hcl", 'variable "x" {')],
)
def test_data_that_does_not_parse_is_found(language: str, code: str) -> None:
    assert data_fault(language, code)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("yaml", "a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  61\n"),
        ("yaml", "a: 1\n---\n- b\n"),
        ("json", "[1]"),
        ("ini", "[defaults]\na = %(b)\n"),
        ("hcl", 'variable "x" {\n  default = 1\n}\n'),
    ],
)
def test_data_that_parses_is_left_alone(language: str, code: str) -> None:
    assert data_fault(language, code) == ""
