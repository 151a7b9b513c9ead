"""Which sections a report has, in the order in which they are examined and printed.

docs/understand/hardware-status.yml names them in its rows, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import cards, machine, services, software, surroundings, tools
from .host import Host, Options, Result

Examine = Callable[[Host, Options], Result]

CONSENTS = {
    "kill-holder": "kills a process of its own that holds a card, and tries to get the card again",
    "lost-peer": "kills and stops one of two processes of its own that exchange data, and waits for the other one",
    "part-of-node": "runs collectives over three, five, six and seven cards, which the vendor does not list",
    "translated-iommu": "takes cards whose addresses the IOMMU translates, which has brought a host down",
}
"""What is tried only if it is asked for by name: it may leave a card in a reset, a process hanging, or more."""


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    key: str
    title: str
    run: Examine | None = None
    """None where `card_sections` does it."""
    consent: str = ""
    """The consent that it needs."""

    @property
    def on_cards(self) -> bool:
        """Whether it computes on the cards."""
        return self.run is None


SECTIONS = (
    Section("machine", "Kernel, system, memory", machine.machine),
    Section("packages", "Packages, their sources and their installation", software.packages),
    Section("modules", "Kernel modules and firmware files", software.modules),
    Section("kernel_log", "The driver's lines in the kernel log", machine.kernel_log),
    Section("device_files", "Device files and who can open them", cards.device_files),
    Section("cards", "Cards, their ports and their IOMMU groups", cards.cards),
    Section("firmware", "Versions of the cards' firmware", tools.firmware),
    Section("tools", "hl-smi: its texts and how long it takes", tools.hl_smi),
    Section("ports_script", "manage_network_ifs.sh: texts and exit codes", tools.ports_script),
    Section("power", "Power in the table, the csv and the log at one moment", tools.power),
    Section("counters", "Counters of a port and their reads", cards.counters),
    Section("environment", "Variables of a job's unit and of a login", surroundings.environment),
    Section("python", "Versions and import times", software.python),
    Section("metrics", "Names of the exporters' metrics", services.metrics),
    Section("numbers", "A large product and a large gather, card against CPU"),
    Section("first_step", "A first training step"),
    Section("copies", "Copies between card and host"),
    Section("types", "Types that the card and autocast give"),
    Section("attention", "Fused attention, causal and masked"),
    Section("memory", "Memory predicted and used"),
    Section("experts", "Matrix products for mixtures of experts"),
    Section("compiled", "torch.compile with hpu_backend"),
    Section("collective", "A collective over all cards, and which rank has which card"),
    Section("sharded", "Sharded training against data parallel training on two cards"),
    Section("elastic", "A restart by torchrun"),
    Section("killed_holder", "How long a card cannot be acquired after its holder was killed", consent="kill-holder"),
    Section("lost_peer", "What a collective says of a lost peer", consent="lost-peer"),
    Section("part_of_node", "Collectives over 3, 5, 6 and 7 cards", consent="part-of-node"),
)
