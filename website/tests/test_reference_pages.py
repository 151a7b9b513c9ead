"""The generated pages say all that the code has: no name is missing, and no row is empty."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.names import OF_PLAYBOOKS, PREFIXES
from gaudi3_scale.config import keys
from website.reference import (
    CALCULATOR,
    alerts,
    commands,
    configuration,
    metrics,
    pages,
    playbooks,
    shelf,
    specs,
    variables,
)
from website.reference.text import ROOT, ansible, table

PAGES = {path: text for path, text in pages().items() if path.endswith(".md") and isinstance(text, str)}


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return [[cell.strip() for cell in row] for row in found]


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_page_has_a_title_a_purpose_and_a_next_step(path: str) -> None:
    text = PAGES[path]
    title = {page: name for page, name, _what in shelf()}[path]
    assert text.startswith(f"# {title}\n\n") and re.sub("```.*?```", "", text, flags=re.DOTALL).count("\n# ") == 0
    assert "for whoever" in text.split("\n\n")[1] or "for whoever" in text.split("\n\n## ")[0]
    assert "\n## Next\n" in text
    assert str(ROOT) not in text and str(Path.home()) not in text


@pytest.mark.parametrize("path", sorted(PAGES))
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(path: str) -> None:
    for block in re.findall(r"(?:^\|.*\n)+", PAGES[path], re.MULTILINE):
        assert len({len(row) for row in rows(block)}) == 1, block[:500]


def test_every_page_is_on_a_shelf_once() -> None:
    named = [path for path, _title, _what in shelf()]
    assert sorted(named) == sorted(PAGES) and CALCULATOR in named and CALCULATOR in named


def test_links_between_generated_pages_have_their_headings() -> None:
    for path, text in PAGES.items():
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", text):
            other = PAGES[f"reference/{target}"] if target else text
            headings = {
                re.sub(r"[^\w -]", "", found).lower().replace(" ", "-").replace("_", "-")
                for found in re.findall(r"^#+ (.+)$", other, re.M)
            }
            assert anchor in headings, (path, target, anchor)


def test_all_variables_are_there_with_their_descriptions() -> None:
    text = variables.page()
    for role in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        entries = yaml.safe_load(role.read_text())["argument_specs"]
        if "main" not in entries:
            continue
        for entry in entries.values():
            for name in entry.get("options") or ():
                assert f"\n| `{name}` | " in text, name
    described = [row for row in rows(text) if row[0].startswith("`")]
    assert not [row for row in described if not row[-1]]


def test_the_variables_of_playbooks_are_those_that_the_collection_knows() -> None:
    assert set(variables.of_playbooks()) == OF_PLAYBOOKS
    assert {each.partition("_")[0] for each in variables.of_playbooks()} == set(PREFIXES)


def test_the_ten_exist_and_are_ten() -> None:
    assert len(set(variables.FIRST)) == 10
    assert set(variables.FIRST) <= set(specs.variables()) | set(variables.of_playbooks())


def test_all_keys_of_a_job_are_there() -> None:
    text = configuration.page()
    shown = {row[0].strip("`") for row in rows(text)}
    sections = {key for key in keys() if any(other.startswith(f"{key}.") for other in keys())}
    assert set(keys()) - sections <= shown
    assert {f"## {each}" for each in sections if "." not in each} <= set(text.splitlines())
    assert not [row for row in rows(text) if len(row) == 4 and not row[3]]


def test_all_commands_are_there_with_a_sentence() -> None:
    every = {each.name: each for each in commands.commands()}
    assert {"gaudi3-train fit", "gaudi3-train doctor", "gaudi3-deploy run", "gaudi3-watch cluster"} <= set(every)
    assert {"gaudi3-simulator up", "gaudi3-benchmark compare"} <= set(every)
    assert not [name for name, each in every.items() if not each.what]
    # Arguments of gaudi3-deploy may be as plain as NAME, which says what it is.
    assert not [
        (name, option.name)
        for name, each in every.items()
        for option in each.options
        if "--" in option.name and not option.what
    ]
    options = {option.name: option for option in every["gaudi3-train tokenizer"].options}
    assert options["`--vocab-size`"].takes == "number, at least 258" and options["`--vocab-size`"].default == "required"
    assert {option.name for option in every["gaudi3-simulator up"].options} >= {"`--nodes`", "`--profile`", "`--like`"}


def test_all_metrics_are_there() -> None:
    text = metrics.page()
    names = [each["name"] for each in metrics.contract()["metrics"]]
    assert [name for name in names if f"| `{name}` |" not in text] == []
    used = {source for each in metrics.contract()["metrics"] for source in each["sources"]}
    assert used == set(metrics.SOURCES)


def test_all_alerts_are_there_and_lead_to_a_runbook() -> None:
    text = alerts.page()
    template = (ROOT / "roles/prometheus/templates/gaudi3.rules.yml.j2").read_text()
    names = re.findall(r"- alert: (\w+)", template)
    linked = dict(re.findall(r"\[(\w+)\]\(\.\./(operate/runbooks/[a-z-]+\.md)\)", text))
    assert set(linked) == set(names) and len(names) > 50
    assert [path for path in linked.values() if not (ROOT / "docs" / path).is_file()] == []
    assert text.count("```promql\n") == len(names)


def test_all_playbooks_are_there_with_what_they_do() -> None:
    found = {each.name: each for each in playbooks.playbooks()}
    assert set(found) == {
        path.stem for path in (ROOT / "playbooks").glob("*.yml") if not path.stem.startswith("check_")
    }
    text = playbooks.page()
    for name in found:
        paragraph = text.split(f"\n## {name}\n\n")[1].split("\n\n")[0]
        assert paragraph and not paragraph.startswith(("|", "```")), name
    assert "ansible-playbook -i mine gaudi3.scale.heal -e health_mode=enforce" in found["heal"].examples
    assert found["drivers"].roles == ("synapseai",) and "gaudi_serial" in found["drivers"].variables


def test_what_is_published_beside_pages_is_json() -> None:
    others = {path: text for path, text in pages().items() if path not in PAGES}
    assert others and all(path.startswith("schemas/") and path.endswith(".schema.json") for path in others)
    assert all(json.loads(text) for text in others.values())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("Sets C(data.source) of O(trainer_config).", "Sets `data.source` of `trainer_config`."),
        (["One of V(a\\)b).", "See P(gaudi3.scale.secrets_dir#lookup)."], "One of `a)b`. See `secrets_dir#lookup`."),
        ("See M(gaudi3.scale.gaudi_train) and <it>.", "See `gaudi3.scale.gaudi_train` and &lt;it>."),
    ],
)
def test_ansibles_markup_becomes_markdown(given: str | list[str], wanted: str) -> None:
    assert ansible(given) == wanted


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert table(("a", "b"), [("x|y", "z")]).splitlines()[2] == "| x\\|y | z |"
    assert table(("a",), []) == ""
