# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What role slurm writes on a node: the programs that Slurm calls, with their options."""

from __future__ import annotations

from typing import Any

from .._jobs.rules import number
from .._slurm import conf, site
from . import shipped, slurm_cluster
from .given import entries, part, truth
from .model import Values

DROP_IN = "/etc/systemd/system/slurmd.service.d/gaudi3-scale.conf"
#: What the program imports of the collection besides what the examination of nodes does; a test follows the imports.
SOURCES = ("_cards/module_sets.py", "_slurm/__init__.py", "_slurm/cards.py", "_slurm/conf.py", "_slurm/draining.py")


def files(values: Values) -> list[dict[str, Any]]:
    """All files, as module gaudi_service takes them; none of them restarts slurmd."""
    cards, gres = number(values("slurm_expected_cards")), str(values("slurm_gres_conf"))
    program = f"/usr/bin/python3 -s {conf.FOLDER}/gaudi_slurm.py"
    examine = f"--examine examine --hl-smi {values('slurm_hl_smi')}" if truth(values, "slurm_examine") else ""
    partial = "--allow-partial" if truth(values, "slurm_allow_partial_nodes") else ""
    options = " ".join(each for each in (f"--cards {cards} --gres-conf {gres}", partial, examine) if each)
    found = {
        "gaudi_slurm.py": (shipped.content_of("roles/slurm/files/gaudi_slurm.py"), "0644"),
        "engine/__init__.py": ("", "0644"),
        **{
            f"engine/{name}": (shipped.content_of(f"plugins/module_utils/{name}"), "0644")
            for name in sorted({*shipped.HEALTH_SOURCES, *SOURCES})
        },
        **{name: (text, "0755") for name, text in conf.programs(options=options).items()},
    }
    drop_in = f"{conf.HEADER}[Service]\nExecStartPre={program} gres --cards {cards} --gres-conf {gres}\n"
    drop_in += "# Until the driver shows all cards.\nRestart=on-failure\nRestartSec=15\n"
    written = [(f"{conf.FOLDER}/{name}", text, mode) for name, (text, mode) in found.items()]
    written.append((DROP_IN, drop_in, "0644"))
    return [{"path": path, "content": text, "mode": mode, "restart": False} for path, text, mode in written]


def problem(values: Values) -> str:
    """Why this host cannot serve, in one sentence; empty where it can. Asked before any change."""
    if number(values("slurm_expected_cards")) not in (1, 2, 4, 8):
        return (
            f"slurm_expected_cards is {values('slurm_expected_cards')}: give 8, or how many of a node's cards are "
            "there (1, 2 or 4)."
        )
    return _problem_of_existing(values) if truth(values, "slurm_existing") else slurm_cluster.problem(values)


def _problem_of_existing(values: Values) -> str:
    name = values("inventory_hostname")
    version, munge = entries(values("_slurm_version")), entries(values("_slurm_munge"))
    if version.get("rc") != 0:
        return (
            f"slurmd is not installed on {name}: install Slurm 22.05 or newer (Debian 12: apt-get install slurmd "
            "munge), have it set up with slurm_existing: false, or take the host out of the group gaudi."
        )
    if refused := conf.version_refusal(str(version.get("stdout", ""))):
        return f"{name}: {refused}"
    if munge.get("rc") != 0:
        has_key = part(values("_slurm_key"), "stat", "exists") is not False
        return site.munge_problem(str(name), str(munge.get("msg", "")), has_key)
    return slurm_cluster.keys_problem(values) or slurm_cluster.clocks_problem(values)


def remark(values: Values) -> str:
    """What is to be said of the node's release of Slurm; empty for one that was run."""
    return conf.version_problem(str(entries(values("_slurm_version")).get("stdout", "")))
