"""Operating systems of nodes, and the supported systems that they present themselves as."""

from __future__ import annotations

import shlex

import pytest

from gaudi3_simulator import SimulatorError, cluster, systems
from gaudi3_simulator.home import Cluster, read_cluster
from gaudi3_simulator.image import image_name
from gaudi3_simulator.systems import distribution
from gaudi3_simulator.vendor import catalogue, rpm

KERNEL = "6.8.0-60-generic"


def os_release(name: str) -> dict[str, str]:
    text = systems.PRESENTATIONS[name].files["/usr/lib/os-release"]
    return dict(word.split("=", 1) for word in shlex.split(text))


@pytest.mark.parametrize(
    ("present_as", "id_", "version"),
    [
        ("ubuntu-22.04", "ubuntu", "22.04"),
        ("ubuntu-24.04", "ubuntu", "24.04"),
        ("rhel-9.4", "rhel", "9.4"),
        ("rhel-9.6", "rhel", "9.6"),
    ],
)
def test_a_node_bears_the_name_of_a_supported_system(present_as: str, id_: str, version: str) -> None:
    found = os_release(present_as)
    assert (found["ID"], found["VERSION_ID"]) == (id_, version)
    assert systems.choose("", present_as).name == "debian-12"
    assert systems.choose("debian-13", present_as).name == "debian-13"


def test_ubuntus_kernel_packages_are_there_under_the_name_of_the_running_kernel() -> None:
    files = distribution.files(systems.PRESENTATIONS["ubuntu-24.04"], KERNEL)
    index = files[f"{distribution.SHELF}/Packages"].decode()
    names = [line.partition(": ")[2] for line in index.splitlines() if line.startswith("Package: ")]
    assert names == ["build-essential", f"linux-headers-{KERNEL}", f"linux-modules-extra-{KERNEL}"]
    for line in index.splitlines():
        if line.startswith("Filename: "):
            assert f"{distribution.SHELF}/{line.partition(': ')[2]}" in files


def test_red_hats_base_provides_what_the_vendors_packages_need() -> None:
    files = distribution.files(systems.PRESENTATIONS["rhel-9.4"], KERNEL)
    spec = files[f"{distribution.SHELF}/base.spec"].decode()
    assert f"Provides: kernel-devel-{KERNEL}\n" in spec
    assert "Provides: system-release(releasever) = 9\n" in spec
    assert files["/etc/redhat-release"] == b"Red Hat Enterprise Linux release 9.4 (Plow)\n"


def test_each_system_has_an_image_of_its_own() -> None:
    names = {name: image_name(system) for name, system in systems.SYSTEMS.items()}
    assert len(set(names.values())) == 3
    assert names["debian-12"].startswith("localhost/gaudi3-node:")
    assert image_name(systems.SYSTEMS["debian-12"], dnf=True).startswith("localhost/gaudi3-node-dnf:")
    assert image_name(systems.SYSTEMS["debian-12"], torch=True).startswith("localhost/gaudi3-node-torch:")


@pytest.mark.parametrize(
    ("system", "present_as", "message"),
    [
        ("debian-10", "", "--system was debian-10: give one of debian-11, debian-12, debian-13."),
        ("", "sles-15", "--present-as was sles-15: give one of ubuntu-22.04, ubuntu-24.04, rhel-9.4, rhel-9.6."),
        ("debian-11", "rhel-9.4", "--present-as rhel-9.4 needs dnf of Debian 12 or 13: leave out --system."),
    ],
)
def test_an_unknown_system_is_refused_in_a_sentence(system: str, present_as: str, message: str) -> None:
    with pytest.raises(SimulatorError) as refused:
        cluster.up("c", 1, 8, False, lambda _: None, None, system, present_as)
    assert str(refused.value) == message


@pytest.mark.usefixtures("own_home")
def test_a_cluster_keeps_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Cluster("c", "10.89.80.0/24", system="debian-13", present_as="ubuntu-24.04", kernel=KERNEL)
    monkeypatch.setattr(cluster, "bring_up", lambda name, wanted, log: wanted(made))
    assert cluster.up("c", 1, 8, False, lambda _: None).present_as == "ubuntu-24.04"
    with pytest.raises(SimulatorError, match=r"Cluster c has --present-as ubuntu-24\.04: give another --name"):
        cluster.up("c", 1, 8, False, lambda _: None, None, "", "rhel-9.4")
    with pytest.raises(SimulatorError, match=r"Cluster c has --kernel 6\.8\.0-60-generic: give another --name"):
        cluster.up("c", 1, 8, False, lambda _: None, kernel="6.8.0-51-generic")
    made.save()
    assert read_cluster(made.folder / "cluster.json").kernel == KERNEL


def test_the_rpm_packages_are_those_of_apt_under_the_vendors_names() -> None:
    every = {each.name: rpm.spec(each).splitlines() for each in catalogue.packages("1.24.0-1007")}
    driver = every["habanalabs-dkms"]
    assert driver[:3] == ["Name: habanalabs", "Version: 1.24.0", "Release: 1007.el9"]
    assert "BuildArch: noarch" in driver
    assert "Requires: habanalabs-firmware = 1.24.0-1007.el9" in driver
    assert "%post" in driver
    assert "%preun" in driver
    tools = every["habanalabs-firmware-tools"]
    assert '%attr(0755, root, root) "/usr/bin/hl-smi"' in tools
    assert "BuildArch: x86_64" in tools
    assert "Requires: ethtool" in every["habanalabs-qual"]
    assert '%attr(0644, root, root) %config(noreplace) "/etc/profile.d/habanalabs.sh"' in every["habanalabs-graph"]
