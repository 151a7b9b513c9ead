"""What README.md says of the project is what the project does."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._progress.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._release import support_matrix
from gaudi3_simulator import podman

from ..playbooks.jinja import render
from .documents import ROOT, blocks

README = (ROOT / "README.md").read_text()
SITE: list[dict[str, Any]] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
FIRST_SCREEN = 45
"""Lines of the source that a browser shows before anyone scrolls, about."""


def table(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    start = README.index(f"| {heading} |")
    lines = README[start:].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def roles_of(playbook: str) -> set[str]:
    """Roles that a phase's playbook runs."""
    text = (ROOT / "playbooks" / playbook).read_text()
    return set(re.findall(r"(?:role|name): gaudi3\.scale\.(\w+)", text))


def test_the_first_screen_has_both_commands_and_says_what_is_not_known() -> None:
    screen = "\n".join(README.splitlines()[:FIRST_SCREEN])
    commands = [line.split("#")[0].strip() for block in blocks(screen) for line in block.splitlines()]
    assert commands[:2] == ["make demo", "make test"]
    for wanted in (
        "docs/understand/hardware-status.md",
        "gaudi3-train doctor",
        "Use it on real nodes",
        "docs/start/real-nodes.md",
    ):
        assert wanted in screen


def test_the_phases_are_those_of_site_yml_in_its_order() -> None:
    rows = table("phase (tag, playbook)")
    assert [row[0].strip("`") for row in rows] == [play["tags"][0] for play in SITE]
    for row, play in zip(rows, SITE, strict=True):
        playbook = play["ansible.builtin.import_playbook"]
        assert playbook == f"{play['tags'][0]}.yml"
        linked = set(re.findall(r"\(roles/(\w+)/README.md\)", row[-1]))
        assert linked == (set() if play["tags"][0] == "preflight" else roles_of(playbook)), row[0]


def test_the_systems_are_those_of_the_default_release() -> None:
    release = yaml.safe_load((ROOT / "roles/synapseai/defaults/main.yml").read_text())["synapseai_release"]
    systems = [
        f"{name} {version}" for name in ("Ubuntu", "RedHat") for version in ("22.04", "24.04", "9.4", "9.6", "10.0")
    ]
    supported = [each for each in systems if support_matrix.support(release, each) == support_matrix.SUPPORTED]
    assert supported and release in README
    number = r"\d+\.\d+(?:(?:, | or )\d+\.\d+)*"
    said = re.search(rf"Ubuntu ({number}), RHEL ({number})", README)
    assert said is not None
    numbers = [re.split(r", | or ", each) for each in said.groups()]
    assert [f"Ubuntu {each}" for each in numbers[0]] + [f"RedHat {each}" for each in numbers[1]] == supported


def test_what_the_demo_needs_is_said_with_minutes_and_sizes() -> None:
    needs = {row[0]: row[1] for row in table("the demo needs")}
    assert re.findall(r"`([\w.-]+)`", needs["packages, installed if missing"]) == list(podman.PACKAGES)
    assert re.search(r"\d+ min", needs["time"]) and re.search(r"20\d\d-\d\d-\d\d", needs["time"])
    assert re.search(r"\d+ GB", needs["disk"])
    image = ROOT / "simulator/src/gaudi3_simulator/image"
    hosts = {host for path in image.glob("*.py") for host in re.findall(r"https?://([\w.]+)", path.read_text())}
    assert hosts >= {"deb.debian.org", "download.pytorch.org"}
    assert set(re.findall(r"`([\w.]+\.org)`", needs["network"])) == {*hosts, "pypi.org"}


def test_the_printed_summary_is_the_one_that_the_demo_prints() -> None:
    (printed,) = (block for block in blocks(README) if "training job demo" in block)
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
