"""``hl-fw-loader``: shows and flashes the preboot (SPI) firmware of the cards, with the driver unloaded."""

from __future__ import annotations

import sys

from . import faults, hl_smi_log, node, paths, releases, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = (
    "usage: hl-fw-loader [-s] [-d BUS_ID] [-y]   (simulated; -s shows versions, without it the cards are"
    " flashed with the installed image; -y does not ask)"
)


def main(arguments: Sequence[str], release: str) -> int:
    """Show or flash; returns the exit code."""
    show = yes = False
    device = None
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "-s":
            show = True
        elif word == "-y":
            yes = True
        elif word == "-d" and rest:
            device = rest.pop(0).lower()
        elif word == "-h":
            print(_USAGE)
            return 0
        else:
            return _refuse(f"option '{word}' is not simulated: {_USAGE}")
    if not paths.is_root():
        return _refuse("this needs root: run it with sudo")
    with store.Lock():
        simulated = node.Node.load()
        if simulated.loaded(node.DRIVER):
            return _refuse("the driver is loaded: unload the habanalabs modules first")
        cards = [card for card in simulated.cards if device in (None, card.bus_id)]
        if not cards:
            return _refuse(f"no card at '{device}': the cards are at {', '.join(c.bus_id for c in simulated.cards)}")
        if show:
            _show(simulated, cards)
            return 0
        if not yes and not _agreed(cards):
            print("Nothing was flashed.")
            return 1
        _flash(simulated, cards, releases.preboot(release, simulated.board.generation))
    return 0


def _show(simulated: node.Node, cards: list[node.Card]) -> None:
    for card in cards:
        print(f"[{card.bus_id}] {simulated.board.product} {card.serial}")
        print(next(line for line in hl_smi_log.firmware_lines(simulated, card) if "[SPI]" in line))


def _agreed(cards: list[node.Card]) -> bool:
    sys.stdout.write(f"Flash {len(cards)} cards? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _flash(simulated: node.Node, cards: list[node.Card], preboot: str) -> None:
    chosen = {card.bus_id for card in cards}
    for content in simulated.state["cards"]:
        if content["bus_id"] in chosen:
            content["spi"] = preboot
            simulated.clear_fault(faults.SPI_RELEASE, content["index"])
            print(f"[{content['bus_id']}] flashed {preboot}")
    simulated.save()


def _refuse(message: str) -> int:
    sys.stderr.write(f"hl-fw-loader: {message}\n")
    return 1
