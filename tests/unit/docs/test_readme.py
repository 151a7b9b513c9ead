"""What README.md, the demo's page and the first cluster's say of the project is what the project does."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._progress.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._release import support_matrix
from gaudi3_simulator import podman

from ..playbooks.jinja import render
from .documents import ROOT, blocks

README = (ROOT / "README.md").read_text()
DEMO = (ROOT / "docs/start/demo.md").read_text()
CLUSTER = (ROOT / "docs/start/first-cluster.md").read_text()
COMPATIBILITY = (ROOT / "docs/develop/compatibility.md").read_text()
SITE: list[dict[str, Any]] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
FIRST_SCREEN = 32
"""Lines of the source that lead from the name to both commands."""
WORDS = {"README.md": 900, "docs/README.md": 250, "docs/operate/refusals.md": 3000, "CONTRIBUTING.md": 900}
"""How many words these may have, so that they stay what somebody reads."""


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    start = page.index(f"| {heading} |")
    lines = page[start:].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def roles_of(playbook: str) -> set[str]:
    """Roles that a phase's playbook runs."""
    text = (ROOT / "playbooks" / playbook).read_text()
    return set(re.findall(r"(?:role|name): gaudi3\.scale\.(\w+)", text))


def test_the_first_screen_has_a_sentence_a_picture_and_both_commands() -> None:
    screen = "\n".join(README.splitlines()[:FIRST_SCREEN])
    assert "(docs/start/demo.svg)" in screen
    shown = [line for block in blocks(screen) for line in block.splitlines()]
    assert [line for line in shown if line.startswith(("make ", "ansible-galaxy ")) or line.endswith(".site")] == [
        "make demo",
        "ansible-galaxy collection install gaudi3-scale-0.1.0.tar.gz",
        "ansible-playbook -i mine gaudi3.scale.site",
    ]


def test_the_readme_says_what_is_not_known_and_where_to_go() -> None:
    _before, _, known = README.partition("\n## What was seen on hardware\n")
    assert "docs/understand/hardware-status.md" in known and "gaudi3-train doctor" in known
    assert "Nobody has run it on a Gaudi yet" in known.split("\n## ")[0]
    for wanted in ("docs/start/demo.md", "docs/start/first-cluster.md", "docs/clouds/README.md", "trainer/README.md"):
        assert f"({wanted})" in known


@pytest.mark.parametrize("name", WORDS)
def test_a_page_stays_short(name: str) -> None:
    assert len((ROOT / name).read_text().split()) <= WORDS[name]


def minors(text: str) -> list[tuple[int, ...]]:
    """The versions of a range."""
    return [tuple(map(int, each.split("."))) for each in re.findall(r"\d+\.\d+", text)]


