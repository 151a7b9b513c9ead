# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Calling hl-smi: its arguments, its environment, its exit codes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, TypeVar

from .hl_smi import (
    QUERY_FIELDS,
    UNCONFIRMED_FIELDS,
    HlSmiError,
    Log,
    Port,
    parse_counters,
    parse_csv,
    parse_links,
    parse_log,
    parse_ports,
    quote,
)

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

LOG_DIRECTORY = "/var/log/habana_logs/"

# Options which every module calling hl-smi has; described once, in the documentation fragment hl_smi.
ARGUMENT_SPEC = {
    "executable": {"type": "path", "default": "hl-smi"},
    "timeout": {"type": "int", "default": 30},
}

Parsed = TypeVar("Parsed")


class HlSmiMissing(HlSmiError):
    """There is no hl-smi on this host."""


class HlSmiHung(HlSmiError):
    """hl-smi gave no answer in time."""


class DriverDown(HlSmiError):
    """hl-smi is there and says that the driver is not up."""


class HlSmi:
    """One hl-smi and how to ask it; ``run`` takes arguments and returns exit code, output and error text."""

    def __init__(self, path: str, run: Callable[[list[str]], tuple[int, str, str]]) -> None:
        self._path = path
        self._run = run

    def _call(self, *arguments: str) -> str:
        code, output, error = self._run([self._path, *arguments])
        if code == 0:
            return output
        said = next((line for line in (error + "\n" + output).splitlines() if line.strip()), "nothing")
        if code == 1:
            raise DriverDown(
                f"hl-smi says that the Gaudi driver is not up (exit code 1 and {quote(said)}): load the "
                "kernel modules, as role gaudi3.scale.synapseai does, and see the kernel log for "
                "'habanalabs' if they are loaded"
            )
        raise HlSmiError(f"{self._name(arguments)} ended with exit code {code} and said {quote(said)}")

    @staticmethod
    def _name(arguments: tuple[str, ...]) -> str:
        return "command " + quote(" ".join(["hl-smi", *arguments]), 60)

    def query(self, fields: tuple[str, ...] = QUERY_FIELDS) -> list[dict[str, str]]:
        """The cards' csv rows; an unconfirmed field is left out when the tool refuses the whole list."""
        confirmed = tuple(name for name in fields if name not in UNCONFIRMED_FIELDS)
        try:
            return self._query(fields)
        except HlSmiHung:
            raise
        except HlSmiError:
            if confirmed == fields:
                raise
            return self._query(confirmed)

    def _query(self, fields: tuple[str, ...]) -> list[dict[str, str]]:
        arguments = ("-Q", ",".join(fields), "-f", "csv,noheader,nounits")
        return self._parsed(arguments, lambda output: parse_csv(output, fields))

    def log(self) -> Log:
        """The detail log of every card."""
        return self._parsed(("-L",), parse_log)

    def ports(self, bus_id: str) -> list[Port]:
        """The ports of a card, without their link state."""
        return self._parsed(("-n", "ports", "-i", bus_id), parse_ports)

    def links(self, bus_id: str, ports: list[Port]) -> list[Port]:
        """The same ports with their link state; without port numbers the tool tells of internal ones only."""
        numbers = ",".join(str(port.port) for port in ports)
        links = self._parsed(("-n", "link", "-i", bus_id, "-P", numbers), parse_links)
        return [replace(port, link=links.get(port.port)) for port in ports]

    def counters(self, bus_id: str, ports: list[Port]) -> list[Port]:
        """The same ports with their counters."""
        numbers = ",".join(str(port.port) for port in ports)
        found = self._parsed(("-n", "stats", "-i", bus_id, "-P", numbers), parse_counters)
        return [replace(port, counters=found.get(port.port)) for port in ports]

    def _parsed(self, arguments: tuple[str, ...], parse: Callable[[str], Parsed]) -> Parsed:
        output = self._call(*arguments)
        try:
            return parse(output)
        except HlSmiError as error:
            raise HlSmiError(f"{self._name(arguments)} was not understood: {error}") from error


def environment(module: AnsibleModule) -> dict[str, str]:
    """The environment hl-smi needs: output switched on, and a folder for its logs that it can write."""
    logs = os.environ.get("HABANA_LOGS") or LOG_DIRECTORY
    if not os.access(logs, os.W_OK):
        logs = module.tmpdir
    return dict(os.environ, LC_ALL="C", ENABLE_CONSOLE="true", HABANA_LOGS=logs)


def run_with_timeout(arguments: list[str], env: dict[str, str], timeout: int) -> tuple[int, str, str]:
    """Run a tool. One that hangs, as a card in reset can hold it in the kernel, is killed."""
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    try:
        output, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: a process held in the kernel does not end
        name = os.path.basename(arguments[0])
        raise HlSmiHung(
            f"{name} gave no answer in {timeout} seconds: a card may be in reset, so try again or raise 'timeout'"
        ) from None
    return process.returncode, output.decode(errors="replace"), error.decode(errors="replace")


def from_module(module: AnsibleModule) -> HlSmi:
    """The hl-smi a module's options name, or HlSmiMissing."""
    path = module.get_bin_path(module.params["executable"])
    if path is None:
        raise HlSmiMissing(
            f"{module.params['executable']} was not found on this host: install package "
            "habanalabs-firmware-tools (role gaudi3.scale.synapseai does), or give its path as 'executable'"
        )
    env = environment(module)
    return HlSmi(path, lambda arguments: run_with_timeout(arguments, env, module.params["timeout"]))
