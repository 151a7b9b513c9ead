# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Calling hl-smi: its arguments, its environment, its exit codes."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Optional, TypeVar

from .hl_smi import (
    QUERY_FIELDS,
    ROW_FIELDS,
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
#: Bytes that a tool may print, more than any log of a node has: without end, that would be all memory.
OUTPUT_LIMIT = 2**26

# Options which every module calling hl-smi has; described once, in the documentation fragment hl_smi.
HL_SMI_SPEC = {
    "executable": {"type": "path", "default": "hl-smi"},
    "timeout": {"type": "int", "default": 30},
}

Parsed = TypeVar("Parsed")


class HlSmiMissing(HlSmiError):
    """There is no hl-smi on this host."""


class HlSmiHung(HlSmiError):
    """A tool gave no answer in time, or one without end."""


class DriverDown(HlSmiError):
    """hl-smi is there and says that the driver is not up."""


class HlSmi:
    """One hl-smi and how to ask it; ``run`` takes arguments and returns exit code, output and error text."""

    def __init__(self, path: str, run: Callable[[list[str]], tuple[int, str, str]]) -> None:
        self._path = path
        self._run = run

    def _call(self, *arguments: str) -> str:
        try:
            code, output, error = self._run([self._path, *arguments])
        except OSError as why:
            raise HlSmiError(f"{self._path} cannot be started ({why.strerror})") from why
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

    def replaced_rows(self) -> list[dict[str, str]]:
        """The rows of all cards' memory that were replaced, each with its address and cause."""
        arguments = ("--query-row-replacement", ",".join(ROW_FIELDS), "-f", "csv,noheader")
        return self._parsed(arguments, lambda output: parse_csv(output, ROW_FIELDS))

    def _parsed(self, arguments: tuple[str, ...], parse: Callable[[str], Parsed]) -> Parsed:
        output = self._call(*arguments)
        try:
            return parse(output)
        except HlSmiError as error:
            raise HlSmiError(f"{self._name(arguments)} was not understood: {error}") from error


class Runner:
    """Runs tools, one call at a time. One that hangs, as a card in reset can hold it in the kernel, is killed.

    ``timeout`` is in seconds; ``env`` is added to the environment of this process.
    """

    def __init__(
        self, timeout: float, env: Optional[Mapping[str, str]] = None, output_limit: int = OUTPUT_LIMIT
    ) -> None:
        self.timeout = timeout
        self._env = {**os.environ, "LC_ALL": "C", "ENABLE_CONSOLE": "true", **(env or {})}
        self._output_limit = output_limit
        self._killed: dict[str, subprocess.Popen[bytes]] = {}

    def __call__(self, arguments: list[str]) -> tuple[int, str, str]:
        """Exit code, output and error text; OSError where the tool cannot be started.

        HlSmiHung where it gives no answer in time or prints without end. While a killed call is there, no other of the
        same tool is started.
        """
        name = os.path.basename(arguments[0])
        killed = self._killed.get(arguments[0])
        if killed is not None and killed.poll() is None:
            raise HlSmiHung(f"{name} is still held in the kernel since a call that had to be killed")
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
            start_new_session=True,
        )
        try:
            output, error = self._collect(process)
        except (subprocess.TimeoutExpired, OverflowError) as stopped:
            with suppress(ProcessLookupError):  # it ended at this moment
                os.killpg(process.pid, signal.SIGKILL)  # and not waited for: the kernel may hold it
            self._killed[arguments[0]] = process
            if isinstance(stopped, OverflowError):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1)  # it was busy, not held
                raise HlSmiHung(f"{name} printed more than {self._output_limit} bytes") from None
            raise HlSmiHung(
                f"{name} gave no answer in {self.timeout:g} seconds: a card may be in reset, so try again or raise "
                "'timeout'"
            ) from None
        return process.returncode, output, error

    def _collect(self, process: subprocess.Popen[bytes]) -> tuple[str, str]:
        """What a process prints to its output and its errors until it ends."""
        deadline = time.perf_counter() + self.timeout
        pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
        printed = {pipe.fileno(): bytearray() for pipe in pipes}
        with ExitStack() as opened:
            selector = opened.enter_context(selectors.DefaultSelector())
            for pipe in pipes:
                selector.register(opened.enter_context(pipe), selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(deadline - time.perf_counter(), 0))
                if not ready:
                    raise subprocess.TimeoutExpired(process.args, self.timeout)
                for key, _events in ready:
                    piece = os.read(key.fd, 65536)
                    printed[key.fd] += piece
                    if not piece:
                        selector.unregister(key.fileobj)
                    if len(printed[key.fd]) > self._output_limit:
                        raise OverflowError
            process.wait(max(deadline - time.perf_counter(), 0.1))
        output, error = (text.decode(errors="replace") for text in printed.values())
        return output, error


def environment(module: AnsibleModule) -> dict[str, str]:
    """What hl-smi needs in its environment besides: a folder for its logs that it can write."""
    logs = os.environ.get("HABANA_LOGS") or LOG_DIRECTORY
    return {"HABANA_LOGS": logs if os.access(logs, os.W_OK) else module.tmpdir}


def runner(module: AnsibleModule) -> Runner:
    """Runs tools for at most the seconds of a module's option ``timeout``."""
    return Runner(module.params["timeout"], environment(module))


def from_module(module: AnsibleModule) -> HlSmi:
    """The hl-smi a module's options name, or HlSmiMissing."""
    path = module.get_bin_path(module.params["executable"])
    if path is None:
        raise HlSmiMissing(
            f"{module.params['executable']} was not found on this host: install package "
            "habanalabs-firmware-tools (role gaudi3.scale.synapseai does), or give its path as 'executable'"
        )
    return HlSmi(path, runner(module))
