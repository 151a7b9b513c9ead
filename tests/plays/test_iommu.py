"""Cards behind an IOMMU that translates addresses: refused first of all, or mended before the driver is loaded."""

from __future__ import annotations

import shutil

from .cluster import Cluster
from .host import Host

CONSENT = {"tuning_kernel_command_line_state": "present", "tuning_reboot_allowed": True}


def addresses(host: Host) -> list[str]:
    """PCI addresses of the host's cards."""
    return sorted(path.name for path in host.path("/sys/bus/pci/devices").iterdir())


def set_type(host: Host, bus_id: str, kind: str) -> None:
    """Put one card into an IOMMU group of this type."""
    group = host.path("/sys/bus/pci/devices") / bus_id / "iommu_group"
    (group.resolve() / "type").chmod(0o644)
    (group.resolve() / "type").write_text(kind + "\n")


def test_a_card_that_is_translated_stops_all_on_any_kernel(cluster: Cluster) -> None:
    cluster.add("one", "gaudi", "gaudi_head", cards=2, kernel="5.15.0-130-generic")
    cluster.add("both", "gaudi", cards=2, kernel="6.8.0-60-generic", passthrough=False)
    cluster.add("skipped", "gaudi", cards=1, kernel="6.1.0-30-amd64", passthrough=False, variables=CONSENT)
    cluster.add("vm", "gaudi", cards=1, kernel="6.8.0-60-generic")
    cluster.add("accepted", "gaudi", cards=1, passthrough=False, variables={"tuning_accept_translated_iommu": True})
    word = {"tuning_accept_translated_iommu": "false", "tuning_reboot_allowed": "no"}
    cluster.add("word", "gaudi", cards=1, passthrough=False, variables={**CONSENT, **word})
    cluster.add("sound", "gaudi", cards=1)
    second = addresses(cluster["one"])[1]
    set_type(cluster["one"], second, "DMA")
    shutil.rmtree(cluster["vm"].path("/sys/kernel/iommu_groups"))
    (cluster["vm"].path("/sys/bus/pci/devices") / addresses(cluster["vm"])[0] / "iommu_group").unlink()
    run = cluster.play("site.yml", "--check", "--tags", "fabric")
    assert run.returncode != 0 and run.changed() == set()
    refused = {message.split(": ")[0]: message for message in run.messages()}
    assert set(refused) == {"one", "both", "skipped", "word"}
    assert refused["one"] == (
        f"one: card {second} is behind an IOMMU that translates addresses (iommu_group/type is DMA), which may make "
        "results wrong or stop the kernel: the kernel was started with iommu=pt intel_iommu=on, so look for another "
        "argument on its command line, or for a setting of its firmware, that asks for translation."
    )
    assert f"card {addresses(cluster['both'])[0]} and 1 more are behind" in refused["both"]
    assert refused["both"].endswith(
        ": start the kernel with iommu=pt intel_iommu=on, by hand or in this run, with "
        "tuning_kernel_command_line_state=present and tuning_reboot_allowed=true, which reboots the node before its "
        "driver is loaded."
    )
    assert "this run leaves out the phase tuning, which would start the kernel with iommu=pt" in refused["skipped"]


def test_with_consent_the_node_is_rebooted_before_the_driver_is_loaded(cluster: Cluster) -> None:
    """The last step cannot be taken here: a reboot of this machine is refused by Ansible."""
    cluster.gaudi(1, cards=1, kernel="5.15.0-130-generic", passthrough=False, driver=False, packages=True)
    # As -e NAME=VALUE gives them, which the refusal advises.
    cluster.all = {name: str(value).lower() for name, value in CONSENT.items()}
    host = cluster["gaudi-1"]
    (host.folder / "bin/update-grub").write_text(f"#!/bin/sh\necho update-grub >> {host.folder}/calls\n")
    (host.folder / "bin/update-grub").chmod(0o755)
    run = cluster.play("site.yml", "--tags", "tuning,drivers")
    assert run.messages() == ["Running ansible.builtin.reboot with local connection would reboot the control node."]
    assert host.calls == ["update-grub"]
    assert "iommu=pt intel_iommu=on" in host.path("/etc/default/grub.d/90-gaudi3-scale.cfg").read_text()
    assert not host.path("/sys/module/habanalabs").exists()
