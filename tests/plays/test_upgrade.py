"""The plan of an upgrade, carried out: canary, batches, a node that goes back, a fleet that drifted, a run cut off."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import rehearsed, steps
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.plan import Wish, make
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.planned import digest
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.record import new
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.rehearsal import rehearse
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.state import of_report
from gaudi3_simulator.node import releases
from tests.stand_in_pytorch import Vendor

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import PACKAGES, PYTHON, RELEASE, SIMULATOR, Host, program
from .test_driver import _GPGV
from .test_driver import program as script
from .test_health import fault
from .test_pytorch import where

NEW = "1.24.1-482"
KERNEL = "5.15.0-60-generic"
QUAL = "/opt/qual/hl_qual"
FENCE = "/var/lib/gaudi3-scale/health/fence.json"
#: apt-get of a host: packages come with the driver's modules and the tools of their release.
_APT = """
import json, os, sys
sys.path.insert(0, {simulator!r})
from pathlib import Path
from gaudi3_simulator.node import modules, releases
host, root = Path({host!r}), Path({root!r})
words = sys.argv[1:]
with open(host / "calls", "a") as stream:
    stream.write("apt-get " + words[0] + "\\n")
named = dict(word.split("=") for word in words if word.startswith("habanalabs-"))
if words[0] != "install" or "--simulate" in words or not named:
    sys.exit(0)
broken = host / "apt-is-broken"
if broken.exists():
    sys.exit("E: " + broken.read_text())
packages = json.loads((host / "packages.json").read_text())
(host / "packages.json").write_text(json.dumps({{**packages, **named}}))
release = named["habanalabs-dkms"]
for kernel in ({kernel!r}, os.uname().release):
    folder = root / "lib/modules" / kernel / "updates/dkms"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name in releases.module_names(release):
        (folder / (name + ".ko")).write_text(modules.module_text(name, release))
tool = host / "bin/hl-smi"
tool.write_text(tool.read_text().replace({release!r}, release).replace({new!r}, release))
"""


def repository(folder: Path) -> str:
    """A repository of both releases, in files."""
    stanzas = [(name, release) for release in (RELEASE, NEW) for name in PACKAGES]
    text = "\n".join(f"Package: {name}\nVersion: {release}\nArchitecture: all\n" for name, release in stanzas)
    packed = gzip.compress(text.encode())
    index = folder / "dists/jammy/main/binary-amd64/Packages.gz"
    index.parent.mkdir(parents=True)
    index.write_bytes(packed)
    of = hashlib.sha256(packed).hexdigest()
    (folder / "dists/jammy/InRelease").write_text(
        f"Suite: jammy\nSHA256:\n {of} {len(packed)} main/binary-amd64/Packages.gz\n"
    )
    return folder.as_uri()


def prepare(host: Host) -> None:
    """Programs that the upgrade calls."""
    text = _APT.format(
        simulator=str(SIMULATOR), host=str(host.folder), root=str(host.root), kernel=KERNEL, release=RELEASE, new=NEW
    )
    script(host, "apt-get", f'#!/bin/sh\nexec {shlex.quote(PYTHON)} -IS -c {shlex.quote(text)} "$@"\n')
    script(host, "gpgv", _GPGV.format(key=host.key))
    script(host, "dpkg", "#!/bin/sh\nexit 0\n")
    program(host, "hl-fw-loader", "hl_fw_loader", "main", f", release={NEW!r}")
    host.write(QUAL, "#!/bin/sh\necho PASSED\n", 0o755)
    program(host, "dmesg", "dmesg", "main")
    program(host, "modinfo", "kmod_tools", "modinfo")


def nodes(cluster: Cluster, number: int, cards: int = 1) -> None:
    """Nodes of the old release, which ask a repository of both."""
    cluster.gaudi(number, cards=cards, kernel=KERNEL)
    cluster.all |= {"synapseai_repository_url": repository(cluster.folder / "repository"), "synapseai_ports_up": False}
    for name, host in cluster.hosts.items():
        prepare(host)
        cluster.variables[name]["health_hl_qual"] = str(host.path(QUAL))


def plan(cluster: Cluster, canary: str, firmware: str = "") -> str:
    """A plan by the doctor's reports of the nodes as they are; the digest of its file."""
    folder = cluster.folder / "reports"
    run = cluster.play("doctor.yml", doctor_directory=str(folder), doctor_quick=True)
    assert run.returncode == 0, run.messages()
    states = {name: of_report(json.loads((folder / f"{name}.json").read_text())) for name in cluster.hosts}
    made = make(states, Wish(NEW, canary=canary, firmware=firmware))
    assert made.refusals == ()
    plain = made.as_plain()
    done = rehearse(plain, digest(made.text()), states, {})
    text = rehearsed.text(plain, rehearsed.section(plain, done, {}, ""))
    (cluster.folder / "plan.json").write_text(text)
    return digest(text)


