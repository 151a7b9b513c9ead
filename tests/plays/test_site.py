"""site.yml as a whole, predicted on a node and a monitoring host, and what the run tells whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stand_in_pytorch import Vendor

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import CHECKOUT, RELEASE
from .test_pytorch import where


def role_booleans() -> dict[str, bool]:
    """The boolean variables of all roles whose default is a boolean itself, with it."""
    files = (CHECKOUT / "roles").glob("*/defaults/main.yml")
    found = {name: value for path in files for name, value in yaml.safe_load(path.read_text(encoding="utf-8")).items()}
    return {name: value for name, value in found.items() if isinstance(value, bool)}


def tags_of(role: str) -> list[str]:
    """The tags that a role's README documents."""
    text = (CHECKOUT / "roles" / role / "README.md").read_text(encoding="utf-8")
    sentences = re.findall(r"Tags?:((?:[\s,]+`\w+`)+)", text)
    return sorted({tag for sentence in sentences for tag in re.findall(r"`(\w+)`", sentence)})


ROLES = sorted(path.parent.name for path in (CHECKOUT / "roles").glob("*/README.md"))
TAGS = [(role, tag) for role in ROLES for tag in tags_of(role) if tag != role]
#: The phases of a site, as its screen names them.
ORDER = ("preflight", "tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train", "verify")
#: Tasks of all phases on a bare Gaudi node without a job, the skipped among them. It only falls.
MAX_TASKS = 56


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a host with the vendor's PyTorch."""
    made = Vendor(tmp_path_factory.mktemp("vendor"))
    made.tarballs()
    with made.served() as address:
        yield address


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster], wheel: str, vendor: str) -> Cluster:
    """A Gaudi node whose driver runs, and a bare monitoring host."""
    cluster = new_cluster()
    cluster.gaudi(1, cards=1)
    cluster.add("mon", "monitoring", cards=0, system="debian")
    cluster.all = {
        "gaudi_secrets_dir": str(cluster.folder / "secrets"), "trainer_wheel": wheel, "grafana_enabled": False,
        "firewall_enabled": True,
        **where(vendor, cluster.folder / "opt", pytorch_requirements=[]),
    }  # fmt: skip
    return cluster


@pytest.fixture(scope="module")
def installing(site: Cluster) -> PlaybookRun:
    """Prometheus' role for real, with everything that Ansible can be made to say, until it wants to install."""
    return site.role("prometheus", "--diff", "-vvv", group="monitoring")


@pytest.fixture(scope="module")
def before(site: Cluster, installing: object) -> dict[str, dict[str, tuple[int, bytes]]]:
    return {name: host.files() for name, host in site.hosts.items()}


@pytest.fixture(scope="module")
def predicted(site: Cluster, before: object) -> Iterator[PlaybookRun]:
    """All phases in check mode, with everything that Ansible can be made to say.

    Booleans come as text, and the strategy of the user's settings keeps no step: neither makes a difference.
    """
    given = {name: str(value).lower() for name, value in role_booleans().items()} | {"grafana_enabled": "false"}
    free = {"ANSIBLE_STRATEGY": "free"}
    variables: dict[str, Any] = {**given, "firewall_enabled": "true"}
    yield site.play("site.yml", "--check", "--diff", "-vvv", environment=free, screen=True, **variables)


def test_every_phase_is_predicted(predicted: PlaybookRun) -> None:
    assert predicted.returncode == 0, predicted.messages()
    changes: dict[str, set[str]] = {"gaudi-1": set(), "mon": set()}
    for host, name in predicted.changed():
        changes[host].add(name.split(" : ")[0].removeprefix("gaudi3.scale."))
    assert changes == {
        "gaudi-1": {"synapseai", "tuning", "fabric", "firewall", "pytorch", "hpu_exporter", "trainer", "node_exporter"},
        "mon": {"firewall", "prometheus", "alertmanager", "watch", "node_exporter"},
    }


def test_a_prediction_changes_nothing(site: Cluster, before: object, predicted: PlaybookRun) -> None:
    assert {name: host.files() for name, host in site.hosts.items()} == before
    assert [host.acts() for host in site.hosts.values()] == [[], []]


def test_no_secret_is_shown(site: Cluster, installing: PlaybookRun, predicted: PlaybookRun) -> None:
    """Generated passwords, their hashes and private keys, in all output of the run that made them and of the next."""
    files = [path for path in (site.folder / "secrets").rglob("*") if path.is_file() and path.suffix != ".crt"]
    assert {"ca.key", "prometheus_password", "alertmanager_password"} <= {path.name for path in files}, files
    assert installing.messages() == ["No package matching 'prometheus' is available"]
    for run in (installing, predicted):
        said = run.everything
        assert "Take the files of Prometheus" in said
        shown = {
            path.name for path in files for line in path.read_text().splitlines() if len(line) > 9 and line in said
        }
        assert shown == set()
        assert not re.search(r"PRIVATE KEY|\$2[aby]\$\d\d\$[./A-Za-z0-9]{20}", said)


