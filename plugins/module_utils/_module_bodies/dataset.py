# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A prepared set of training data on the node's own disk: there and whole, or gone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .._data import copy, index, judge, records, remote, room, source, uses
from .._files import make_folder
from .._printable import printable
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "source": {"type": "path", "required": True},
    "path": {"type": "path", "required": True},
    "budget_bytes": {"type": "int", "default": 0},
    "verify": {"type": "bool", "default": False},
    "keep": {"type": "list", "elements": "str", "default": []},
    "lock_timeout": {"type": "int", "default": 3600},
    "remote": {"type": "dict"},
    "remote_secrets": {"type": "dict", "default": {}, "no_log": True},
    "users": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent", "used", "unused"], "default": "present"},
    "rclone_executable": {"type": "path", "default": "rclone"},
    "systemctl_executable": {"type": "path", "default": "systemctl"},
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
    """Copy or remove the set, or record who uses it."""
    try:
        key = _checked(module)
        act = {"present": _present, "absent": _absent, "used": _used, "unused": _unused}[module.params["state"]]
        return act(module, key)
    except Refusal as refusal:
        return dict(module.fail_json(msg=str(refusal)))
    except OSError as error:
        where = error.filename or module.params["path"]
        said = f"{where}: {error.strerror or error}; what was copied stays, and the next run resumes."
        return dict(module.fail_json(msg=said))


def _checked(module: AnsibleModule) -> str:
    """The name of the set; Refusal for options that cannot be meant."""
    options = module.params
    for name, value in (options["remote"] or {}).items():
        if remote.is_secret(str(name), value):
            module.no_log_values.add(value)
            raise Refusal(
                f"remote has {printable(name, 60)}, which is a secret and would stand in logs: put it into "
                "remote_secrets"
            )
    key = index.check_key(os.path.basename(options["source"].rstrip("/")))
    named = bool(options["remote"]) or options["state"] in ("used", "unused")
    for option in ("path",) if named else ("source", "path"):
        if not os.path.isabs(options[option]):
            raise Refusal(f"{option} is {options[option]!r}, and an absolute path is allowed")
    for option, least in (("budget_bytes", "bytes from 0 (no budget)"), ("lock_timeout", "seconds from 0")):
        if options[option] < 0:
            raise Refusal(f"{option} is {options[option]}, and {least} are allowed")
    for user in options["users"]:
        records.check(user)
    if options["state"] in ("used", "unused") and not options["users"]:
        raise Refusal(f"state is {options['state']}, and users is empty: name who uses the set")
    path = options["path"]
    for place in (os.path.join(path, key), copy.draft_of(path, key), records.folder_of(path, key)):
        # What is removed and replaced below has to be the module's own.
        if os.path.islink(place):
            raise Refusal(f"{place} is a link: give another path, or remove it")
    return key


def _check_apart(source: str, path: str, target: str) -> None:
    """Refuse a copy that would be read from, or written into, what it changes."""
    real_source, real_path = os.path.realpath(source), os.path.realpath(path)
    if real_source == os.path.realpath(target):
        raise Refusal(f"{target} is the source itself: give another path")
    common = os.path.commonpath([real_source, real_path])
    if common == real_source:
        raise Refusal(f"path is {path}, inside source, which is {source}: give a path apart from it")
    if common == real_path:
        raise Refusal(f"source is {source}, inside path, which is {path}: give a path apart from it")


def _source(module: AnsibleModule) -> source.Source:
    options = module.params
    if not options["remote"]:
        return source.Folder(options["source"])
    variables = remote.environment(options["remote"], options["remote_secrets"], os.environ)
    return remote.Rclone(options["source"], variables, options["rclone_executable"])


def _runs(module: AnsibleModule, unit: str) -> bool:
    """Whether a unit runs, or a boot starts it; the unit of a training job has another one for that."""
    units = [unit, unit.replace("gaudi-train-", "gaudi-boot-", 1)] if unit.startswith("gaudi-train-") else [unit]
    argv = [module.params["systemctl_executable"], "show", "--property=ActiveState,UnitFileState", "--", *units]
    code, output, errors = module.run_command(argv)
    if code:
        raise Refusal(f"systemd does not say whether {unit} runs ({errors.strip()}): mend it, or give state=unused")
    values = [line.partition("=")[::2] for line in output.splitlines()]
    return any(
        value in ("active", "activating", "deactivating", "reloading") or (name, value) == ("UnitFileState", "enabled")
        for name, value in values
    )


def _free(module: AnsibleModule, key: str) -> contextlib.AbstractContextManager[None]:
    """Hold a set that nothing uses; Refusal where something does."""
    return uses.unused(module.params["path"], key, module.params["proc_root"], partial(_runs, module))


def _alone(module: AnsibleModule) -> contextlib.AbstractContextManager[None]:
    return uses.alone(module.params["path"], module.params["lock_timeout"], module.params["proc_root"])


def _present(module: AnsibleModule, key: str) -> dict[str, Any]:
    path, origin = module.params["path"], _source(module)
    plan = _look(module, key, origin)
    if module.check_mode:
        if plan.reasons:
            with _free(module, key):
                pass
        recorded = _record(module, key)
    elif plan.reasons:
        make_folder(path)
        with _alone(module):
            # Somebody else may have copied it while this run waited.
            plan = _look(module, key, origin)
            if plan.reasons or uses.is_ours(path, key):
                uses.asked(path, key)
            if plan.reasons:
                with _free(module, key):
                    _evict(module, plan.evict)
                    copy.copy(origin, path, key, plan.text, plan.files, plan.judged)
            recorded = _record(module, key)
    else:
        if uses.is_ours(path, key):
            uses.asked(path, key)
        recorded = _record_whole(module, key)
    result = {
        "changed": bool(plan.reasons or recorded),
        "folder": os.path.join(path, key),
        "copied": plan.to_copy,
        "copied_files": plan.reasons,
        "evicted": plan.evict,
    }
    return {**result, **_diff(module, plan.reasons, plan.evict, recorded)}


