"""The hand-written pages of the reference say what the code has: ports, exit codes, and words."""

from __future__ import annotations

import re
from urllib.parse import urlparse

import pytest
import yaml
from ansible.executor.task_queue_manager import TaskQueueManager

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.interruption import EXIT_CODE
from gaudi3_scale.migrate_command import LEFT
from website.reference import commands, specs, variables
from website.reference.text import ROOT

FOLDER = ROOT / "docs/reference"
#: Where defaults stand that no role has.
ELSEWHERE = {
    "gaudi_bmc_address": ("docs/operate/bmc.md", r"where it is not (\d+)"),
    "health_pair_port": ("playbooks/tasks/pair-search.yml", r"health_pair_port \| default\((\d+)\)"),
}
#: What the glossary was asked for.
WORDS = (
    "Card", "Consent", "External port", "Fence", "gaudinet", "Goodput", "HBM", "HCCL", "Head", "HPU", "MFU",
    "Module id", "Passport", "Phase", "Preflight", "RoCE", "Shadow", "Spare", "Stage", "Trusted on first use",
    "Workspace",
)  # fmt: skip


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def rows(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose head begins with this cell."""
    block = next(found for found in re.findall(r"(?:^\|.*\n)+", text, re.M) if found.startswith(f"| {first} |"))
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines()[2:]]


def default(variable: str) -> str:
    """The default of a variable in the ports' table."""
    if variable == "trainer_config.metrics.port":
        return str(Config().metrics.port)
    if variable == "ansible_port":
        return "22"
    if variable in ELSEWHERE:
        file, pattern = ELSEWHERE[variable]
        found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
        assert found is not None
        return found[1]
    role = next(each for each in specs.roles() if variable in each.options)
    found_in = yaml.safe_load((ROOT / "roles" / role.name / "defaults/main.yml").read_text(encoding="utf-8"))
    return str(found_in[variable])


@pytest.mark.parametrize("row", rows(read("ports.md"), "port"), ids=lambda row: row[0])
def test_a_port_is_the_default_of_its_variable(row: list[str]) -> None:
    assert row[0] == default(row[4].strip("`"))


def test_every_port_of_a_role_and_of_the_firewall_has_its_row() -> None:
    table = {row[4].strip("`"): row[0] for row in rows(read("ports.md"), "port")}
    of_roles = {name for name, option in specs.variables().items() if name.endswith("_port") and option.get("default")}
    # The second one is of the loopback address.
    assert of_roles - {"firewall_rendezvous_port", "serving_replica_port"} <= set(table)
    firewall = yaml.safe_load((ROOT / "roles/firewall/defaults/main.yml").read_text(encoding="utf-8"))
    lists = ("firewall_metrics_ports", "firewall_admin_ports")
    numbers = {number for name in lists for port in firewall[name] for number in re.findall(r"default\((\d+)\)", port)}
    assert len(numbers) == 8 and numbers <= set(table.values())
    assert firewall["firewall_collective_ports"] in table.values()


def test_every_address_outside_has_its_row() -> None:
    shown = {row[0].strip("`"): row[4] for row in rows(read("ports.md"), "to")}
    for role in specs.roles():
        defaults = yaml.safe_load((ROOT / "roles" / role.name / "defaults/main.yml").read_text(encoding="utf-8"))
        for name, value in defaults.items():
            host = urlparse(value).hostname if isinstance(value, str) and value.startswith("http") else None
            if host and "{" not in host:
                assert host in shown, name
                assert name in shown[host] or "key" in name or name.endswith("_fingerprint"), name
    for name in re.findall(r"`(\w+)`", " ".join(shown.values())):
        assert name in specs.variables() or name in variables.of_playbooks(), name


def test_the_general_codes_are_those_of_the_classes() -> None:
    codes = list(dict.fromkeys(row[0] for row in rows(read("exit-codes.md"), "code")))
    ours = ["0", str(TrainerError.exit_code), str(ConfigError.exit_code), str(LEFT), str(EXIT_CODE), "130"]
    assert codes[:6] == ours
    unit = (ROOT / "plugins/module_utils/_jobs/unit.py").read_text(encoding="utf-8")
    assert (
        'f"SuccessExitStatus={INTERRUPTED_EXIT}"' in unit and 'f"RestartPreventExitStatus={INTERRUPTED_EXIT}"' in unit
    )


def test_a_commands_own_codes_are_those_of_its_help() -> None:
    said = {}
    for command in commands.commands():
        found = re.search(r"Exit codes: (.+?)\.(?: |$)", " ".join(command.what.split()))
        if found:
            said[command.name] = {
                code: meaning.strip(" ,;") for code, meaning in re.findall(r"(\d+) (.+?)(?=[,;] \d|$)", found[1])
            }
    table = rows(read("exit-codes.md"), "command")
    written = {
        row[0].strip("`"): {code: cell for code, cell in zip(("0", "1", "2", "3", "75"), row[1:], strict=True) if cell}
        for row in table
    }
    assert written == said


def test_the_codes_of_playbooks_are_ansibles() -> None:
    text = read("exit-codes.md").split("## Playbooks")[1]
    wanted = (
        TaskQueueManager.RUN_OK,
        TaskQueueManager.RUN_ERROR,
        TaskQueueManager.RUN_FAILED_HOSTS,
        TaskQueueManager.RUN_UNREACHABLE_HOSTS,
    )
    assert [row[0] for row in rows(text, "code")] == [str(int(code)) for code in wanted]


def test_the_glossary_is_in_order_and_has_the_words_that_were_asked_for() -> None:
    words = re.findall(r"^- \*\*(.+?)\*\*: .+\.$", read("glossary.md"), re.M)
    assert words == sorted(words, key=str.lower) and len(set(words)) == len(words)
    assert set(WORDS) <= set(words)
    assert read("glossary.md").count("\n- **") == len(words)


def test_the_index_has_every_page_of_the_shelf_once() -> None:
    listed = re.findall(r"^- \[.+?\]\(([\w-]+\.md)\)", read("README.md"), re.M)
    assert sorted(listed) == sorted(path.name for path in FOLDER.glob("*.md") if path.name != "README.md")
