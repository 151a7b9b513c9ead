"""Which check has to find which fault of the simulator, at which component, with which action."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_simulator.node import faults

CARD, PORT = "accel3", "accel3 port 7"
NODE = "node"
NODE_FAULT, USER_FAULT, CHECK_ERROR = "node fault", "user fault", "check error"


@dataclass(frozen=True)
class Case:
    """One fault, as it is put on the node, and the verdict that is meant for it.

    ``setup`` is what makes the fault show: loading the driver anew, an IOMMU that translates, a run of hl_qual.
    ``reads`` are the readings, ten seconds apart.
    """

    fault: str
    check: str
    component: str
    action: str
    kind: str = NODE_FAULT
    options: tuple[str, ...] = ()
    setup: str = ""
    reads: int = 3

    @property
    def name(self) -> str:
        """The check without what a finding adds to its name."""
        return self.check.partition(":")[0]


def _card(fault: str, check: str, action: str, *options: str, kind: str = NODE_FAULT) -> Case:
    return Case(fault, check, CARD, action, kind, ("--card", "3", *options))


def _port(fault: str, check: str, action: str, reads: int = 3) -> Case:
    return Case(fault, check, PORT, action, options=("--card", "3", "--port", "7"), reads=reads)


def _qual(fault: str, mode: str, *options: str) -> Case:
    return Case(fault, f"hl-qual:{mode}", CARD, "isolate", options=("--card", "3", *options), setup="hl_qual")


CASES = (
    Case("driver-not-loaded", "driver-loaded", NODE, "reload"),
    Case("module-not-built", "driver-built", NODE, "configure"),
    Case("module-empty", "driver-built", NODE, "configure"),
    Case("module-rejected", "kernel-log:module-rejected", NODE, "configure", setup="reload"),
    Case("no-firmware", "kernel-log:firmware-file-missing", "BUS", "configure", setup="reload"),
    Case("version-skew", "driver-version", NODE, "reload"),
    Case("card-missing", "card-count", NODE, "reboot", options=("--card", "3")),
    Case("bad-pagetable", "kernel-log:page-table", NODE, "configure", setup="translated"),
    Case("no-uverbs", "rdma-files", NODE, "configure"),
    Case("release-mismatch", "acquire", NODE, "configure", USER_FAULT),
    Case("hl-smi-garbage", "reading", "hl-smi", "none", CHECK_ERROR),
    Case("hl-smi-hang", "reading", "hl-smi", "none", CHECK_ERROR),
    Case("gaudinet-empty", "gaudinet", NODE, "configure"),
    Case("gaudinet-wrong", "gaudinet", NODE, "configure"),
    _card("card-in-reset", "card-status", "retry"),
    _card("needs-reset", "card-status", "reset"),
    _card("in-device-creation", "card-status", "reload"),
    _card("reset-failed", "kernel-log:reset-failed", "reload"),
    _card("cpu-timeout", "kernel-log:processor-silent", "replace"),
    _card("temperature-zero", "card-temperature", "reset"),
    Case("temperature-absurd", "reading", "accel3 temperature_c", "none", CHECK_ERROR, ("--card", "3")),
    _card("pcie-width", "pcie-width", "reboot"),
    _card("pcie-generation", "pcie-generation", "reboot"),
    _card("throttled-power", "throttled-power", "watch"),
    _card("throttled-thermal", "throttled-thermal", "watch"),
    _card("ecc-uncorrected", "memory-uncorrected", "reset"),
    _card("ecc-corrected", "memory-corrected", "watch"),
    _card("row-pending", "memory-rows", "reset"),
    _card("memory-kept", "memory-kept", "reset"),
    _card("device-acquired", "leftover-process", "free", kind=USER_FAULT),
    _card("spi-release", "firmware-flashed", "configure"),
    _card("firmware-skew", "firmware-loaded", "reload"),
    _card("kernel-event", "kernel-log:memory-error-double", "reset"),
    _qual("qual-failed", "functional"),
    _qual("slow-card", "memory-bandwidth"),
    _qual("slow-link", "nic", "--port", "7"),
    _card("port-pfc", "port-flow-control", "configure"),
    _port("port-down", "port-internal", "reload"),
    Case("port-down", "port-external", "accel3 port EXTERNAL", "retry", options=("--card", "3")),
    _port("port-flapping", "port-flapping", "reload", reads=5),
    _port("port-symbol-errors", "port-symbol-errors", "reload"),
    Case("mac-timeout", "kernel-log:mac-timeout", CARD, "reload", options=("--card", "3", "--port", "7")),
    Case("port-mtu", "port-mtu", "accel3 port EXTERNAL", "configure", options=("--card", "3")),
)
#: Faults whose names the simulator of this checkout has.
KNOWN = tuple(case for case in CASES if case.fault in faults.REGISTRY)

#: What a family of findings is called in the table of checks.
FAMILIES = {
    "pcie-width": "pcie",
    "pcie-generation": "pcie",
    "throttled-power": "throttled",
    "throttled-thermal": "throttled",
    "firmware-flashed": "firmware",
    "firmware-loaded": "firmware",
}
