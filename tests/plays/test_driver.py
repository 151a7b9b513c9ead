"""The driver's role on a node whose driver is to come, and on one that asks a repository for another release."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from .cluster import Cluster
from .host import PACKAGES, RELEASE, Host

DEVICE = "/sys/class/accel/accel0/device/status"
_MODPROBE = """#!/bin/sh
# The card is there two seconds after its module.
mkdir -p '{root}/sys/module/'"$1"
(sleep 2; echo Operational > '{status}.new'; mv '{status}.new' '{status}') > /dev/null 2>&1 &
"""
_GPGV = """#!/bin/sh
# Every signature is good, and of the trusted key.
for last; do :; done
while [ "$1" != --output ]; do shift; done
cp "$last" "$2"
echo '[GNUPG:] GOODSIG {key} vendor'
echo '[GNUPG:] VALIDSIG {key} 2026-01-01 0 0 4 0 22 8 01 {key}'
"""
_KERNEL = """#!/bin/sh
case "$*" in
*'linux-*'*)
  row='linux-image-generic\\t6.8.0-51.52\\t%s\\tinstalled\\tlinux-image-6.8.0-51-generic\\n'
  printf "$row" "$(cat '{wants}')"
  ;;
*) exec '{genuine}' "$@" ;;
esac
"""
_OFFERED = """#!/bin/sh
case "$1" in
policy) printf 'linux-image-generic:\\n  Installed: 6.8.0-51.52\\n  Candidate: 6.8.0-60.63\\n' ;;
show) printf 'Package: linux-image-generic\\nVersion: 6.8.0-60.63\\nDepends: linux-image-6.8.0-60-generic\\n' ;;
esac
"""


def program(host: Host, name: str, text: str) -> None:
    """Put a program on the host's path."""
    path = host.folder / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def test_the_driver_waits_for_its_cards(cluster: Cluster) -> None:
    """A module of the driver is loaded, and the card behind it takes its time."""
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    module = host.path("/sys/module/habanalabs_ib")
    for each in sorted(module.rglob("*"), reverse=True):
        each.unlink() if not each.is_dir() else each.rmdir()
    module.rmdir()
    host.write(DEVICE, "In device creation\n")
    program(host, "modprobe", _MODPROBE.format(root=host.root, status=host.path(DEVICE)))
    host.write("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh", "#!/bin/sh\nexit 1\n", 0o755)
    run = cluster.role("synapseai", "--tags", "synapseai_load", synapseai_ports_up=False)
    assert run.returncode == 0, run.messages()
    loaded = run.result("gaudi-1", "Load the driver, bring its ports up and read both back")
    assert [card["status"] for card in loaded["cards"]] == ["Operational"] and loaded["loaded"] == ["habanalabs_ib"]


def test_a_release_that_is_not_on_offer_is_refused(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    url, key = _repository(cluster.folder / "repository"), cluster["gaudi-1"].key
    program(cluster["gaudi-1"], "gpgv", _GPGV.format(key=key))
    run = cluster.role(
        "synapseai", "--check", "--tags", "synapseai_install",
        synapseai_release="1.24.0-1007", synapseai_repository_url=url,
    )  # fmt: skip
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        f"The repository has no 1.24.0-1007; it has {RELEASE}: set synapseai_release to one of these."
    ]


def _repository(folder: Path) -> str:
    """A repository of one release, in files."""
    text = "\n".join(f"Package: {name}\nVersion: {RELEASE}\nArchitecture: all\n" for name in PACKAGES)
    packed = gzip.compress(text.encode())
    index = folder / "dists/jammy/main/binary-amd64/Packages.gz"
    index.parent.mkdir(parents=True)
    index.write_bytes(packed)
    digest = hashlib.sha256(packed).hexdigest()
    (folder / "dists/jammy/InRelease").write_text(
        f"Suite: jammy\nSHA256:\n {digest} {len(packed)} main/binary-amd64/Packages.gz\n"
    )
    return folder.as_uri()


def test_one_node_at_a_time_the_first_failure_ends_the_run(cluster: Cluster) -> None:
    cluster.gaudi(3, cards=1)
    cluster.variables["gaudi-1"]["synapseai_release"] = "9.9.9-1"
    role = "gaudi3.scale.synapseai : "  # the variables of all nodes are checked before it
    # Of the command line, and of the inventory.
    for given, own in (["-e", "gaudi_serial=1"], {}), ([], {"gaudi_serial": 1}):
        cluster.all |= own
        run = cluster.play("drivers.yml", "--check", *given)
        assert run.returncode != 0
        assert {host for host, name, _result in run.results() if name.startswith(role)} == {"gaudi-1"}
    del cluster.all["gaudi_serial"]
    together = cluster.play("drivers.yml", "--check")
    assert {host for host, name, _result in together.results() if name.startswith(role)} == {
        "gaudi-1",
        "gaudi-2",
        "gaudi-3",
    }


def test_a_site_leaves_out_a_node_on_which_the_preflight_found_nothing_to_do(cluster: Cluster) -> None:
    """Its phase costs no task there. Where one file of the role is missing, the whole phase runs."""
    cluster.gaudi(2, cards=1)
    cluster.all["synapseai_ports_up"] = False  # there are no cables
    assert cluster.role("synapseai").returncode == 0
    cluster["gaudi-2"].path("/etc/modules-load.d/gaudi3-scale.conf").unlink()
    run = cluster.play("site.yml", "--check", "--skip-tags", "tuning,fabric,firewall,pytorch,monitoring,train")
    assert run.returncode == 0, run.messages()
    installing = "gaudi3.scale.synapseai : Bring the packages to the release (apt)"
    assert {host for host, name, _result in run.results() if name == installing} == {"gaudi-2"}
    assert run.changed() == {
        ("gaudi-2", "gaudi3.scale.synapseai : Have driver and external ports brought up at each boot")
    }


def test_kernels_without_a_driver_are_held_back(cluster: Cluster) -> None:
    """On a node that is as it is to be but for one hold, this alone is done, and said; then nothing."""
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    genuine = (host.folder / "bin/dpkg-query").rename(host.folder / "bin/genuine")
    wants = host.folder / "wants"
    wants.write_text("install")
    program(host, "dpkg-query", _KERNEL.format(wants=wants, genuine=genuine))
    program(host, "apt-cache", _OFFERED)
    program(host, "apt-mark", f"#!/bin/sh\necho \"$1\" > '{wants}'\n")
    task = "Hold back kernels that have no driver"
    said = (
        "Kernel 6.8.0-60-generic is offered and held back (linux-image-generic): the driver of 1.23.0-695 is not built "
        "for it."
    )
    run = cluster.role("synapseai", "--diff", synapseai_ports_up=False)
    assert {name.split(" : ")[-1] for _host, name in run.changed()} >= {task}, run.messages()
    assert (wants.read_text(), said in " ".join(run.everything.split())) == ("hold\n", True)
    assert host.path("/etc/gaudi3-scale/kernel-holds").read_text().endswith("\nlinux-image-generic\n")
    again = cluster.role("synapseai", synapseai_ports_up=False)
    assert (again.returncode, again.changed()) == (0, set()), again.messages()
