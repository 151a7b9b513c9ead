"""The blocks of every page are run, in their order: `make proof-docs`, of which `make test` has a sample."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.suite.proof import SEED, Proof
from tests.walks.markdown import ROOT, all_blocks
from tests.walks.places import cluster
from tests.walks.plan import CHEAP, KINDS, Walk, read
from tests.walks.walk import go

PLAN = read()
PAGES = {page: found for page, found in all_blocks().items() if any(block.is_run for block in found)}
WALKS = {page: PLAN.walk(page) for page in PAGES}
STRATA = {
    kind: sorted((page for page, walk in WALKS.items() if walk.kind == kind), key=lambda page: WALKS[page].is_last)
    for kind in KINDS
}
CASES = [page for pages in STRATA.values() for page in pages]


def drawn() -> list[str]:
    """A page of each cheap machine."""
    draw = random.Random(f"docs-{SEED}")
    short = [[page for page in STRATA[kind] if not WALKS[page].is_long] for kind in CHEAP]
    return [draw.choice(pages) for pages in short if pages]


def own(page: str) -> str:
    """What makes the walk of one page another one: the page, and how it is walked."""
    return f"{(ROOT / page).read_text(encoding='utf-8')}\n{WALKS[page]}"


PROOF = Proof("docs", STRATA, sample=drawn() or ["none"], own=own)
TEXT = """
Each row is a page of the documents. Its blocks of `sh` and `python` are run in their order, in one shell and one
Python, in a copy of the checkout; `compared` is how many are followed by an output, which is compared with what came.
`on` is the machine: `tests/walks/walks.yml` says what each one has. Nodes are simulated and clouds are played by
stand-ins.
`elsewhere` is how many blocks another proof takes from the page and runs, and `marked` how many carry the mark that
they are not run, with the reasons. A row stands until its page changes; `commit` is where it was run, and the oldest
of them is that of the table.
"""


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The simulated cluster that all pages with nodes share."""
    with cluster(tmp_path_factory.mktemp("cluster") / "log"):
        yield


@pytest.mark.parametrize("walk", PROOF.parameters({page: WALKS[page] for page in CASES}))
def test_the_blocks_of_a_page_do_what_it_says(walk: Walk, request: pytest.FixtureRequest) -> None:
    PROOF.skip_if_held(walk.page)
    if walk.kind == "cluster":
        request.getfixturevalue("nodes")
    outcome = go(walk, PAGES[walk.page])
    if outcome.faults:
        PROOF.failed(walk.page)
    assert outcome.faults == []
    PROOF.note(walk.page, {"on": walk.kind, **outcome.row()})
    PROOF.write_table("The documents, executed", TEXT, ["on", "blocks", "run", "compared", "elsewhere", "marked"])


def test_the_sample_is_of_cheap_machines() -> None:
    assert all(WALKS[page].kind in CHEAP and not WALKS[page].is_long for page in drawn())
    assert (ROOT / "tests/walks/walks.yml").is_file()