def upgrade(cluster: Cluster, *arguments: str, **variables: Any) -> PlaybookRun:
    given = {
        "upgrade_directory": str(cluster.folder / "upgrade"),
        "health_directory": str(cluster.folder / "health"),
        "upgrade_plan": str(cluster.folder / "plan.json"),
        "health_expected_cards": 1,
    }
    return cluster.play("upgrade.yml", *arguments, **{**given, **variables})


def record(cluster: Cluster, name: str) -> dict[str, Any]:
    (path,) = (cluster.folder / "upgrade").glob(f"*/{name}.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def versions(host: Host) -> set[str]:
    """Of the vendor's packages."""
    packages = json.loads((host.folder / "packages.json").read_text())
    return {version for name, version in packages.items() if name.startswith("habanalabs-")}


def driver(host: Host) -> str:
    """That is loaded."""
    return host.path("/sys/module/habanalabs/version").read_text().strip().partition("-")[0]


def test_the_canary_first_and_a_node_that_fails_goes_back(cluster: Cluster) -> None:
    nodes(cluster, 3)
    plan(cluster, "gaudi-2")
    packages = cluster["gaudi-3"].folder / "packages.json"
    before = packages.read_text()
    packages.write_text(before.replace(f'"habanalabs-thunk": "{RELEASE}"', '"habanalabs-thunk": "1.23.0-1"'))
    run = upgrade(cluster)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "gaudi-3 is not as it was when the plan was made (its package habanalabs-thunk was 1.23.0-695 and is "
        "1.23.0-1): plan again."
    ]
    packages.write_text(before)

    # What would come out with the last step only, and then put the node back.
    fault(cluster["gaudi-3"], "needs-reset")
    run = upgrade(cluster)
    assert run.returncode != 0 and run.changed() == set()
    (said,) = run.messages()
    assert said.startswith("gaudi-3 is not in order now: ")
    assert said.endswith("; repair it first.")
    fault(cluster["gaudi-3"], "needs-reset", "--clear")
    # Counted since the driver was loaded, which the upgrade does anew.
    fault(cluster["gaudi-3"], "throttled-power")
    looked = upgrade(cluster, "--check")
    assert looked.returncode == 0, looked.messages()
    fault(cluster["gaudi-3"], "throttled-power", "--clear")

    (cluster["gaudi-1"].folder / "apt-is-broken").write_text("the mirror has gone")
    run = upgrade(cluster)
    assert run.returncode != 0
    assert run.messages()[-1] == (
        "gaudi-1 has its old packages again and is in service: packages: The packages of 1.24.1-482 cannot be "
        "installed: E: the mirror has gone"
    )
    assert [record(cluster, name)["phase"] for name in ("gaudi-2", "gaudi-1")] == ["there", "returned"]
    assert not list((cluster.folder / "upgrade").glob("*/gaudi-3.json")), "it has not begun"
    took = record(cluster, "gaudi-2")["seconds"]
    assert list(took) == sorted(steps.up((), False)) and all(each > 0 for each in took.values())
    found = {name: (versions(host), driver(host)) for name, host in cluster.hosts.items()}
    old, new = ({RELEASE}, "1.23.0"), ({NEW}, "1.24.1")
    assert found == {"gaudi-1": old, "gaudi-2": new, "gaudi-3": old}
    assert not any(host.path(FENCE).exists() for host in cluster.hosts.values())
    issued = {path.name for path in (cluster.folder / "health").glob("*.passport.json")}
    assert issued == {"gaudi-1.passport.json", "gaudi-2.passport.json"}

    again = upgrade(cluster)
    assert again.returncode != 0 and {host for host, _task in again.changed()} <= set(), (
        "a plan with a surprise is over"
    )


