"""``hl-smi``: options, and which view prints what.

Only forms that the vendor documents exist here; there is no JSON output, as on hardware.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from . import faults, node, paths, releases, store
from .hl_smi_usage import UsageError
from .strictness import is_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .releases import Release

CONTROL = "/dev/accel/accel_controlD"
SECONDS = "/var/lib/gaudi3-simulator/hl-smi-seconds"
"""A file with the seconds that each call takes; without it, ``DEFAULT_SECONDS`` on a node and none in a test."""
DEFAULT_SECONDS = 0.1
SUBCOMMANDS = ("topo", "dmon")

NO_DRIVER = "hl-smi: the habanalabs driver is not up: no accelerator device can be opened"

# option: (name, argument: "no", "yes" or "may")
_OPTIONS = {
    "-L": ("query", "no"),
    "--list-aips": ("query", "no"),
    "-q": ("query", "no"),
    "--query": ("query", "no"),
    "-i": ("device", "yes"),
    "--device": ("device", "yes"),
    "-d": ("display", "yes"),
    "--display": ("display", "yes"),
    "-Q": ("fields", "yes"),
    "--query-aip": ("fields", "yes"),
    "-f": ("format", "yes"),
    "--format": ("format", "yes"),
    "-l": ("loop", "may"),
    "--loop": ("loop", "may"),
    "-n": ("network", "yes"),
    "--network": ("network", "yes"),
    "-P": ("ports", "yes"),
    "--fw-versions": ("firmware", "no"),
    "--fw-version": ("firmware", "no"),
    "--query-row-replacement": ("rows", "yes"),
    "-D": ("debug", "no"),
    "-p": ("power", "yes"),
    "--power-max": ("power", "yes"),
    "-r": ("reset", "no"),
    "--reset-aip": ("reset", "no"),
    "-v": ("version", "no"),
    "--version": ("version", "no"),
    "-h": ("help", "no"),
    "--help": ("help", "no"),
}

_HELP = """\
hl-smi, simulated: no Gaudi card was asked (gaudi3.scale simulator)

usage: hl-smi [OPTION]... | hl-smi topo [-c] [-N] | hl-smi dmon -i BUS_ID
  -L, --list-aips            detail log of each card
  -q, --query                detail log
  -i, --device BUS_ID        one card, by its PCI address such as 0000:19:00.0
  -d, --display SECTION      section of the log: PRODUCT, POWER, CLOCK, TEMPERATURE, FAN, BUS, MEMORY, NET,
                             ROW_REPLACEMENT
  -Q, --query-aip FIELDS     comma-separated fields
  -f, --format FORMAT        csv[,noheader][,nounits]
  -l, --loop [SECONDS]       repeat (5 seconds)
  -n, --network VIEW         ports, link or stats of the card named by -i
  -P PORTS                   comma-separated ports of that view
  --fw-versions              firmware versions
  --query-row-replacement FIELDS
                             replaced rows: uuid, replaced_rows.address, replaced_rows.cause
  -D                         debug: changes nothing here
  -p, --power-max WATTS      power limit of the card named by -i (root)
  -r, --reset-aip            reset the card named by -i (root)
  -v, --version              version
  -h, --help                 this text
