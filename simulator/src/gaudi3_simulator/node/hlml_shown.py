"""What hl-smi shows of one card, field by field: libhlml's values are taken from there, so the two never differ."""

from __future__ import annotations

from . import hl_smi_csv, hl_smi_log, hl_smi_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .node import Card, Node
    from .releases import Release


class Shown:
    """One card as hl-smi of a release shows it at one moment."""

    __slots__ = ("_card", "_info", "_simulated")

    def __init__(self, simulated: Node, card: Card, info: Release) -> None:
        self._simulated = simulated
        self._card = card
        self._info = info

    def field(self, name: str) -> str | None:
        """A field of ``hl-smi -Q``, without its unit; None where it says N/A."""
        text = hl_smi_csv.view(name, "csv,noheader,nounits")(self._simulated, [self._card], self._info).strip()
        return None if text == "N/A" else text

    def entries(self, section: str) -> list[tuple[str, str]]:
        """Labels and values of a section of ``hl-smi -q -d``, without the numbers in brackets."""
        lines = hl_smi_log.view(section)(self._simulated, [self._card], self._info).splitlines()
        pairs = [line.partition(":") for line in lines]
        return [(_unnumbered(label), value.strip()) for label, colon, value in pairs if colon]

    def entry(self, section: str, label: str) -> str | None:
        """The value of one label of a section; None where there is none, or it says N/A."""
        found = next((value for each, value in self.entries(section) if each == label), None)
        return None if found == "N/A" else found

    def throttled(self, reason: str) -> bool:
        """Whether the whole log shows this reason for slower clocks as active; its state stands below or beside it."""
        lines = hl_smi_log.view(None)(self._simulated, [self._card], self._info).splitlines()
        for number, line in enumerate(lines):
            if line.partition(":")[0].strip() == reason:
                state = line.partition(":")[2] or lines[number + 1].partition(":")[2]
                return state.strip() == "Active"
        return False

    def ports(self) -> dict[int, bool]:
        """Every port, and whether it leaves the box."""
        return {_port(name): kind.strip() == "external" for name, kind in self._network("ports", None)}

    def link(self, port: int) -> bool:
        """Whether the port has a link."""
        return self._network("link", str(port))[0][1].strip() == "UP"

    def counters(self, port: int) -> list[tuple[str, str]]:
        """Counters of a port: names and values."""
        return [(name.strip(), value.strip()) for name, value in self._network("stats", str(port)) if value.strip()]

    def _network(self, view: str, ports: str | None) -> list[tuple[str, str]]:
        lines = hl_smi_network.view(view, ports)(self._simulated, [self._card], self._info).splitlines()
        pairs = [line.rpartition(":") for line in lines]
        return [(name, value) for name, colon, value in pairs if colon]


def _unnumbered(label: str) -> str:
    label = label.strip()
    return label.partition("]")[2].strip() if label.startswith("[") else label


def _port(name: str) -> int:
    return int(name.split()[1])
