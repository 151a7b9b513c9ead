"""What a template writes for another program is made by a serializer, never put between quotation marks by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = sorted([*ROOT.glob("roles/*/templates/*"), *ROOT.glob("playbooks/templates/*")])
NAMES = [str(path.relative_to(ROOT)) for path in TEMPLATES]
#: Filters that make a value of the other program's language, or let nothing through that it could mistake.
SERIALIZERS = ("to_json", "to_nice_yaml", "arguments_line", "ini_text", "comment", "int", "float")
#: Templates in which values stand bare, and why nothing can come of that.
BARE = {
    "roles/node_health/templates/gaudi-node-health.service.j2": "paths and numbers of the role's own arguments",
    "roles/node_health/templates/gaudi-node-health.timer.j2": "a time span of the role's own arguments",
    "roles/synapseai/templates/gaudi3-scale-ports.service.j2": "a path and a number of the role's own arguments",
    "roles/synapseai/templates/gaudi3-scale-logs.conf.j2": "constant folders and a number of the role's own arguments",
    "roles/firewall/templates/gaudi3-scale-firewall.service.j2": "paths of the role's own arguments",
    "roles/hpu_exporter/templates/gaudi-hpu-exporter.service.j2": "addresses of single hosts alone; the rest are own",
    "roles/watch/templates/gaudi3-watch.service.j2": "the preflight takes a path of plain letters",
    "roles/grafana/templates/grafana.sources.j2": "the preflight takes one address of the web and 40 digits",
    "roles/monitoring_service/templates/certificates.prom.j2": "a number of seconds, counted here",
    "playbooks/templates/summary.j2": "for people, read by no program",
}


#: A line end of the rules' macro, between the marks.
MACRO = '[[ "\\n" ]]'


def body(path: Path) -> str:
    """A template without the line that says which marks its values have."""
    return re.sub(r"^#jinja2:.*\n", "", path.read_text())


@pytest.mark.parametrize("path", TEMPLATES, ids=NAMES)
def test_no_value_stands_between_quotation_marks(path: Path) -> None:
    if path.name == "summary.j2":
        return
    # A whole number may end a sentence. In the rules, Prometheus has templates of its own between braces.
    opening, closing = (r"\[\[", r"\]\]") if body(path) != path.read_text() else (r"\{\{", r"\}\}")
    quoted = rf"[\"']\s*{opening}|{closing}[\"']"
    assert not re.search(quoted, body(path).replace(MACRO, "").replace('| int ]]"', "")), "quoted by hand"


@pytest.mark.parametrize("path", TEMPLATES, ids=NAMES)
def test_every_value_goes_through_a_serializer(path: Path) -> None:
    text = path.read_text()
    marks = r"\[\[-?(.*?)\]\]" if "variable_start_string" in text.split("\n")[0] else r"\{\{(.*?)\}\}"
    text = text.partition("\n")[2] if "variable_start_string" in text.split("\n")[0] else text
    values = [value.strip() for value in re.findall(marks, text, re.DOTALL)]
    bare = [
        value for value in values if not re.search(rf"\|\s*(?:gaudi3\.scale\.)?(?:{'|'.join(SERIALIZERS)})\b", value)
    ]
    bare = [
        value
        for value in bare
        if not re.fullmatch(r'"\\n"|ansible_managed|links\("[a-z-]+", "[a-z]+"(?:, "")?\)', value)
    ]
    assert bool(bare) == (str(path.relative_to(ROOT)) in BARE), bare


def test_no_exception_is_left_over() -> None:
    assert set(BARE) <= set(NAMES)
