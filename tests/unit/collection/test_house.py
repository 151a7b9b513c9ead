"""Where things are: families of module_utils, the tree in CONTRIBUTING.md, and where a stranger looks first."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

from tests.suite import tree

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins/module_utils"
FILES = sorted(path for path in UTILS.rglob("*.py") if path.name != "__init__.py")
OURS = "ansible_collections.gaudi3.scale"

# Written from what somebody looks for who knows the field's words and not this collection.
PLACES = {
    "what hl-smi prints is parsed": "plugins/module_utils/_hl_smi/hl_smi.py",
    "cards are found on the PCI bus without a driver": "plugins/module_utils/_cards/pci.py",
    "an IOMMU that translates is detected": "plugins/module_utils/_cards/iommu.py",
    "the kernel driver is unloaded and loaded": "plugins/module_utils/_driver/driver.py",
    "the kernel modules and their order": "plugins/module_utils/_driver/kernel_modules.py",
    "which releases are supported on which operating systems": "plugins/module_utils/_release/support_matrix.py",
    "the signature of the apt repository is verified": "plugins/module_utils/_apt/repository.py",
    "external ports that are down are counted": "plugins/module_utils/_hl_smi/ports.py",
    "gaudinet.json is written for a layer-3 fabric": "plugins/module_utils/_fabric/gaudinet.py",
    "HCCL's environment variables": "plugins/module_utils/_fabric/hccl_environment.py",
    "a training job's systemd unit": "plugins/module_utils/_jobs/text.py",
    "what identifies a training job": "plugins/module_utils/_jobs/spec.py",
    "waiting for a job from the controller": "plugins/action/gaudi_train.py",
    "the trainer's virtual environment": "plugins/module_utils/_trainer/env.py",
    "the vendor's PyTorch is installed": "plugins/module_utils/_pytorch/install.py",
    "spot prices": "plugins/module_utils/_cloud/spot_price.py",
    "Terraform's state becomes an inventory": "plugins/module_utils/_terraform/state.py",
    "passwords and TLS certificates": "plugins/module_utils/_credentials.py",
    "alerts for Prometheus": "roles/prometheus/templates/gaudi3.rules.yml.j2",
    "promtool tests of alerts": "tests/monitoring/test_alerts.py",
}
SMALL = {"a", "an", "and", "are", "for", "from", "in", "is", "of", "on", "that", "the", "what", "which", "without"}


@pytest.mark.parametrize(("behaviour", "place"), PLACES.items(), ids=PLACES)
def test_what_somebody_looks_for_is_where_it_would_be_looked_for(behaviour: str, place: str) -> None:
    """Half of the words at least are in the file's path or in its first lines."""
    head = (place + (ROOT / place).read_text()[:1500]).lower()
    words = [word for word in re.findall(r"[a-z]+", behaviour.lower()) if word not in SMALL]
    found = [word for word in words if word.removesuffix("s") in head]
    assert len(found) * 2 >= len(words), (words, found)


def test_contributing_has_the_tree() -> None:
    assert tree.PAGE.read_text() == tree.page(), "run make tree"


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
    assert not any("_tasks" in needed for needed in families.values())


def test_one_class_for_refusals_and_one_place_that_writes() -> None:
    """Besides what callers tell apart: no answer from a network, a job with its log, what hl-smi does, a part."""
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
    }
    writers = {path.stem for path in FILES if re.search(r"\bos\.fsync\(", path.read_text())}
    assert writers == {"_files"}


#: Where fewer or more facts are asked for, and why.
OTHER_FACTS = {
    "playbooks/preflight.yml": ["user"],  # who may change what
    "roles/tuning/tasks/reboot.yml": ["-distribution", "-pkg_mgr", "-service_mgr"],  # the kernel that runs now
    "roles/fabric/tasks/host_tcp.yml": ["-platform", "-distribution", "-pkg_mgr", "-service_mgr", "network"],
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
