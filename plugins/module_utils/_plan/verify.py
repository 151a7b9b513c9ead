# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Verify: whether a node's jobs trained on its cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .._jobs.answers import job_answers
from .._jobs.rules import number
from .._printable import printable
from .given import entries, listed, part
from .model import Values

#: Devices that are cards, or say nothing about what trained.
_NO_OTHER = ("", "auto", "hpu")


def _on_cards(values: Values) -> set[str]:
    """The jobs that are to train on the cards. One of the list has its own configuration, or that which all share."""
    shared = entries(values("trainer_config")).get("device", "hpu")
    found = {str(values("trainer_job_name") or ""): shared}
    for job in map(entries, listed(values("trainer_jobs"))):
        found[str(job.get("name"))] = entries(job["config"]).get("device", "hpu") if "config" in job else shared
    return {name for name, device in found.items() if device == "hpu"}


def _elsewhere(values: Values) -> Optional[Mapping[str, Any]]:
    """A job that trained on another device, though it was to train on the cards."""
    names = _on_cards(values)
    for job in job_answers(part(values("_verify_job"), "jobs")):
        device = entries(job.get("status")).get("device")
        if job["name"] in names and device and device not in _NO_OTHER:
            return job
    return None


def job_problem(values: Values) -> str:
    """Why a job of this node did not do what it was to do; empty where nothing is wrong."""
    cards, job = number(values("_verify_cards")), _elsewhere(values)
    if not cards or job is None:
        return ""
    name, own = job["name"], "trainer_cards to null" if values("trainer_command") else "device in trainer_config to cpu"
    return (
        f"Job {name} trained on {printable(job['status']['device'])}, but {values('inventory_hostname')} has {cards} "
        f"Gaudi cards: look into its log (journalctl -u gaudi-train-{name}) and train under another trainer_job_name, "
        f"or set {own} if processors are meant."
    )
