"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {
    "hccl-no-timeouts": True,
    "hccl-error-texts": True,
    "hccl-reductions": True,
    "hccl-types": True,
    "hccl-operations": True,
    "hccl-reduces-in-float32": True,
    "hl-smi-numbers-in-reset": True,
    "hl-smi-odd-cells": False,
    "hl-smi-power-54v": True,
    "hl-smi-rows-unsorted": True,
    "hl-smi-holds-devices": True,
    "hl-smi-takes-time": True,
    "hlml-needs-driver": True,
    "hlml-index-is-minor": True,
    "hlml-pcie-link-unsupported": True,
    "device-files-render": False,
    "iommu-group": True,
    "uncabled-ports-stay-down": True,
    "no-port-devices-fail": True,
    "nic-counters": True,
    "own-name-on-loopback": False,
    "vendor-sources-file": False,
    "venv-in-closed-home": True,
    "package-redirect": True,
    "modules-load-d": False,
    "empty-module": True,
}
