"""What is backed up: every folder that the roles know is in a backup, or has its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import kinds
from ansible_collections.gaudi3.scale.plugins.module_utils._health import fence
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import PLACES
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import CONTROL
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import claim
from ansible_collections.gaudi3.scale.plugins.module_utils._plan import alertmanager, grafana, prometheus
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import conf, site

ROOT = Path(__file__).resolve().parents[5]
#: Not behind a colon, as in the address of another machine.
_PATH = re.compile(
    r"(?<![\w.~/}:-])(?:/(?:etc|opt|srv|home|root|usr/lib|usr/local|var/(?:lib|log|cache))|~)(?:/[\w.-]+)+"
)
#: Files of the distribution, which are read and not written.
_READ = ("/etc/os-release", "/etc/passwd", "/etc/ansible", "/usr/local/cuda")


def named() -> Iterator[tuple[str, str]]:
    """Every path that defaults, variables and tasks of the roles name, and the decisions for them."""
    sources = [
        *ROOT.glob("roles/*/defaults/*.yml"),
        *ROOT.glob("roles/*/vars/*.yml"),
        *ROOT.glob("roles/*/tasks/*.yml"),
    ]
    for family in (
        "_plan",
        "_slurm",
        "_serving",
        "_logs",
        "_jobs",
        "_host",
        "_health",
        "_monitoring",
        "_module_bodies",
    ):
        sources += (ROOT / "plugins/module_utils" / family).glob("*.py")
    for source in sorted(sources):
        for found in _PATH.findall(source.read_text()):
            path = found.rstrip(".")
            if not path.startswith(_READ):
                yield path, str(source.relative_to(ROOT))


def test_every_folder_of_the_roles_is_backed_up_or_has_a_reason() -> None:
    found = dict(named())
    assert len(found) > 60
    assert {path: source for path, source in found.items() if not kinds.answer(path)} == {}


def test_a_folder_that_nobody_decided_on_is_noticed() -> None:
    assert kinds.answer("/var/lib/gaudi-new") == ""
    assert kinds.answer("/var/lib/prometheus/metrics2/wal") == "prometheus-data"
    assert kinds.answer("/var/lib/gaudi3-scale/jobs/.control/a/job.json") == "job-records"
    assert kinds.answer("/var/lib/gaudi3-scale/jobs/a/checkpoints").startswith("checkpoints")


def test_the_folders_are_those_that_the_roles_use() -> None:
    paths = {item.name: item.path for found in kinds.MACHINES.values() for item in found}
    assert paths["prometheus-data"] == prometheus.Prometheus.data
    assert paths["alertmanager-data"] == alertmanager.Alertmanager.data
    assert paths["grafana-database"] == f"{grafana.Grafana.data}/grafana.db"
    assert paths["prometheus-arguments"] == prometheus.ARGUMENT_SPEC
    assert paths["alertmanager-arguments"] == alertmanager.ARGUMENT_SPEC
    assert paths["grafana-configuration"] == grafana.DIRECTORY
    assert paths["job-records"] == f"{PLACES['jobs_dir']['default']}/{CONTROL}"
    assert paths["fence"] == fence.FOLDER
    assert paths["slurm-state"] == conf.Cluster.__dataclass_fields__["state_folder"].default
    assert paths["slurm-accounting"] == site.DATABASE
    assert claim.ARGUMENT_SPEC["records"]["default"].startswith(paths["gaudi3-configuration"])
    units = {item.name: item.unit for found in kinds.MACHINES.values() for item in found if item.unit}
    assert units["prometheus-data"] == prometheus.Prometheus.unit
    assert units["alertmanager-data"] == alertmanager.Alertmanager.unit
    assert units["grafana-database"] == grafana.Grafana.unit


def test_a_machine_of_two_kinds_has_what_both_share_once() -> None:
    found = kinds.items(["node", "slurm"], {"secrets": "/home/anna/s", "audit": ""}, ["/srv/own"])
    assert [item.name for item in found] == [
        "job-records", "fence", "gaudi3-configuration", "slurm-state", "slurm-configuration", "munge-key",
        "slurm-accounting", "secrets", "path-srv-own",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "folders", "paths", "said"),
    [
        (["server"], {}, [], "kinds has server: give some of monitoring, node, slurm, controller."),
        ([], {}, [], "nothing is named to be backed up: give kinds, folders or paths."),
        ([], {"secrets": "s"}, [], "'s' is to be backed up: give the absolute path of a file or folder."),
        ([], {}, ["/x/.."], "'/x/..' is to be backed up: give the absolute path of a file or folder."),
        (
            ["monitoring"],
            {},
            ["/etc/grafana/own"],
            "/etc/grafana/own lies in /etc/grafana, which is backed up with all that is in it: leave it out.",
        ),
        (
            [],
            {},
            ["/a/b", "/a-b"],
            "two of the paths have the name path-a-b in the backup: put both into one folder and give that.",
        ),
    ],
)
def test_a_wrong_choice_is_one_sentence(given: list[str], folders: dict[str, str], paths: list[str], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        kinds.items(given, folders, paths)
    assert str(refused.value) == said
