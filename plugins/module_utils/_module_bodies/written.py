# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files and folders of a service: content, owner, group and permissions, checked before they replace what is there."""

from __future__ import annotations

import contextlib
import grp
import os
import re
import secrets
import shlex
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from .._files import in_the_way, make_folder, write_file
from .._printable import printable
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


#: Suboptions of gaudi_service's ``files``.
FILE: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str"},
    "mode": {"type": "str", "default": "0644"},
    "group": {"type": "str", "default": ""},
    "restart": {"type": "bool", "default": True},
    "reload": {"type": "bool", "default": False},
    "secret": {"type": "bool", "default": False},
    "validate": {"type": "str", "default": ""},
    "complaint": {"type": "str", "default": ""},
}
_HIDDEN = "(what is in it is a secret)"


@dataclass
class Written:
    """What was written, or would be."""

    diffs: list[dict[str, Any]] = field(default_factory=list)
    restart: bool = False
    reload: bool = False


@dataclass(frozen=True)
class _State:
    """A file as it is, or as it is to be. A group of None is any, or one that is not there yet."""

    content: Optional[str]
    mode: int
    owner: int
    group: Optional[int]


def write(module: AnsibleModule, files: list[dict[str, Any]], folders: list[str]) -> Written:
    """Bring folders and files about, in their order. In check mode nothing is written, the same is returned."""
    result = Written()
    for path in folders:
        _folder(module, path, result)
    for file in files:
        if _file(module, file, result):
            result.restart = result.restart or file["restart"]
            result.reload = result.reload or file["reload"]
    return result


def _folder(module: AnsibleModule, path: str, result: Written) -> None:
    """A folder of root that is open to all."""
    before = os.stat(path) if os.path.isdir(path) else None
    wanted = (0o755, os.geteuid(), os.getegid())
    if before and (stat.S_IMODE(before.st_mode), before.st_uid, before.st_gid) == wanted:
        return
    if not module.check_mode:
        make_folder(path)
        os.chown(path, wanted[1], wanted[2])
        os.chmod(path, wanted[0])
    shown = (
        f"# folder, mode {stat.S_IMODE(before.st_mode):04o}, owner {before.st_uid}:{before.st_gid}\n" if before else ""
    )
    after = f"# folder, mode 0755, owner {wanted[1]}:{wanted[2]}\n"
    result.diffs.append({"before_header": path, "after_header": path, "before": shown, "after": after})


def _file(module: AnsibleModule, file: dict[str, Any], result: Written) -> bool:
    path, before = file["path"], _state(file["path"])
    group = _group(file, module.check_mode)
    content = file["content"] if file["content"] is not None else before.content if before else None
    if content is None:
        raise Refusal(f"{path} is not there, and nothing has brought it: run the whole role again.")
    after = _State(content, int(file["mode"], 8), os.geteuid(), group)
    missing_group = bool(file["group"]) and group is None
    if before and not missing_group and before == _State(*_same_group(after, before)):
        return False
    if not module.check_mode:
        _validated(module, file, content)
        make_folder(os.path.dirname(path) or ".")
        write_file(path, content, after.mode, -1 if group is None else group)
    result.diffs.append(
        {
            "before_header": path,
            "after_header": path,
            "before": _shown(before, before, file),
            "after": _shown(after, before, file),
        }
    )
    return True


def _same_group(after: _State, before: _State) -> tuple[Optional[str], int, int, Optional[int]]:
    return after.content, after.mode, after.owner, before.group if after.group is None else after.group


def _state(path: str) -> Optional[_State]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            status = os.fstat(file.fileno())
            return _State(file.read(), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise Refusal(in_the_way(path)) from None


def _group(file: dict[str, Any], check_mode: bool) -> Optional[int]:
    if not file["group"]:
        return None
    try:
        return grp.getgrnam(file["group"]).gr_gid
    except KeyError:
        if check_mode:  # of a package that would be installed before
            return None
        raise Refusal(
            f"There is no group {printable(file['group'])} on this host, which is to read {file['path']}: install the "
            "package that brings it, or name another group."
        ) from None


def _validated(module: AnsibleModule, file: dict[str, Any], content: str) -> None:
    """Have a program check it where it is to be, as what it names may be relative to that."""
    if not file["validate"]:
        return
    folder, name = os.path.split(file["path"])
    make_folder(folder)
    draft = os.path.join(folder, f".{secrets.token_hex(8)}.{name}")
    write_file(draft, content, 0o600)
    try:
        command = [word.replace("%s", draft) for word in shlex.split(file["validate"])]
        code, output, errors = module.run_command(command)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    if code != 0:
        raise Refusal(_complaint(file, command[0], (errors.strip() or output).replace(draft, file["path"])))


def _complaint(file: dict[str, Any], program: str, said: str) -> str:
    """What a program has against a file. It may quote a value, and values may be passwords."""
    said = re.sub("(?s)^.*FAILED: ", "", said)
    if file["secret"]:
        said = re.sub(r'`[^`]*`|"[^"]*"', "...", said)
    hint = " (quoted values are hidden)" if file["secret"] else ""
    begin = file["complaint"] or f"{program} refuses what would be {file['path']}"
    return f"{begin}{hint}: {printable(' '.join(said.split()).rstrip('.'), 2000)}."


def _shown(state: Optional[_State], before: Optional[_State], file: dict[str, Any]) -> str:
    """A state in a difference; of a secret only that it is another."""
    if state is None:
        return ""
    group = "" if state.group is None or not file["group"] else f", group {_name(state.group)}"
    owner = "" if state.owner == os.geteuid() else f", owner {state.owner}"
    head = f"# mode {state.mode:04o}{owner}{group}\n"
    if not file["secret"]:
        return f"{head}{state.content}"
    other = before is not None and state is not before and state.content != before.content
    return f"{head}{'(another secret is in it)' if other else _HIDDEN}\n"


def _name(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)
