"""The rules and their defaults."""

# Written by `make strictness`; edit simulator/strictness.yml instead.

RULES: dict[str, bool] = {
    "hlml-needs-driver": True,
    "hlml-index-is-minor": True,
    "hlml-pcie-link-unsupported": True,
    "device-files-render": False,
    "iommu-group": True,
    "uncabled-ports-stay-down": True,
    "no-port-devices-fail": True,
    "nic-counters": True,
}
