# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A prepared set of training data on the node's own disk: there and whole, or gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from .._data import copy, index, judge, room, uses
from .._files import make_folder
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "source": {"type": "path", "required": True},
    "path": {"type": "path", "required": True},
    "budget_bytes": {"type": "int", "default": 0},
    "verify": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "proc_root": {"type": "path", "default": "/proc"},
}


class _Plan(NamedTuple):
    text: bytes
    files: dict[str, index.File]
    judged: judge.Judged
    tokenizer: bool
    """Is that of the source there?"""
    to_copy: int
    evict: list[str]

    @property
    def reasons(self) -> dict[str, str]:
        """Why each file is copied."""
        why = "missing" if self.judged.bad.get(index.INDEX) == "missing" else "changed"
        return {**self.judged.bad, **({} if self.tokenizer else {f"{index.TOKENIZER}/": why})}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Copy or remove the set."""
    try:
        key = index.check_key(os.path.basename(module.params["source"].rstrip("/")))
        for option in ("source", "path"):
            if not os.path.isabs(module.params[option]):
                raise Refusal(f"{option} is {module.params[option]!r}, and an absolute path is allowed")
        if module.params["budget_bytes"] < 0:
            raise Refusal(f"budget_bytes is {module.params['budget_bytes']}, and bytes from 0 (no budget) are allowed")
        return _absent(module, key) if module.params["state"] == "absent" else _present(module, key)
    except Refusal as refusal:
        return dict(module.fail_json(msg=str(refusal)))
    except OSError as error:
        where = error.filename or module.params["path"]
        said = f"{where}: {error.strerror or error}; what was copied stays, and the next run resumes."
        return dict(module.fail_json(msg=said))


def _present(module: AnsibleModule, key: str) -> dict[str, Any]:
    path = module.params["path"]
    plan = _look(module, key)
    if plan.reasons and module.check_mode:
        with uses.unused(path, key, module.params["proc_root"]):
            pass
    elif plan.reasons:
        make_folder(path)
        with uses.alone(path):
            # Somebody else may have copied it while this run waited.
            plan = _look(module, key)
            uses.asked(path, key)
            if plan.reasons:
                with uses.unused(path, key, module.params["proc_root"]):
                    _evict(module, plan.evict)
                    copy.copy(module.params["source"], path, key, plan.text, plan.files, plan.judged)
    elif not module.check_mode and uses.is_ours(path, key):
        uses.asked(path, key)
    result = {
        "changed": bool(plan.reasons),
        "folder": os.path.join(path, key),
        "copied": plan.to_copy,
        "copied_files": plan.reasons,
        "evicted": plan.evict,
    }
    return {**result, **_diff(module, plan.reasons, plan.evict)}


def _look(module: AnsibleModule, key: str) -> _Plan:
    """What is to be done; Refusal where it cannot be."""
    source, path = module.params["source"], module.params["path"]
    where = os.path.join(source, index.INDEX)
    try:
        with copy.open_plain(where) as handle, os.fdopen(os.dup(handle), "rb") as file:
            text = file.read(index.LARGEST_INDEX + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise Refusal(f"{where} is not there: is {source} mounted, and has gaudi3-train prepare ended there?") from None
    if len(text) > index.LARGEST_INDEX:
        raise Refusal(
            f"{where} is larger than {index.LARGEST_INDEX} bytes: prepare the data with a larger shard_tokens"
        )
    files = index.read(text, where)
    target = os.path.join(path, key)
    if os.path.islink(target) or os.path.realpath(source) == os.path.realpath(target):
        raise Refusal(f"{target} is a link or the source itself: give another path")
    wanted = copy.tokenizer_files(source)
    whole = os.path.isdir(target)
    judged = judge.compare_files(target, files, module.params["verify"]) if whole else copy.begun(path, key, files)
    if not whole or _text(os.path.join(target, index.INDEX)) != text:
        judged.bad.setdefault(index.INDEX, "changed" if whole else "missing")
    tokenizer = whole and copy.tokenizer_files(target) == wanted
    to_copy = sum(files[name].size for name in judged.bad if name in files)
    to_copy += 0 if tokenizer else sum(wanted.values())
    evict: list[str] = []
    if judged.bad or not tokenizer:
        if whole and not uses.is_ours(path, key):
            raise Refusal(
                f"{target} was not copied by this module and differs from {source}: remove it or mend it yourself"
            )
        held = uses.held(path, module.params["proc_root"], key)
        size = index.total(files) + sum(wanted.values())
        free = room.free(path) + (0 if whole else copy.half(path, key, judged.bad))
        evict = room.make(held, size, to_copy, free, module.params["budget_bytes"], path)
    return _Plan(text, files, judged, tokenizer, to_copy, evict)


def _evict(module: AnsibleModule, keys: list[str]) -> None:
    path = module.params["path"]
    for key in keys:
        with uses.unused(path, key, module.params["proc_root"]):
            copy.remove(path, key)
            os.unlink(uses.lock_of(path, key))


def _absent(module: AnsibleModule, key: str) -> dict[str, Any]:
    path = module.params["path"]
    there = [each for each in (os.path.join(path, key), copy.draft_of(path, key)) if os.path.lexists(each)]
    if there and not uses.is_ours(path, key):
        raise Refusal(f"{there[0]} was not copied by this module, which removes what it copied: remove it yourself")
    if there:
        with uses.unused(path, key, module.params["proc_root"]):
            pass
        if not module.check_mode:
            with uses.alone(path):
                _evict(module, [key])
    result = {"changed": bool(there), "folder": os.path.join(path, key), "copied": 0, "copied_files": {}, "evicted": []}
    return {**result, **_diff(module, {}, [key] if there else [])}


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(index.LARGEST_INDEX + 1)
    except FileNotFoundError:
        return b""


def _diff(module: AnsibleModule, reasons: dict[str, str], gone: list[str]) -> dict[str, Any]:
    """What `--diff` shows: sets that go, files that come with the reason."""
    if not module._diff:
        return {}
    before = "".join(f"set {key}\n" for key in gone)
    after = "".join(f"copy {name} ({why})\n" for name, why in sorted(reasons.items()))
    return {"diff": {"before": before, "after": after}}
