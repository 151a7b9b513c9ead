"""The tuning role on hosts of several sizes and kernels."""

from __future__ import annotations

from .cluster import Cluster

SETTINGS = "Set huge pages, CPU governor and NUMA balancing, now and at boot"
REMARK = "Tell what hosts do not have"


def test_it_never_lowers_huge_pages_and_remarks_idle_states(cluster: Cluster) -> None:
    cluster.add("vendor", "gaudi", cards=1, kernel="5.15.0-130-generic")
    cluster.add("bare", "gaudi", cards=1, kernel="5.4.0-200-generic", passthrough=False)
    cluster.add("off", "gaudi", cards=0, kernel="6.8.0-60-generic", variables={"tuning_cstates": "unmanaged"})
    for host in cluster.hosts.values():
        host.write("/sys/devices/system/cpu/online", "0-159\n")
        host.write("/proc/sys/vm/nr_hugepages", "17601\n" if host.name == "vendor" else "15000\n")
        host.write("/proc/sys/kernel/numa_balancing", "0\n")
        host.write("/proc/cmdline", host.path("/proc/cmdline").read_text() if host.name == "vendor" else "quiet\n")
    run = cluster.role("tuning")
    assert run.returncode == 0, run.messages()
    pages = {name: host.path("/proc/sys/vm/nr_hugepages").read_text() for name, host in cluster.hosts.items()}
    assert set(pages.values()) == {"17601\n"}
    live = {
        name: run.result(name, "Set huge pages, CPU governor and NUMA balancing, now and at boot")["live"]
        for name in pages
    }
    assert [setting["name"] for setting in live["bare"]] == ["vm.nr_hugepages"] and live["vendor"] == []
    remarks = run.result("vendor", REMARK)["msg"]
    passthrough = "The kernel was started without iommu=pt intel_iommu=on, with which no IOMMU translates the cards' "
    passthrough += "addresses, see tuning_kernel_command_line_state."
    assert remarks == [
        "vendor, bare, off: This kernel does not offer /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor.",
        "vendor: The kernel was started without intel_idle.max_cstate=0, which the vendor documents for kernels from "
        "5.9 on, see tuning_cstates.",
        f"bare, off: {passthrough}",
    ]
    again = cluster.role("tuning")
    assert again.returncode == 0 and again.changed() == set(), again.changed()


def test_what_a_node_cannot_be_set_to_is_refused_before_another_is_changed(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=1)
    for host in cluster.hosts.values():
        host.write("/proc/sys/vm/nr_hugepages", "0\n")
        host.write("/proc/sys/vm/swappiness", "60\n")
    cluster.variables["gaudi-1"] |= {"tuning_hugepages": "nonsense"}
    cluster.variables["gaudi-2"] |= {"tuning_sysctl": {"vm.swappiness": "little"}}
    before = [host.files() for host in cluster.hosts.values()]
    run = cluster.play("site.yml", "--tags", "tuning")
    assert run.returncode != 0 and run.changed() == set()
    assert set(run.messages()) >= {
        "vm.nr_hugepages cannot be 'nonsense': give a number, or auto for that of the vendor's installer.",
        "vm.swappiness cannot be 'little': the kernel has 60 there, so give a number.",
    }
    assert [host.files() for host in cluster.hosts.values()] == before
