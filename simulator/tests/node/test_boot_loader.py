"""What the kernel is started with: what update-grub or grubby wrote, whatever the settings say by now."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulated_machine import Machine

from gaudi3_simulator import nodes
from gaudi3_simulator.home import Cluster, Node
from gaudi3_simulator.node import launchers

DROP_IN = "/etc/default/grub.d/50-site.cfg"
ADDED = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt"\n'
GRUB = "/boot/grub/grub.cfg"


def started_with(machine: Machine) -> list[str]:
    """The options of the boot loader at the last start."""
    machine.reboot()
    runtime = machine.path("/run/gaudi3-simulator/runtime.json").read_text()
    return runtime.partition('"boot_options": "')[2].partition('"')[0].split()


def test_settings_count_once_update_grub_has_run(machine: Machine) -> None:
    machine.write("/etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="console=tty0"\n')
    machine.write(DROP_IN, ADDED)
    assert started_with(machine) == []
    machine.ok("update-grub")
    assert "simulator" in machine.read(GRUB).splitlines()[0]
    assert started_with(machine) == ["console=tty0", "quiet", "iommu=pt"]
    machine.path(DROP_IN).unlink()
    assert started_with(machine) == ["console=tty0", "quiet", "iommu=pt"]
    machine.ok("update-grub")
    assert started_with(machine) == ["console=tty0", "quiet"]


@pytest.mark.parametrize(
    "text", ['GRUB_CMDLINE_LINUX="iommu=pt\n', "GRUB_CMDLINE_LINUX=iommu=pt quiet_not_there\n", "exit 3\n"]
)
def test_settings_that_a_shell_does_not_read_change_nothing(machine: Machine, text: str) -> None:
    machine.write(DROP_IN, ADDED)
    machine.ok("update-grub")
    before = machine.read(GRUB)
    machine.write("/etc/default/grub", text)
    result = machine.run("update-grub")
    assert result.code != 0 and result.err.startswith("update-grub: ")
    assert machine.read(GRUB) == before


def test_only_root_writes(machine: Machine) -> None:
    machine.as_user(1000)
    for tool, more in (("update-grub", ()), ("grubby", ("--update-kernel=ALL", "--args=iommu=pt"))):
        assert machine.run(tool, *more).code == 1
    assert not machine.path("/boot").exists()


def test_grubby_adds_takes_out_and_shows(machine: Machine) -> None:
    assert 'args="ro"' in machine.ok("grubby", "--info=DEFAULT").lines
    machine.ok("grubby", "--update-kernel=ALL", "--args=iommu=pt intel_iommu=on")
    machine.ok("grubby", "--update-kernel", "DEFAULT", "--args", "iommu=pt quiet")
    (shown,) = [line for line in machine.ok("grubby", "--info=ALL").lines if line.startswith('args="ro ')]
    assert sorted(shown[:-1].split()[1:]) == ["intel_iommu=on", "iommu=pt", "quiet"]
    assert sorted(started_with(machine)) == ["intel_iommu=on", "iommu=pt", "quiet"]
    # A key has one value.
    machine.ok("grubby", "--update-kernel=ALL", "--args=intel_iommu=off", "--remove-args=iommu=pt quiet")
    assert started_with(machine) == ["intel_iommu=off"]
    refused = machine.run("grubby", "--set-default=0")
    assert (refused.code, refused.err) == (1, "grubby: --set-default=0 is not simulated\n")


@pytest.mark.parametrize(
    ("present_as", "tool"),
    [("", "update-grub"), ("ubuntu-24.04", "update-grub"), ("rhel-9.4", "grubby"), ("rhel-9.6", "grubby")],
)
def test_a_node_has_the_tool_of_its_system(
    bare: Callable[..., Machine], present_as: str, tool: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("node")
    nodes._add_cards(root, Node("gaudi-1", "10.42.0.11", 1), Cluster("c", "10.42.0.0/16", present_as=present_as))
    there = [path.name for path in (root / "usr/sbin").iterdir()]
    assert there == [tool]
    assert (root / "usr/sbin" / tool).stat().st_mode & 0o777 == 0o755
    assert "stand-in" in (root / "usr/sbin" / tool).read_text().lower()
    assert tool not in str(launchers.image_files())
