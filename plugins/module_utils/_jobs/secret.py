# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The secret by which the nodes of a job know each other, made of one that the controller keeps for the cluster."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Optional

from .._credentials import Folder
from .._refusal import Refusal
from .._secrets_dir import misplaced, named_folder

#: The cluster's, in the folder of secrets on the controller, and the variable that hands it over instead.
NAME = "trainer_job_secret"
#: Letters that one which is handed over has at least.
LEAST = 32


def job_secret(cluster: str, job: str) -> str:
    """64 hexadecimal digits for one job, from which neither the cluster's secret nor another job's can be derived."""
    return hmac.new(cluster.encode(), f"gaudi3.scale job {job}".encode(), hashlib.sha256).hexdigest()


def given_fault(given: str) -> Optional[str]:
    """Why a secret that is handed over cannot be used, in one sentence that does not show it."""
    if given and len(given.strip()) < LEAST:
        return (
            f"{NAME} has {len(given.strip())} letters, but must have at least {LEAST}: hand over what `openssl rand "
            "-hex 32` gives, or leave it out to have one made on the controller."
        )
    return None


def kept(directory: str, sources: Sequence[str], environment: Mapping[str, str]) -> tuple[str, bool]:
    """The cluster's secret in the controller's folder, made where it is missing, and whether it was made.

    Raises Refusal where there is no folder outside of the inventory.
    """
    if not directory:
        directory, fault = named_folder(sources, environment)
        if fault:
            raise Refusal(f"{fault}, or hand one over as {NAME}.")
    fault = misplaced(directory, sources, environment)
    if fault:
        raise Refusal(fault)
    folder = Folder(directory)
    with folder.opened():
        text = folder.read(NAME)
        if text is None:
            text = secrets.token_hex(32).encode() + b"\n"
            folder.write(NAME, text)
    secret = text.decode("utf-8", "replace").strip()
    if len(secret) < LEAST:
        raise Refusal(f"{directory}/{NAME} is too short: delete it to have one made.")
    return secret, bool(folder.changed)