def test_a_run_that_was_cut_off_is_continued_by_the_next_one(cluster: Cluster) -> None:
    nodes(cluster, 1)
    of = plan(cluster, "gaudi-1")
    host = cluster["gaudi-1"]
    (cluster.folder / "signers").write_text("ops@site ssh-ed25519 AAAA\n")
    signed = {"upgrade_allowed_signers": str(cluster.folder / "signers"), "upgrade_signer": "ops@site"}
    refused = upgrade(cluster, **signed)
    assert "The plan's signature" in refused.messages()[0] and refused.changed() == set()
    place = cluster.folder / "plan.json"
    rehearsed_text = place.read_text()
    place.write_text(json.dumps({key: each for key, each in json.loads(rehearsed_text).items() if key != "rehearsal"}))
    refused = upgrade(cluster)
    assert refused.messages() == [
        "The plan was not rehearsed: do that with `gaudi3-deploy upgrade rehearse`, or set "
        "upgrade_unrehearsed_allowed=true."
    ]
    assert upgrade(cluster, "--check", upgrade_unrehearsed_allowed=True).returncode == 0
    place.write_text(rehearsed_text)
    refused = upgrade(cluster, synapseai_release=RELEASE)
    assert refused.changed() == set() and refused.messages() == [
        "synapseai_release is given with -e, where it holds against the plan: leave it out, and write the plan's "
        "release into the inventory once the nodes are there."
    ]
    predicted = upgrade(cluster, "--check", "--diff")
    assert predicted.returncode == 0, predicted.messages()
    assert not (cluster.folder / "upgrade").exists() and versions(host) == {RELEASE}

    # The controller lost its power while apt unpacked.
    way = steps.up((), False)
    cut = replace(new(of, "gaudi-1", way), done=("fence",), begun="packages", held=tuple(sorted(PACKAGES)))
    folder = cluster.folder / "upgrade" / of[:16]
    folder.mkdir(parents=True)
    (folder / "gaudi-1.json").write_text(cut.text())
    host.write(FENCE, json.dumps({"by": "person", "reason": "it is upgraded", "step": "upgrade", "jobs": []}))
    packages = json.loads((host.folder / "packages.json").read_text())
    (host.folder / "packages.json").write_text(json.dumps({**packages, PACKAGES[0]: NEW}))
    run = upgrade(cluster)
    assert run.returncode == 0, run.messages()
    assert record(cluster, "gaudi-1")["phase"] == "there"
    assert (versions(host), driver(host), host.path(FENCE).exists()) == ({NEW}, "1.24.1", False)
    did = [name for _host, name, _result in run.results()]
    assert "Finish an interrupted installation" in did and "Take the node out of service" not in did
    last = upgrade(cluster)
    assert (last.returncode, last.changed()) == (0, set())


def test_a_release_without_pytorch_is_told_while_the_canary_still_works(cluster: Cluster, tmp_path: Path) -> None:
    vendor = Vendor(tmp_path)
    vendor.tarballs()
    nodes(cluster, 1)
    opt = cluster.folder / "opt"
    with vendor.served() as address:
        cluster.all |= where(address, opt, pytorch_requirements=vendor.offer_usual(), trainer_root=str(opt))
        installed = cluster.play("pytorch.yml")
        assert installed.returncode == 0, installed.messages()
        plan(cluster, "gaudi-1")
        run = upgrade(cluster)
        vendor.tarballs(RELEASE, NEW)
        asked = upgrade(cluster, "--check")
    assert asked.returncode == 0, asked.messages()
    assert [name for _host, name in asked.changed() if "PyTorch" in name] == []
    assert run.returncode != 0 and run.changed() == set()
    name = "pytorch_modules-v2.11.0_1.24.1_482.tgz"
    assert run.messages()[-1].endswith(
        f"answers 404 for {address}/artifactory/gaudi-pt-modules/1.24.1/482/pytorch/ubuntu2204/{name}: see whether "
        f"ubuntu2204 has {name} there, or set pytorch_repository_url to a mirror."
    )
    assert not (cluster.folder / "upgrade").exists()


