# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A model out of the registry: looked up and fetched by the trainer's own command, which verifies every file."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._files import make_folder
from .._printable import printable
from .._refusal import Refusal
from .._secret_words import names_secret, secret_kind

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


PREFIX = "registry:"
FETCHED = "fetched"
_REFERENCE = re.compile(r"registry:([A-Za-z0-9][A-Za-z0-9._-]*)@([A-Za-z0-9][A-Za-z0-9._-]*)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Registered:
    """One version, as the registry knows it now."""

    reference: str
    """By its number, which means the same later: ``registry:llm@2``."""
    digest: str
    """SHA-256 of its manifest, which has those of all files."""
    checkpoint: str
    """SHA-256 of the checkpoint that it was exported from; empty where the registry does not say."""
    folder: str
    """Where it is fetched to."""
    there: bool
    """Whether that folder says that it holds this version."""

    def facts(self) -> dict[str, str]:
        """For the release."""
        return {"source": self.reference, "manifest_sha256": self.digest, "checkpoint_sha256": self.checkpoint}


def look(module: AnsibleModule, model: str) -> Registered:
    """Which version this is; nothing is written. ``Refusal`` where there is none, or where the registry is silent."""
    found = _REFERENCE.fullmatch(model)
    if not found:
        raise Refusal(
            f"serving_model is {printable(model)}: name a model of the registry as registry:NAME@ALIAS, such as "
            "registry:llm@champion."
        )
    place = os.path.join(module.params["root"], FETCHED, found[1])
    said = _fetch(module, model, place, "--dry-run")
    if said.code != 0:
        raise Refusal(f"{printable(model)} cannot be fetched: {said.sentence}.")
    number, digest, lineage = said.answer.get("version"), str(said.answer.get("digest")), said.answer.get("lineage")
    if not isinstance(number, int) or not _DIGEST.fullmatch(digest):
        raise Refusal(f"{printable(model)} cannot be fetched: {module.params['trainer']} does not say its version.")
    checkpoint = str((lineage if isinstance(lineage, Mapping) else {}).get("checkpoint_sha256", ""))
    checkpoint = checkpoint if _DIGEST.fullmatch(checkpoint) else ""
    return Registered(f"{PREFIX}{found[1]}@{number}", digest, checkpoint, place, bool(said.answer.get("there")))


def fetch(module: AnsibleModule, found: Registered) -> str:
    """Its folder, verified file by file; ``Refusal`` for one that is not whole, and nothing is left of it."""
    make_folder(os.path.dirname(found.folder), 0o700)
    said = _fetch(module, found.reference, found.folder)
    if said.code == 2 and os.path.isdir(found.folder):
        # It holds another version, which the command does not replace. Releases have copies of their own.
        fresh = f"{found.folder}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        said = _fetch(module, found.reference, fresh)
        if said.code == 0:
            shutil.rmtree(found.folder)
            os.replace(fresh, found.folder)
    if said.code != 0:
        raise Refusal(f"{printable(found.reference)} cannot be fetched: {said.sentence}.")
    return found.folder


def forget(root: str) -> None:
    """Delete what was fetched, once a release has its copy."""
    shutil.rmtree(os.path.join(root, FETCHED), ignore_errors=True)


def show_what_is_no_secret(module: AnsibleModule, *names: str) -> None:
    """Have messages show values of these options again that neither name nor form makes a secret.

    They are ``no_log``, as a module's options are written into the journal of the host. Ansible then hides each value
    wherever it comes up: with one of ``2``, every 2 of every message.
    """
    for option in names:
        for name, value in module.params[option].items():
            text = str(value)
            if not names_secret(str(name)) and not secret_kind(text):
                module.no_log_values.discard(text)


@dataclass(frozen=True)
class _Said:
    code: int
    answer: Mapping[str, Any]
    sentence: str


def _fetch(module: AnsibleModule, reference: str, folder: str, *more: str) -> _Said:
    program = module.params["trainer"]
    if not os.path.exists(program):
        raise Refusal(
            f"There is no {printable(program)} on this host, which fetches models of the registry: run role trainer "
            "there first, or name its command as serving_trainer."
        )
    variables = {name: str(value) for name, value in module.params["registry_environment"].items()}
    argv = [program, "registry", "fetch", reference[len(PREFIX) :], folder, "--json", *more]
    code, output, errors = module.run_command(argv, environ_update=variables)
    text = (errors.strip() or output.strip() or "nothing was said").splitlines()[-1]
    if code == 0:
        try:
            answer = json.loads(output.strip().splitlines()[-1])
            return _Said(0, answer if isinstance(answer, dict) else {}, "")
        except (IndexError, ValueError):
            code, text = 1, f"{program} printed no JSON"
    return _Said(code, {}, printable(text, 600).rstrip("."))
