# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Units that read the cards all the time, out of the way while the driver is taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._cards.accel import User

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class Exporters:
    """The units of a node that run and read its cards."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self._running: list[str] = []

    def find(self) -> None:
        """See which of the units run; a node without systemd has none."""
        systemctl = self.module.get_bin_path(self.module.params["systemctl"])
        units = self.module.params["exporters"] if systemctl else []
        self._running = [
            unit for unit in units if self.module.run_command([systemctl, "is-active", "--quiet", unit])[0] == 0
        ]

    def has(self, user: User) -> bool:
        """Whether a process is, or may be, one of a unit's: it ends with the unit.

        A container's is not in the unit's control group; like hl-smi, it reads through control devices.
        """
        return user.unit in self._running or (bool(self._running) and user.control)

    def stop(self) -> list[str]:
        """Stop the units that run; those that were stopped."""
        for unit in self._running:
            self._systemctl("stop", unit)
        return self._running

    def start(self) -> None:
        """Start again what was stopped; a unit that does not start is warned about."""
        for unit in self._running:
            complaint = self._systemctl("start", unit)
            if complaint:
                self.module.warn(f"{unit} was stopped for the driver and does not start again: {complaint}")

    def _systemctl(self, verb: str, unit: str) -> str:
        systemctl = self.module.get_bin_path(self.module.params["systemctl"], required=True)
        status, _output, errors = self.module.run_command([systemctl, verb, unit])
        return "" if status == 0 else (str(errors).strip() or f"exit code {status}")
