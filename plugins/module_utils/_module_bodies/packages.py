# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What synapseai_packages does: compare, verify the repository, bring the whole set to one release."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._apt import dpkg
from .._apt import packages as apt
from .._apt.node import (
    KEYRING,
    NEEDS,
    PIN,
    SOURCE,
    Node,
    foreign_sources,
    lacking,
    open_repository,
    read,
    sources,
)
from .._apt.openpgp import fingerprints, normalized
from .._apt.repository import Source
from .._files import head, stands
from .._refusal import Refusal
from .._release.versions import Release

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "release": {"type": "str", "required": True},
    "packages": {"type": "list", "elements": "str", "required": True},
    "prerequisites": {"type": "list", "elements": "str", "default": []},
    "repository_url": {"type": "str", "required": True},
    "suite": {"type": "str", "required": True},
    "key_url": {"type": "str", "required": True, "no_log": False},
    "key_fingerprint": {"type": "str", "default": "", "no_log": False},
    "take_over_sources": {"type": "bool", "default": False},
    "allow_downgrade": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 120},
}


@dataclass(frozen=True)
class NodeBefore:
    """The node before: its packages, and apt's configuration of the repository."""

    source: Source
    state: dict[str, dpkg.Installed]
    plan: apt.Plan
    keyring: bytes | None
    texts: dict[str, str]
    foreign: dict[str, str]
    """Other source files that name the repository."""
    odd: dict[str, str]
    """Of its own files, those of another mode or owner, with how that is shown."""


@dataclass(frozen=True)
class Wanted:
    """What the node is to have."""

    keyring: bytes | None
    texts: dict[str, str]
    new_key: bool
    stale: list[str]
    done: list[str]
    """What is brought up to date."""


def run(module: AnsibleModule) -> dict[str, Any]:
    """Look, decide, act, tell."""
    node = Node(module, module.params["timeout"])
    try:
        found = _look(node, module.params)
        wanted = _decide(node, found, module.params["release"])
    except (ValueError, Refusal) as error:
        module.fail_json(msg=str(error))
    if wanted.new_key and not found.source.fingerprint:
        keys = ", ".join(fingerprints(wanted.keyring or b""))
        module.warn(
            f"The key of {found.source.url} is trusted on first use: compare {keys} with the vendor's and set "
            "synapseai_key_fingerprint to it."
        )
    if wanted.done and not module.check_mode:
        _act(node, found, wanted)
    return _result(found, wanted)


def _look(node: Node, given: dict[str, Any]) -> NodeBefore:
    """The node as it is; Refusal where it cannot be brought to the release."""
    Release.parse(given["release"])
    fingerprint = normalized(given["key_fingerprint"])
    source = Source(given["repository_url"].rstrip("/"), given["suite"], given["key_url"], fingerprint)
    files = sources()
    foreign = foreign_sources(files, source.url, given["take_over_sources"])
    state = node.state([*given["packages"], *given["prerequisites"], *NEEDS])
    plan = apt.make_plan(state, given["packages"], given["prerequisites"], given["release"])
    if plan.downgrades and not given["allow_downgrade"]:
        raise Refusal(apt.newer(state, plan))
    lack = lacking(plan, state, given["prerequisites"], source)
    if lack:
        raise Refusal(lack)
    texts = {path: (read(path) or b"").decode(errors="replace") for path in (SOURCE, PIN)}
    odd = {path: head(path) for path in (SOURCE, PIN, KEYRING) if os.path.exists(path) and not stands(path)}
    return NodeBefore(source, state, plan, read(KEYRING), texts, {path: files[path] for path in foreign}, odd)


def _decide(node: Node, found: NodeBefore, release: str) -> Wanted:
    """What has to change; the repository is asked only where something has to."""
    keyring = found.keyring
    key = found.source.key(keyring)
    texts = {SOURCE: found.source.entry(KEYRING, key), PIN: apt.preferences(release)}
    if not key or found.texts != texts or found.plan.install:
        repository = open_repository(node, found.source, keyring, found.plan.packages, release)
        keyring = repository.keyring
        texts[SOURCE] = found.source.entry(KEYRING, repository.fingerprint)
    stale = [path for path, text in texts.items() if found.texts[path] != text or path in found.odd]
    new_key = keyring != found.keyring or KEYRING in found.odd
    differs = {"key": new_key, "files": bool(stale or found.foreign), "packages": not found.plan.empty}
    return Wanted(keyring, texts, new_key, stale, [name for name, is_so in differs.items() if is_so])


def _act(node: Node, found: NodeBefore, wanted: Wanted) -> None:
    """Tell apt of the repository, and install."""
    for path in found.foreign:
        node.module.backup_local(path)
        os.unlink(path)
    node.install_prerequisites(found.plan)
    if wanted.keyring and wanted.new_key:
        node.write(KEYRING, wanted.keyring)
    for path in wanted.stale:
        node.write(path, wanted.texts[path].encode())
    node.carry_out(found.plan, found.state, refresh=wanted.new_key or SOURCE in wanted.stale)


def _result(found: NodeBefore, wanted: Wanted) -> dict[str, Any]:
    """What is returned: the same after a real run and in check mode."""
    plan, keys = found.plan, fingerprints(wanted.keyring or b"")
    old_keys = fingerprints(found.keyring or b"")
    shown = {path: (found.texts[path], text) for path, text in wanted.texts.items()}
    shown[KEYRING] = ("".join(f"{key}\n" for key in old_keys), "".join(f"{key}\n" for key in keys))
    shown.update({path: (found.odd[path] + shown[path][0], shown[path][1]) for path in found.odd})
    shown.update({path: (text, "") for path, text in found.foreign.items()})
    shown["packages"] = (apt.describe(found.state, [*plan.packages, *plan.prerequisites]), apt.describe_after(plan))
    before = {name: installed.version for name, installed in found.state.items()}
    return {
        "changed": bool(wanted.done),
        "done": wanted.done,
        "release": plan.release,
        "fingerprints": keys,
        "taken_over": list(found.foreign),
        "packages": [{"name": name, "before": before.get(name), "version": plan.release} for name in plan.packages],
        "diff": [
            {"before_header": name, "after_header": name, "before": old, "after": new}
            for name, (old, new) in shown.items()
        ],
    }