"""


def main(arguments: Sequence[str], release: str) -> int:
    """Run ``hl-smi`` of a release; returns the exit code."""
    devices: list[int] = []
    try:
        options = parse(arguments)
        simulated = node.Node.load()
        if simulated.has_fault(faults.HL_SMI_HANG):
            while True:
                time.sleep(60)
        if simulated.has_fault(faults.HL_SMI_GARBAGE):
            _out("+-----------\n| HL-SM\x00\x07 Vers 0, , MiB, \n")
            return 0
        info = releases.release_info(release)
        if not {"help", "version"} & set(options):
            _view(options)  # a wrong option is told before a missing driver
            devices = open_devices(simulated)
            time.sleep(duration())
        if "loop" not in options:
            return _run(options, simulated, info)
        while True:
            code = _run(options, simulated, info)
            if code:
                return code
            sys.stdout.flush()
            time.sleep(float(options["loop"]))
            simulated = node.Node.load()
    except (UsageError, store.StateError) as error:
        sys.stderr.write(f"hl-smi: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has seen enough
        return 0
    finally:
        for device in devices:
            os.close(device)


def open_devices(simulated: node.Node) -> list[int]:
    """The control device of every card, held while hl-smi runs, so that the driver is in use meanwhile."""
    found: list[int] = []
    if not (simulated.driver_up and is_on("hl-smi-holds-devices")):
        return found
    for card in simulated.cards:
        path = f"{CONTROL}{card.index}"
        try:
            found.append(os.open(paths.at(path), os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise UsageError(f"{path} cannot be opened: {error.strerror}") from error
    return found


def duration() -> float:
    """Seconds that a call takes."""
    if not is_on("hl-smi-takes-time"):
        return 0.0
    try:
        return paths.seconds(SECONDS, DEFAULT_SECONDS)
    except ValueError as error:
        raise UsageError(str(error)) from None


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """Options by name, flags with an empty value."""
    options: dict[str, str] = {}
    rest = list(arguments)
    if rest and rest[0] in SUBCOMMANDS:
        return _parse_subcommand(rest.pop(0), rest)
    while rest:
        word = rest.pop(0)
        flag, separator, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        name, takes = _OPTIONS.get(flag, ("", "no"))
        attached = bool(separator or value)
        if not name or (attached and takes == "no"):
            raise UsageError(f"unknown option '{word}': see hl-smi -h")
        if takes == "yes" and not attached:
            if not rest:
                raise UsageError(f"option '{word}' needs a value: see hl-smi -h")
            value = rest.pop(0)
        elif takes == "may" and not attached and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        options[name] = value
    if "loop" in options:
        options["loop"] = _seconds(options["loop"] or "5")
    return options


def _parse_subcommand(name: str, arguments: list[str]) -> dict[str, str]:
    """``topo`` with the columns that it shall show, or ``dmon`` with a card."""
    if name == "dmon":
        if len(arguments) == 2 and arguments[0] in ("-i", "--device"):
            return {"dmon": "", "device": arguments[1]}
        raise UsageError("dmon needs one card: name it by its PCI address, such as dmon -i 0000:19:00.0")
    if arguments and set(arguments) <= {"-c", "-N"}:
        return {"topo": " ".join(arguments)}
    raise UsageError("topo shows processors with -c and memory with -N: give one or both")


def _seconds(text: str) -> str:
    try:
        if float(text) > 0:
            return text
    except ValueError:
        pass
    raise UsageError(f"'{text}' is no number of seconds: give one above 0, such as -l 5")


def _run(options: dict[str, str], simulated: node.Node, info: Release) -> int:
    if "help" in options:
        _out(_HELP)
        return 0
    if "version" in options:
        _out(f"Habanalabs hl-smi/hlml version {info.tool} ({releases.build_date(info)})\n")
        return 0
    if not simulated.driver_up:
        sys.stderr.write(NO_DRIVER + "\n")
        return 1
    cards = selected(simulated, options.get("device"))
    if "power" in options or "reset" in options:
        return _change(options, cards)
    _out(_view(options)(simulated, cards, info))
    return 0


def _view(options: dict[str, str]) -> Callable[[node.Node, list[node.Card], Release], str]:
    """The function that prints what the options ask for."""
    if "topo" in options:
        from . import hl_smi_topo

        return hl_smi_topo.view(options["topo"].split())
    if "dmon" in options:
        return _dmon
    if "rows" in options:
        from . import hl_smi_csv, hl_smi_rows

        return hl_smi_rows.view(options["rows"], hl_smi_csv.read_format(options.get("format", "csv"))[0])
    if "fields" in options:
        from . import hl_smi_csv

        return hl_smi_csv.view(options["fields"], options.get("format", "csv"))
    if "format" in options:
        raise UsageError("-f goes with -Q: name the fields, such as -Q index,name -f csv")
    if "network" in options:
        from . import hl_smi_network

        if "device" not in options:
            raise UsageError("-n needs one card: name it by its PCI address, such as -i 0000:19:00.0")
        return hl_smi_network.view(options["network"], options.get("ports"))
    if "ports" in options:
        raise UsageError("-P goes with -n: name a view, such as -n link")
    if "firmware" in options:
        from . import hl_smi_firmware

        return hl_smi_firmware.firmware
    if "query" in options or "display" in options:
        from . import hl_smi_log

        return hl_smi_log.view(options.get("display"))
    from . import hl_smi_table

    return hl_smi_table.table


def _dmon(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
    """Where each processor of the card prints its console: nothing is known but the line that the vendor's collector of
    logs looks for."""
    return "".join(f"ARC1:{os.devnull}\n" for _ in cards)


def selected(simulated: node.Node, bus_id: str | None) -> list[node.Card]:
    """The card with this PCI address, or all of them."""
    cards = simulated.cards
    if bus_id is None:
        return cards
    chosen = [card for card in cards if card.bus_id == bus_id.lower()]
    if not chosen:
        present = ", ".join(card.bus_id for card in cards)
        raise UsageError(f"no card at '{bus_id}': the cards are at {present}")
    return chosen


def _change(options: dict[str, str], cards: list[node.Card]) -> int:
    """Power limit and reset: what hl-smi changes rather than prints."""
    if not paths.is_root():
        raise UsageError("changing a card needs root")
    if "device" not in options:
        raise UsageError("changing a card needs its PCI address, such as -i 0000:19:00.0")
    from . import driver_log, kernel_log, sysfs

    key = str(cards[0].index)
    with store.Lock():
        simulated = node.Node.load()
        if "power" in options:
            low, high = simulated.board.power_cap_range_w
            if not options["power"].isdigit() or not low <= int(options["power"]) <= high:
                raise UsageError(f"'{options['power']}' is no power limit of this card: give {low} to {high} watts")
            simulated.runtime["power_limit"][key] = int(options["power"])
        if "reset" in options:
            failed = simulated.is_disabled(cards[0])
            for kind in () if failed else faults.ENDS_WITH_RESET:
                simulated.clear_fault(kind, cards[0].index)
            simulated.runtime["resets"][key] = simulated.runtime["resets"].get(key, 0) + 1
            simulated.runtime["ports_up"].pop(key, None)
            booted_at, version = simulated.runtime["booted_at"], simulated.driver_version
            kernel_log.write(booted_at, driver_log.resetting(cards[0], version))
            level = kernel_log.ERROR if failed else kernel_log.INFO
            kernel_log.write(booted_at, driver_log.reset(cards[0], version, failed), level=level)
        simulated.save()
        sysfs.apply(simulated)
    if "reset" in options and failed:
        raise UsageError(f"the card at '{cards[0].bus_id}' could not be reset: reload the driver")
    return 0


def _out(text: str) -> None:
    if os.environ.get("ENABLE_CONSOLE", "").lower() != "false":
        sys.stdout.write(text)
        sys.stdout.flush()