def test_what_was_written_is_shown(predicted: PlaybookRun) -> None:
    """The other half of the search above: what is no secret is in the same output."""
    boot = predicted.result("gaudi-1", "Have driver and external ports brought up at each boot")
    modules, unit, logs = boot["diff"]
    assert "manage_network_ifs.sh --up" in unit["after"]
    assert modules["after_header"] == "/etc/modules-load.d/gaudi3-scale.conf" and "\nhabanalabs\n" in modules["after"]
    assert logs["after_header"] == "/etc/tmpfiles.d/gaudi3-scale-logs.conf"
    assert logs["after"].splitlines()[-2:] == [
        "e /var/log/habana_logs - - - 30d", "e /var/lib/gaudi3-scale/jobs/*/habana_logs - - - 30d",
    ]  # fmt: skip


def test_a_node_costs_few_tasks(predicted: PlaybookRun) -> None:
    """Each costs the controller a process, be it skipped: what most hosts skip belongs into one include."""
    # To leave a host out costs no process.
    tasks = [name for host, name, _result in predicted.results() if host == "gaudi-1" and "Leave out" not in name]
    print(len(tasks), "tasks:", *tasks, sep="\n")
    assert len(tasks) <= MAX_TASKS


def test_the_summary_of_a_site(predicted: PlaybookRun) -> None:
    summary = predicted.result("gaudi-1", "Sum up")["msg"]
    assert summary[0].startswith("gaudi-1: 1 cards, driver 1.23.0-")
    assert any("https://10.0.0.2:9090" in line for line in summary)


def test_the_prediction_of_a_first_run_takes_few_screens(site: Cluster, predicted: PlaybookRun) -> None:
    """Besides the differences, which are there in full."""
    lines = site.screen.splitlines()
    besides = [line for line in lines if not line.startswith("\t")]
    assert len(besides) <= 120, len(besides)
    typed = ("  ssh ", "  curl ", "  ansible-playbook ")
    assert [line for line in besides if len(line) > 80 and not line.startswith(typed)] == []
    for _host, _name, result in predicted.results():
        for each in [result, *result.get("results", [])]:
            diffs = each.get("diff") or [] if each.get("changed") else []
            for diff in diffs if isinstance(diffs, list) else [diffs]:
                before, after = (str(diff.get(side) or "").splitlines() for side in ("before", "after"))
                for line in set(after) - set(before):
                    assert line in site.screen, line
    phases = [line.split()[0] for line in besides if line and line[0] != " " and len(line.split()) > 2 and "(" in line]
    ours = [each for each in phases if each in ORDER]
    assert ours == list(ORDER), besides
    assert besides[-2] == "Next, to make them:"
    assert (
        besides[-1].startswith("  ansible-playbook ") and "--check" not in besides[-1] and "--diff" not in besides[-1]
    )


def test_no_job_is_started_that_nobody_named(predicted: PlaybookRun) -> None:
    assert not [name for _host, name in predicted.changed() if name.endswith("Bring the job to its state")]


def test_the_readmes_document_tags() -> None:
    assert {("synapseai", "synapseai_load"), ("prometheus", "prometheus_targets"), ("trainer", "trainer_job")} <= {
        *TAGS
    }


@pytest.mark.parametrize(("role", "tag"), TAGS)
def test_a_documented_tag_runs_alone(site: Cluster, role: str, tag: str) -> None:
    group = "monitoring" if role in ("prometheus", "alertmanager", "grafana", "watch") else "gaudi"
    run = site.role(role, "--check", "--tags", tag, group=group, facts=role != "trainer")
    assert run.returncode == 0, (run.messages(), run.output)
    assert [name for _host, name, _result in run.results() if name.startswith(f"gaudi3.scale.{role}")], "no task ran"


def test_targets_are_all_hosts_at_their_cluster_addresses(cluster: Cluster) -> None:
    cluster.add("mon", "monitoring", cards=0, system="debian")
    cluster.add("gaudi-1", "gaudi", cards=0)
    cluster.variables["gaudi-2"] = {"ansible_host": "bmc-2", "gaudi_cluster_address": "fd00::2"}
    cluster.variables["gaudi-3"] = {}
    cluster.groups["gaudi"] += ["gaudi-2", "gaudi-3"]
    run = cluster.role(
        "prometheus", "--check", "--diff", "--tags", "prometheus_targets", group="monitoring",
        prometheus_jobs=[{"name": "node", "groups": ["gaudi", "storage"], "port": 9100},
                         {"name": "none", "groups": ["storage"], "port": 9100}],
    )  # fmt: skip
    files = [diff["after"] for diff in run.result("mon", "Write the targets")["diff"]]
    node, none = (yaml.safe_load(text) for text in files)
    assert node == [
        {"targets": ["10.0.0.2:9100"], "labels": {"instance": "gaudi-1"}},
        {"targets": ["[fd00::2]:9100"], "labels": {"instance": "gaudi-2"}},
        {"targets": ["gaudi-3:9100"], "labels": {"instance": "gaudi-3"}},
    ]
    assert none == []


def test_the_release_of_the_hosts_is_the_one_of_the_role() -> None:
    text = Path(CHECKOUT / "roles/synapseai/defaults/main.yml").read_text(encoding="utf-8")
    assert f"synapseai_release: {RELEASE}" in text
