"""The page of the inventory's variables: those of all roles and of the playbooks."""

from __future__ import annotations

from functools import cache

import yaml

from website.reference.specs import kind, roles, variables
from website.reference.text import ROOT, ansible, code, document, prose, table, value

TITLE = "Variables of the inventory"
#: What most sites set, in the order in which one meets it.
FIRST = (
    "synapseai_release",
    "synapseai_reboot_allowed",
    "gaudi_cluster_address",
    "gaudi_secrets_dir",
    "firewall_enabled",
    "alertmanager_receivers",
    "trainer_job_name",
    "trainer_config",
    "trainer_command",
    "trainer_dataset",
)
GROUPS = (
    ("gaudi", "all nodes with Gaudi cards"),
    ("gaudi_head", "exactly one of them, where the processes of a job meet"),
    ("monitoring", "the hosts with Prometheus, Alertmanager, Grafana and gaudi3-watch"),
)
HEAD = ("variable", "type", "default", "what")


@cache
def of_playbooks() -> dict[str, tuple[str, str]]:
    """Variables that no role specifies: type and what it is, by name."""
    text = (ROOT / "website/reference/given_to_runs.yml").read_text(encoding="utf-8")
    return {name: (of, what) for name, (of, what) in yaml.safe_load(text).items()}


def row(name: str) -> tuple[str, str, str, str]:
    """A variable as a row of a table."""
    if name in of_playbooks():
        of, what = of_playbooks()[name]
        return code(name), of, "", prose(what)
    option = variables()[name]
    choices = f" One of {', '.join(value(each) for each in option['choices'])}." if "choices" in option else ""
    default = "required" if option.get("required") else value(option["default"]) if "default" in option else ""
    return code(name), kind(option), default, ansible(option["description"]) + choices


def page() -> str:
    """The page."""
    parts = [
        f"# {TITLE}",
        "Every variable that the collection reads, for whoever writes an inventory. It is made from the roles' "
        "argument specifications. A variable whose name begins like a role's and that no role knows is refused, with "
        "the name that was probably meant. An empty default means that the role decides on the host.",
        "## Groups of hosts",
        table(("group", "hosts"), [(code(name), what) for name, what in GROUPS]),
        "## The ten you will set",
        table(HEAD, [row(name) for name in FIRST]),
        "## Playbooks and all roles",
        table(HEAD[:2] + HEAD[3:], [(name, of, what) for name, of, _default, what in map(row, of_playbooks())]),
    ]
    for role in roles():
        parts += [f"## Role {role.name}", f"{prose(role.what)}.", table(HEAD, [row(name) for name in role.options])]
        for name, option in role.options.items():
            if option.get("options"):
                inner = [
                    (
                        code(key),
                        kind(each),
                        "required" if each.get("required") else value(each["default"]) if "default" in each else "",
                        ansible(each["description"]),
                    )
                    for key, each in option["options"].items()
                ]
                parts += [f"### Keys of {name}", table(("key", *HEAD[1:]), inner)]
    parts += [
        "## Next",
        "- [JSON schemas](schemas.md): have your editor complete and check these names\n"
        "- [Configuration of a job](configuration.md): the keys of `trainer_config`",
    ]
    return document(*parts)
