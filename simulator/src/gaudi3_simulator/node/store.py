"""The node's two files: the state, which survives a reboot, and the runtime, which does not."""

from __future__ import annotations

import fcntl
import json
import os

from . import board, paths, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random
    from types import TracebackType
    from typing import Any

SCHEMA = 1

# Index to module: eight HL-325L with 1.24.1 (redhat-et/GKM), a node with 1.23.0 (HabanaAI/vllm-fork, scripts/docs/),
# eight Gaudi 2 (huggingface/optimum-habana#1089).
MODULE_MAPS = ((1, 3, 2, 6, 0, 7, 5, 4), (2, 6, 3, 7, 0, 4, 5, 1), (0, 4, 1, 5, 2, 6, 3, 7))


class StateError(Exception):
    """The node's files are missing or unusable; the message says what to do."""


class Lock:
    """Only one process changes the node at a time."""

    def __enter__(self) -> Lock:
        os.makedirs(paths.at(paths.RUN), exist_ok=True)
        self._file = os.open(paths.at(paths.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def new_state(
    node: str,
    cards: int,
    spi_release: str = "1.23.0",
    board_name: str = board.DEFAULT_BOARD,
    profile: str = board.DEFAULT_PROFILE,
) -> dict[str, Any]:
    """Identity of a node's cards, the same for the same name, count and board.

    The accelerator index, the bus order and the module id are three different orders, as on hardware.
    """
    try:
        kind = board.find_board(board_name)
        board.find_profile(profile)
    except board.UnknownBoard as error:
        raise StateError(str(error)) from None
    if not 1 <= cards <= board.MAX_CARDS:
        raise StateError(f"{cards} cards do not fit: the board has 1 to {board.MAX_CARDS} places, choose that many")
    from random import Random  # slow to import, and only needed here

    random = Random(f"gaudi3-simulator {node} {cards}")
    bus_ids = _shuffled(random, list(range(cards)))
    modules = _modules(random, cards)
    while cards > 2 and modules == bus_ids:
        modules = _modules(random, cards)
    preboot = releases.preboot(spi_release, kind.generation)
    return {
        "schema": SCHEMA,
        "node": node,
        "board": board_name,
        "profile": profile,
        "seed": random.getrandbits(24),
        "cards": [
            _new_card(random, kind, index, board.BUS_IDS[bus_ids[index]], modules[index], preboot)
            for index in range(cards)
        ],
        "faults": [],
    }


def _modules(random: Random, cards: int) -> list[int]:
    """Module ids by accelerator index: of eight cards one of the maps that owners published."""
    return list(random.choice(MODULE_MAPS)) if cards == board.MAX_CARDS else _shuffled(random, list(range(cards)))


def _shuffled(random: Random, numbers: list[int]) -> list[int]:
    """A permutation of ``numbers`` that is not 0, 1, 2, ... (one card leaves no choice)."""
    numbers = list(numbers)
    random.shuffle(numbers)
    while len(numbers) > 1 and numbers == sorted(numbers):
        random.shuffle(numbers)
    return numbers


def _new_card(
    random: Random, kind: board.Board, index: int, bus_id: str, module_id: int, preboot: str
) -> dict[str, Any]:
    letters = "".join(random.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(3))
    lot = f"{letters}{random.randrange(1000):03d}"
    place = "-".join(f"{random.randrange(1, 32):02d}" for _ in range(3))
    return {
        "index": index,
        "bus_id": bus_id,
        "module_id": module_id,
        "serial": f"{kind.serial_prefix}{random.randrange(10**8):08d}",
        "uuid": f"{kind.uuid_prefix}-{lot}-{place}",
        # Locally administered, the last byte left to the port number.
        "mac": ":".join(["02", *(f"{random.randrange(256):02x}" for _ in range(3)), f"{index:02x}"]),
        "numa_node": 1 if int(bus_id[5:7], 16) >= 0x80 else 0,
        "spi": preboot,
    }


def new_runtime() -> dict[str, Any]:
    """What a node that has just started knows."""
    return {
        "schema": SCHEMA,
        "booted_at": paths.now(),
        "modules": {},
        "devices_up": False,
        "firmware": None,
        "ports_up": {},
        "pfc": {},
        "power_limit": {},
        "resets": {},
        "carriers": {},
        "boot_options": "",
    }


def load_state() -> dict[str, Any]:
    """The node's cards and faults."""
    text = paths.read_text(paths.STATE)
    if text is None:
        raise StateError(f"{paths.STATE} is missing: create it with 'gaudi3-simulator-node init --node NAME --cards 8'")
    return _parsed(text, paths.STATE)


def load_runtime() -> dict[str, Any]:
    """What happened since the node started."""
    text = paths.read_text(paths.RUNTIME)
    return new_runtime() if text is None else _parsed(text, paths.RUNTIME)


def _parsed(text: str, path: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise StateError(f"{path} is not a schema {SCHEMA} file of this simulator: remove it and run init again")
    return content


def save_state(state: dict[str, Any]) -> None:
    """Write the state atomically, when it changed."""
    text = json.dumps(state, indent=1) + "\n"
    if paths.read_text(paths.STATE) != text:
        paths.write_atomically(paths.STATE, text, lasting=True)


def save_runtime(runtime: dict[str, Any]) -> None:
    """Write the runtime atomically."""
    paths.write_atomically(paths.RUNTIME, json.dumps(runtime) + "\n")
