"""Where things are: families of module_utils, and whether a stranger finds a behaviour by the names of files."""

from __future__ import annotations

import ast
import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins/module_utils"
FILES = sorted(path for path in UTILS.rglob("*.py") if path.name != "__init__.py")
OURS = "ansible_collections.gaudi3.scale"

#: What somebody looks for who knows the field's words and not this project, and the file that does it.
PLACES = {
    "the alert rules of Prometheus": "roles/prometheus/templates/gaudi3.rules.yml.j2",
    "the module that refuses ports that are down": "plugins/module_utils/_module_bodies/ports.py",
    "the health checks of ports": "plugins/module_utils/_health/checks_ports.py",
    "how a job chooses its batch": "trainer/src/gaudi3_scale/job/auto_batch.py",
    "the rendezvous address of a job": "plugins/module_utils/_jobs/rendezvous.py",
    "the command that launches a job": "plugins/module_utils/_jobs/launch_command.py",
    "a fence for bad health": "plugins/module_utils/_health/fence.py",
    "health: the ladder of healing": "plugins/module_utils/_health/healing.py",
    "a cloud's notice of an interruption": "trainer/src/gaudi3_scale/interruption/cloud_notice.py",
    "forward and backward in the step's module": "trainer/src/gaudi3_scale/step/module.py",
    "the learning rate of a step": "trainer/src/gaudi3_scale/models/learning_rate.py",
    "which checkpoint is resumed": "trainer/src/gaudi3_scale/checkpoint/resume.py",
    "the releases supported on an operating system": "plugins/module_utils/_release/support_matrix.py",
    "the order of the driver's kernel modules": "plugins/module_utils/_driver/kernel_modules.py",
    "generated credentials": "plugins/module_utils/_credentials.py",
    "a half-applied state of Terraform": "plugins/module_utils/_terraform/state.py",
    "what the plan of a phase asks a host": "plugins/module_utils/_plan/host.py",
    "the exit code of an interrupted job": "trainer/src/gaudi3_scale/interruption/exit_code.py",
    "the deploy command that replaces a node": "deploy/src/gaudi3_deploy/commands/replace.py",
    "the summary of a playbook": "playbooks/templates/summary.j2",
    # More of the plugins, roles and playbooks.
    "what hl-smi prints is parsed": "plugins/module_utils/_hl_smi/hl_smi.py",
    "the ports that hl-smi shows": "plugins/module_utils/_hl_smi/ports.py",
    "cards on the PCI bus without a driver": "plugins/module_utils/_cards/pci.py",
    "an IOMMU that translates": "plugins/module_utils/_cards/iommu.py",
    "the signature of the apt repository is verified": "plugins/module_utils/_apt/repository.py",
    "gaudinet.json of a fabric": "plugins/module_utils/_fabric/gaudinet.py",
    "HCCL's environment variables": "plugins/module_utils/_fabric/hccl_environment.py",
    "a training job's systemd unit": "plugins/module_utils/_jobs/unit.py",
    "the spec of a job": "plugins/module_utils/_jobs/spec.py",
    "the action of a training job": "plugins/action/gaudi_train.py",
    "the vendor's PyTorch is installed": "plugins/module_utils/_pytorch/install.py",
    "spot prices": "plugins/module_utils/_cloud/spot_price.py",
    "the trainer is installed in a container": "roles/trainer/tasks/install-container.yml",
    "the targets of Prometheus": "plugins/module_utils/_plan/prometheus_targets.py",
    "a node is removed from the cluster": "playbooks/remove_node.yml",
}
SMALL = {"a", "an", "and", "are", "by", "for", "from", "how", "in", "is", "of", "on", "s", "that", "the", "to"}
SMALL |= {"what", "which", "without"}
#: Where it is looked for.
SEARCHED = ("plugins", "roles", "playbooks", "trainer/src", "deploy/src")
#: Folders that somebody looks into before asking.
PATIENCE = 5


def stem(word: str) -> str:
    """A word without the ending of a plural or a verb."""
    ending = next((e for e in ("ing", "ed", "es", "s") if word.endswith(e) and len(word) - len(e) >= 3), "")
    return word.removesuffix("" if word.endswith("ss") else ending).rstrip("e")


def stems(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in SMALL}


def hard_to_find(behaviour: str, place: str, files: list[str]) -> str:
    """Why a file is not found by the words of its path; empty where it is. What it says inside does not count."""
    asked = stems(behaviour)
    found = {path: len(asked & stems(path)) for path in files}
    if found[place] * 2 < len(asked):
        return f"{found[place]} of {sorted(asked)} are in the path"
    best = [path for path in files if found[path] == max(found.values())]
    if place not in best:
        return f"{best[0]} has more of the words"
    folders = {path.rpartition("/")[0] for path in best}
    return "" if len(folders) <= PATIENCE else f"{len(folders)} folders have as many of the words"


