"""Probes of a card's holder: one that holds it until it is killed, and ones that try to get it afterwards."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from .base import Card, load, sleep_while_watched, which_card


def start(settings: dict[str, Any]) -> dict[str, Any]:
    """The holder takes its card at once, the others only load what they need."""
    if settings["role"] == "holder":
        card: Card = load(settings)
        return {"settings": settings, **card.identity}
    importlib.import_module("torch")
    for name in ("core", "hpu"):
        importlib.import_module(f"habana_frameworks.torch.{name}")
    return {"settings": settings}


def hold(started: dict[str, Any]) -> None:
    """Keep the card, until the one that started this process kills it."""
    sleep_while_watched()


def acquire(started: dict[str, Any]) -> dict[str, Any]:
    """Wait for the moment that the file names, then try once, `after` seconds later."""
    settings = started["settings"]
    moment = Path(settings["moment"])
    while not moment.exists():
        time.sleep(0.01)
    killed = float(moment.read_text())
    time.sleep(max(0.0, killed + settings["after"] - time.time()))
    began = time.time() - killed
    torch = importlib.import_module("torch")
    try:
        value = float((torch.ones(8, device="hpu") + 1).sum().cpu())
        said = "" if value == 16.0 else f"a sum of 16 was {value:g}"
    except Exception as error:  # what a card says that is held is what this probe is for
        said = f"{type(error).__name__}: {error}"[:1500]
    return {"began": round(began, 3), "ended": round(time.time() - killed, 3), "failure": said, **which_card()}