def _used(module: AnsibleModule, key: str) -> dict[str, Any]:
    """Record users of a set that is there."""
    recorded, target = _record_whole(module, key), os.path.join(module.params["path"], key)
    result = {"changed": bool(recorded), "folder": target, "copied": 0, "copied_files": {}, "evicted": []}
    return {**result, **_diff(module, {}, [], recorded)}


def _unused(module: AnsibleModule, key: str) -> dict[str, Any]:
    """Take the records of users back."""
    path = module.params["path"]
    gone = [user for user in module.params["users"] if user in records.written(path, key)]
    if not module.check_mode:
        for user in gone:
            records.take_back(path, key, user)
    target = os.path.join(path, key)
    result = {"changed": bool(gone), "folder": target, "copied": 0, "copied_files": {}, "evicted": []}
    return {**result, **_diff(module, {}, [], [], gone)}


def _record_whole(module: AnsibleModule, key: str) -> list[str]:
    """Record users of a set that is there, and that no other task removes meanwhile; Refusal where it is not."""
    if not module.params["users"]:
        return []
    target = os.path.join(module.params["path"], key)
    with uses.shared(module.params["path"], key):
        if not os.path.isfile(os.path.join(target, index.INDEX)):
            raise Refusal(f"{target} is not there, or not whole: bring the set first, as the playbook data does")
        return _record(module, key)


def _record(module: AnsibleModule, key: str) -> list[str]:
    """Record the users that are not recorded yet, and return them."""
    path = module.params["path"]
    known = records.users(path, key, partial(_runs, module)) if module.params["users"] else []
    new = [user for user in module.params["users"] if user not in known]
    if not module.check_mode:
        for user in new:
            records.add(path, key, user, records.this_boot())
    return new


def _look(module: AnsibleModule, key: str, origin: source.Source) -> _Plan:
    """What is to be done; Refusal where it cannot be."""
    path, where = module.params["path"], origin.name_of(index.INDEX)
    target = os.path.join(path, key)
    given = module.params["source"]
    if not module.params["remote"]:
        _check_apart(given, path, target)
    text = origin.index()
    files = index.read(text, where)
    wanted = origin.tokenizer_files()
    whole = os.path.isdir(target)
    judged = judge.compare_files(target, files, module.params["verify"]) if whole else copy.begun(path, key, files)
    if not whole or _text(os.path.join(target, index.INDEX)) != text:
        judged.bad.setdefault(index.INDEX, "changed" if whole else "missing")
    tokenizer = whole and source.tokenizer_files(target) == wanted
    to_copy = sum(files[name].size for name in judged.bad if name in files)
    to_copy += 0 if tokenizer else sum(wanted.values())
    evict: list[str] = []
    if judged.bad or not tokenizer:
        if whole and not uses.is_ours(path, key):
            raise Refusal(
                f"{target} was not copied by this module and differs from {given}: remove it or mend it yourself"
            )
        held = uses.held(path, module.params["proc_root"], partial(_runs, module), [key, *module.params["keep"]])
        size = index.total(files) + sum(wanted.values())
        free = room.free(path) + (0 if whole else copy.half(path, key, judged.bad))
        evict = room.make(held, size, to_copy, free, module.params["budget_bytes"], path)
    return _Plan(text, files, judged, tokenizer, to_copy, evict)


def _evict(module: AnsibleModule, keys: list[str]) -> None:
    path = module.params["path"]
    for key in keys:
        with _free(module, key):
            copy.remove(path, key)
            records.remove_all(path, key)
            os.unlink(uses.lock_of(path, key))


def _absent(module: AnsibleModule, key: str) -> dict[str, Any]:
    path = module.params["path"]
    there = [each for each in (os.path.join(path, key), copy.draft_of(path, key)) if os.path.lexists(each)]
    ours = uses.is_ours(path, key)
    if there and not ours:
        raise Refusal(f"{there[0]} was not copied by this module, which removes what it copied: remove it yourself")
    # A removal that was killed leaves the files beside the set at last.
    if ours:
        with _free(module, key):
            pass
        if not module.check_mode:
            with _alone(module):
                _evict(module, [key])
    result = {"changed": ours, "folder": os.path.join(path, key), "copied": 0, "copied_files": {}, "evicted": []}
    return {**result, **_diff(module, {}, [key] if ours else [])}


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(index.LARGEST_INDEX + 1)
    except FileNotFoundError:
        return b""


def _diff(
    module: AnsibleModule,
    reasons: dict[str, str],
    gone: list[str],
    users: Sequence[str] = (),
    ended: Sequence[str] = (),
) -> dict[str, Any]:
    """What `--diff` shows: sets and users that go, files that come with the reason, users that come."""
    if not module._diff:
        return {}
    before = "".join(f"set {key}\n" for key in gone) + "".join(f"used by {user}\n" for user in ended)
    after = "".join(f"copy {name} ({why})\n" for name, why in sorted(reasons.items()))
    after += "".join(f"used by {user}\n" for user in users)
    return {"diff": {"before": before, "after": after}}