def searched() -> list[str]:
    """The files of the product, as git lists them."""
    done = subprocess.run(["git", "ls-files", *SEARCHED], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in done.stdout.split() if (ROOT / path).exists()]


@pytest.mark.parametrize(("behaviour", "place"), PLACES.items(), ids=PLACES)
def test_what_somebody_looks_for_is_where_it_would_be_looked_for(behaviour: str, place: str) -> None:
    """Half of the words at least are in the file's path, and no other path has more of them."""
    assert hard_to_find(behaviour, place, searched()) == ""


def test_a_name_that_says_nothing_is_found() -> None:
    good, vague, other = "plugins/_health/fence.py", "plugins/_health/keep.py", "roles/node_health/tasks/main.yml"
    assert hard_to_find("a fence for bad health", good, [good, vague, other]) == ""
    assert "1 of" in hard_to_find("a fence for bad health", vague, [vague, other])
    assert "more" in hard_to_find("health fences", vague, [good, vague])
    many = [f"roles/{number}/fence.py" for number in range(PATIENCE + 1)]
    assert "folders" in hard_to_find("a fence", many[0], many)


def family(path: Path) -> str:
    """The folder of a file, or its own name at the top."""
    return path.relative_to(UTILS).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Families that a file imports from, its own left out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith(OURS), f"{path}: imports inside are relative"
            if node.level == len(path.relative_to(UTILS).parts):
                found.add((node.module or node.names[0].name).split(".")[0])
    return found - {family(path)}


def test_families_are_private_and_depend_on_each_other_one_way() -> None:
    families: dict[str, set[str]] = {}
    for path in FILES:
        assert family(path).startswith("_")
        families.setdefault(family(path), set()).update(imported(path))
    order = list(TopologicalSorter(families).static_order())  # CycleError where two need each other
    assert order.index("_refusal") < order.index("_cards") < order.index("_jobs") < order.index("_trainer")
    # What modules do is asked by modules alone.
    assert not any("_module_bodies" in needed for needed in families.values())


def test_one_class_for_refusals_and_one_place_that_writes() -> None:
    """Besides what callers tell apart: no answer from a network, a job with its log, what hl-smi does, a part.

    Of a management controller it is one resource among many.
    """
    classes = {
        f"{path.stem}.{node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(re.search(r"Exception|Error|Refusal", ast.unparse(b)) for b in node.bases)
    }
    assert classes == {
        "_refusal.Refusal",
        "reach.Unreachable",
        "repository.Unreachable",
        "files.JobError",
        "hl_smi.HlSmiError",
        "command.HlSmiMissing",
        "command.HlSmiHung",
        "command.DriverDown",
        "look.Ended",
        "redfish.Unread",
    }
    writers = {path.stem for path in FILES if re.search(r"\bos\.fsync\(", path.read_text())}
    # A record is not written whole, but grows line by line; a copy of training data is larger than the memory.
    assert writers == {"_files", "chain", "copy"}


#: Where fewer or more facts are asked for, and why.
OTHER_FACTS = {
    "roles/tuning/tasks/reboot.yml": ["-distribution", "-pkg_mgr", "-service_mgr"],  # the kernel that runs now
    "roles/fabric/tasks/host_tcp.yml": ["-platform", "-distribution", "-pkg_mgr", "-service_mgr", "network"],
    "roles/slurm/tasks/ask_new.yml": ["-pkg_mgr", "-service_mgr", "hardware"],  # those of all nodes, for slurm.conf
}


def test_a_role_finds_the_same_facts_whoever_gathers_them() -> None:
    """A keyword of a play takes no variable of the collection, so the list stands wherever facts are gathered."""
    usual = ["!all", "!min", "platform", "distribution", "pkg_mgr", "service_mgr"]
    found = {}
    for folder in ("playbooks", "roles", "extensions"):
        for path in sorted((ROOT / folder).rglob("*.yml")):
            for listed in re.findall(r"gather_subset: (\[.*\'?all.*\])$", path.read_text(), re.MULTILINE):
                found[str(path.relative_to(ROOT)), listed] = yaml.safe_load(listed)
    assert len(found) > 15
    for (name, listed), facts in found.items():
        changes = OTHER_FACTS.get(name, [])
        expected = [fact for fact in usual if f"-{fact}" not in changes]
        assert facts == expected + [fact for fact in changes if fact[0] != "-"], f"{name}: {listed}"