def test_the_versions_are_those_that_are_accepted() -> None:
    """What stands on the first screen in the place of badges, and in the policy."""
    (line,) = (line for line in README.splitlines() if line.startswith("Licence Apache-2.0 · "))
    licence, *ranges = line.split(" · ")
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    trainer = tomllib.loads((ROOT / "trainer/pyproject.toml").read_text())["project"]
    assert galaxy["license"] == [licence.removeprefix("Licence ")] and trainer["license"] == galaxy["license"][0]
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    shown = {each.split()[0]: minors(each) for each in ranges}
    required = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["requires_ansible"]
    first, below = minors(required)
    assert shown["ansible-core"] == [first, (below[0], below[1] - 1)]
    versions = [minors(each)[0] for each in trainer["classifiers"] if re.search(r":: 3\.\d", each)]
    assert shown["Python"] == [min(versions), max(versions)]
    (torch,) = (minors(each) for each in trainer["dependencies"] if each.startswith("torch>"))
    assert shown["torch"] == [torch[0], (torch[1][0], torch[1][1] - 1)]
    for name, (oldest, newest) in {key: shown[key] for key in ("ansible-core", "Python", "torch")}.items():
        rows = [row for row in table(COMPATIBILITY, "What") if row[0].split()[0] == name]
        row = next(row for row in rows if "node" not in row[0])
        assert row[1] == f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}", name


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    assert (citation["version"], [citation["license"]]) == (galaxy["version"], galaxy["license"])
    assert citation["repository-code"] == galaxy["repository"]
    assert [each["name"] for each in citation["authors"]] == galaxy["authors"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_phases_are_those_of_site_yml_in_its_order() -> None:
    rows = table(CLUSTER, "phase (tag, playbook)")
    assert [row[0].strip("`") for row in rows] == [play["tags"][0] for play in SITE]
    for row, play in zip(rows, SITE, strict=True):
        playbook = play["ansible.builtin.import_playbook"]
        assert playbook == f"{play['tags'][0]}.yml"
        linked = set(re.findall(r"\(\.\./\.\./roles/(\w+)/README.md\)", row[-1]))
        assert linked == (set() if play["tags"][0] == "preflight" else roles_of(playbook)), row[0]


def test_the_systems_are_those_of_the_default_release() -> None:
    release = yaml.safe_load((ROOT / "roles/synapseai/defaults/main.yml").read_text())["synapseai_release"]
    systems = [
        f"{name} {version}" for name in ("Ubuntu", "RedHat") for version in ("22.04", "24.04", "9.4", "9.6", "10.0")
    ]
    supported = [each for each in systems if support_matrix.support(release, each) == support_matrix.SUPPORTED]
    assert supported and release in CLUSTER and release in README
    number = r"\d+\.\d+(?:(?:, | or )\d+\.\d+)*"
    said = re.search(rf"Ubuntu ({number}), RHEL ({number})\.", CLUSTER)
    assert said is not None
    numbers = [re.split(r", | or ", each) for each in said.groups()]
    assert [f"Ubuntu {each}" for each in numbers[0]] + [f"RedHat {each}" for each in numbers[1]] == supported


def test_what_the_demo_needs_is_said_with_minutes_and_sizes() -> None:
    needs = {row[0]: row[1] for row in table(DEMO, "the demo needs")}
    assert re.findall(r"`([\w.-]+)`", needs["packages, installed if missing"]) == list(podman.PACKAGES)
    assert re.search(r"\d+ min", needs["time"]) and re.search(r"20\d\d-\d\d-\d\d", needs["time"])
    assert re.search(r"\d+ GB", needs["disk"])
    image = ROOT / "simulator/src/gaudi3_simulator/image"
    hosts = {host for path in image.glob("*.py") for host in re.findall(r"https?://([\w.]+)", path.read_text())}
    assert hosts >= {"deb.debian.org", "download.pytorch.org"}
    assert set(re.findall(r"`([\w.]+\.org)`", needs["network"])) == {*hosts, "pypi.org"}


def test_the_printed_summary_is_the_one_that_the_demo_prints() -> None:
    (printed,) = (block for block in blocks(DEMO) if "training job demo" in block)
    said = " ".join(printed.split())
    node = re.compile(
        r"(?P<names>[\w-]+(?:, [\w-]+)*): (?P<cards>\d+) cards, driver (?P<driver>\S+), "
        r"firmware (?P<spi>\S+), hl-smi (?P<hl>\S+)"
    )
    nodes = [(name, match) for match in node.finditer(said) for name in match["names"].split(", ")]
    assert len(nodes) == 2

    def number(pattern: str) -> float:
        match = re.search(pattern, said)
        assert match is not None, pattern
        return float(match[1].replace(",", ""))

    (batch,) = re.findall(r"batch: (\d+) samples per process and pass \((.+)\), (\d+) per step", said)
    (cost,) = re.findall(r"cost: ([\d.]+) USD, ([\d.]+) per million tokens, at ([\d.]+) per .* \((.+), (\S+)\):", said)
    (versions,) = re.findall(r"software: Intel's plugin (\S+), PyTorch (\S+), Lightning (\S+), Python (\S+)", said)
    status = {
        "state": "finished",
        "step": int(number(r"step (\d+) of")),
        "max_steps": int(number(r"step \d+ of (\d+)")),
        "world_size": int(number(r"(\d+) processes")),
        "first_loss": number(r"([\d.]+) at first"),
        "loss": number(r"([\d.]+) at last"),
        "baseline_loss": number(r"baseline ([\d.]+)"),
        "tokens_per_second": number(r"speed: ([\d,]+)"),
        "batch": {"micro_batch_size": int(batch[0]), "how": batch[1], "samples_per_step": int(batch[2])},
        "cost": {
            "currency": "USD",
            "spent": float(cost[0]),
            "per_million_tokens": float(cost[1]),
            "price_per_hour": float(cost[2]),
            "price_source": cost[3],
            "price_date": cost[4],
        },
        "device": "hpu",
        "hardware_name": None,
        "simulated": True,
        "software": dict(zip(("plugin", "torch", "lightning", "python"), versions, strict=True)),
        "checkpoint": said.partition("checkpoint: ")[2].split()[0],
    }
    job = {"jobs": [{"name": "demo", "state": "finished", "status": status}]}
    address, secrets = re.search(r"https://(\S+):9090 .* certificate in (\S+)\)", said).groups()  # type: ignore[union-attr]
    hostvars: dict[str, Any] = {
        name: {
            "_verify_job": job,
            "ansible_facts": {
                "gaudi": {
                    "card_count": int(match["cards"]),
                    "driver_version": match["driver"],
                    "firmware": {"spi": match["spi"]},
                    "hl_smi_version": match["hl"],
                }
            },
        }
        for name, match in nodes
    }
    names = sorted(hostvars)
    key = f"{secrets.rpartition('/')[0]}/id_ed25519"
    hostvars["monitor-1"] = {"ansible_host": address, "gaudi_secrets_dir": secrets, "ansible_user": "root"}
    hostvars["monitor-1"]["ansible_ssh_private_key_file"] = key
    groups = {"gaudi": names, "gaudi_head": names[:1], "monitoring": ["monitor-1"]}
    rendered = render("playbooks/templates/summary.j2", ansible_play_hosts=names, hostvars=hostvars, groups=groups)
    run = Run(0.0, 80)
    shown = run.said([line.rstrip() for line in rendered.splitlines()])
    shown += run.end(151.0, [], None, None)
    ends = printed[printed.index("Finished in") :]
    assert printed == "\n".join([*(line.text for line in shown[:-1]), ends])
    assert re.fullmatch(r"Finished in \d+:\d\d: 3 hosts, \d+ changes\.", ends)
