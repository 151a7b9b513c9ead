# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Drivers: packages, the loaded driver, its ports, and the unit that brings both up at each boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._host.service_state import is_unchanged
from .addresses import addresses_here
from .given import demand_facts, fact, listed, truth
from .model import Answers, Phase, Question, Values, empty, mapping
from .run import Run

DRIVER = "Load the driver, bring its ports up and read both back"
PACKAGES = "Bring the packages to the release (apt)"
HOLDS = "Hold back kernels that have no driver"
BOOT = "Have driver and external ports brought up at each boot"


def decide(values: Values) -> Mapping[str, Any]:
    """What role synapseai installs on this host, in the words of its distribution."""
    demand_facts(values)
    packages = [*listed(values("synapseai_packages"))]
    packages += ["habanalabs-container-runtime"] if truth(values, "synapseai_container_runtime") else []
    jobs = values("trainer_jobs_dir") or "/var/lib/gaudi3-scale/jobs"
    named = ["habanalabs" if name == "habanalabs-dkms" else name for name in packages]
    release = f"{values('synapseai_release')}.el{fact(values, 'distribution_major_version')}"
    where = addresses_here(values)
    return {
        "repository_url": where["apt"],
        "key_url": where["apt_key"],
        "rpm_url": where["rpm"],
        "rpm_key_url": where["rpm_key"],
        "prerequisites": _prerequisites(values),
        "packages": packages,
        "rpm_packages": named,
        "rpm_release": release,
        "rpm_set": [f"{name}-{release}" for name in named],
        # HABANA_LOGS of the vendor's profile file, and of each job.
        "log_folders": ["/var/log/habana_logs", f"{jobs}/*/habana_logs"],
    }


def _prerequisites(values: Values) -> list[str]:
    """What compiles the driver and the thunk on the node, and reads its ports."""
    kernel = fact(values, "kernel")
    return {
        "Ubuntu": ["build-essential", f"linux-headers-{kernel}", f"linux-modules-extra-{kernel}", "ethtool"],
        "RedHat": ["gcc", "make", f"kernel-devel-{kernel}", "ethtool"],
    }.get(fact(values, "distribution"), [])


def _asks(run: Run, _values: Values) -> bool:
    return run.needs_cards


def _on_debian(values: Values) -> bool:
    return fact(values, "os_family") == "Debian"


def by_dnf(values: Values) -> bool:
    """Whether dnf installs the packages there."""
    return fact(values, "os_family") == "RedHat"


def runs(answers: Answers) -> bool:
    """Whether the release is installed and its driver runs. What dnf installs is not known, and the role runs there."""
    driver = mapping(answers, "driver")
    return (
        empty(mapping(answers, "packages"), "done")
        and empty(driver, "unloaded")
        and empty(driver, "loaded")
        and driver.get("ports_brought_up") is False
        and driver.get("reboot_required") is False
    )


def _unchanged(_values: Values, answers: Answers) -> bool:
    holds = mapping(answers, "holds").get("changed")
    return runs(answers) and is_unchanged(mapping(answers, "boot")) and holds is False


PHASE = Phase(
    "drivers",
    [
        Question("driver", "synapseai", DRIVER),
        Question("packages", "synapseai", PACKAGES, applies=_on_debian),
        Question("holds", "synapseai", HOLDS, applies=_on_debian),
    ],
    _asks,
    _unchanged,
    details=[Question("boot", "synapseai", BOOT)],
)