def test_a_pytorch_of_the_image_is_exchanged_by_no_upgrade(cluster: Cluster, tmp_path: Path) -> None:
    vendor = Vendor(tmp_path)
    vendor.tarballs(RELEASE, NEW)
    nodes(cluster, 1)
    opt = cluster.folder / "opt"
    with vendor.served() as address:
        cluster.all |= where(address, opt, pytorch_requirements=vendor.offer_usual(), trainer_root=str(opt))
        assert cluster.play("pytorch.yml").returncode == 0
        cluster.all |= {"pytorch_state": "preinstalled", "pytorch_python": str(opt / "torch/bin/python")}
        plan(cluster, "gaudi-1")
        run = upgrade(cluster)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "pytorch_state of gaudi-1 is preinstalled, and the PyTorch that is there is not of 1.24.1-482: exchange it or "
        "the image and plan again, or set pytorch_state to present."
    ]


#: Logs what it is asked for, and fails for one card while a file says so.
_LOADER = """#!/bin/sh
echo "hl-fw-loader $*" >> '{folder}/flashes'
[ ! -e '{folder}/card-is-broken' ] || case "$*" in *{card}*) echo 'no answer' >&2; exit 1 ;; esac
exec '{folder}/bin/hl-fw-loader.real' "$@"
"""
#: Without a lock, which would be this machine's.
_FLOCK = """#!/bin/sh
[ "$1" = --nonblock ] || shift
shift 2
exec "$@"
"""


def test_firmware_is_flashed_card_by_card_and_the_first_surprise_stops(cluster: Cluster) -> None:
    nodes(cluster, 1, cards=2)
    firmware = re.findall(r"hl-[A-Za-z0-9.-]+", releases.preboot(NEW, "gaudi3"))[0]
    of = plan(cluster, "gaudi-1", firmware)
    host = cluster["gaudi-1"]
    report = json.loads((cluster.folder / "reports/gaudi-1.json").read_text())
    one, two = sorted(report["sections"]["firmware"]["data"]["sysfs"])
    (host.folder / "bin/hl-fw-loader").rename(host.folder / "bin/hl-fw-loader.real")
    script(host, "hl-fw-loader", _LOADER.format(folder=host.folder, card=two))
    script(host, "flock", _FLOCK)
    refused = upgrade(cluster)
    assert refused.changed() == set() and refused.messages() == [
        "The plan flashes cards of gaudi-1, from which there is no automatic way back: set "
        "upgrade_flash_allowed=true in a service window, or plan without --firmware."
    ]
    flashes = host.folder / "flashes"
    asked: dict[str, Any] = {"upgrade_flash_allowed": True, "health_expected_cards": 2}
    asked["ansible_async_dir"] = str(host.folder / "async")
    (host.folder / "card-is-broken").touch()
    run = upgrade(cluster, **asked)
    assert run.returncode != 0
    assert run.messages()[-1] == (
        f"gaudi-1 stays out of service and waits for a person: firmware {two}: non-zero return code: no answer"
    )
    assert flashes.read_text().splitlines() == [f"hl-fw-loader -d {each} -y" for each in (one, two)]
    found = record(cluster, "gaudi-1")
    assert (found["phase"], found["done"][-1], host.path(FENCE).exists()) == ("stuck", f"firmware {one}", True)

    # As a run that was cut off between the two would have left it.
    (path,) = (cluster.folder / "upgrade").glob("*/gaudi-1.json")
    path.write_text(json.dumps({**found, "phase": "up", "begun": f"firmware {two}", "reason": ""}))
    (host.folder / "card-is-broken").unlink()
    flashes.unlink()
    run = upgrade(cluster, **asked)
    assert run.returncode == 0, run.messages()
    assert flashes.read_text().splitlines() == [f"hl-fw-loader -d {two} -y"]
    assert (record(cluster, "gaudi-1")["phase"], host.path(FENCE).exists(), of[:16]) == (
        "there",
        False,
        path.parent.name,
    )
