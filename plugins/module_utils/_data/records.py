# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which jobs a set is kept for, before they read it and while they do.

A record is a file beside the set, and counts until it is taken back. The unit of a training job takes back its own when
it ends. One of a unit that ended with the whole node counts no more, unless the boot starts the unit again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Callable

from .._files import make_folder, write_file
from .._refusal import Refusal

UNIT = ".service"
LONGEST_USER = 201
"""Characters of a user's name, which a file has."""
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]*\Z")


#: Whether a systemd unit runs, or a boot starts it.
Running = Callable[[str], bool]


def check(user: str) -> str:
    """The name of a user of a set, if it is one that may stand in a path; Refusal if not."""
    if not _USER.match(user):
        raise Refusal(
            f"users has {user!r}, and letters, digits and _.@:- are allowed: give a unit such as "
            "gaudi-train-demo.service, or a name of your own"
        )
    if len(user) > LONGEST_USER:
        raise Refusal(
            f"users has a name of {len(user)} characters, and at most {LONGEST_USER} are allowed: give a shorter one"
        )
    return user


def folder_of(path: str, key: str) -> str:
    """Where the records of a set are."""
    return os.path.join(path, f".{key}.users")


def add(path: str, key: str, user: str, boot: str) -> None:
    """Record a user from now on, in the boot of this name."""
    folder = folder_of(path, key)
    make_folder(folder)
    write_file(os.path.join(folder, user), json.dumps({"boot": boot}))


def take_back(path: str, key: str, user: str) -> bool:
    """Remove a record, and say whether there was one."""
    try:
        os.unlink(os.path.join(folder_of(path, key), user))
    except FileNotFoundError:
        return False
    return True


def written(path: str, key: str) -> list[str]:
    """Every record of a set, by its user's name."""
    try:
        return sorted(name for name in os.listdir(folder_of(path, key)) if _USER.match(name))
    except FileNotFoundError:
        return []


def users(path: str, key: str, running: Running, boot: str = "") -> list[str]:
    """The users for which the set is kept still."""
    return [user for user in written(path, key) if _counts(os.path.join(folder_of(path, key), user), running, boot)]


def _counts(record: str, running: Running, boot: str) -> bool:
    user = os.path.basename(record)
    if not user.endswith(UNIT):
        return True
    try:
        of = _boot_of(record)
    except FileNotFoundError:
        return False
    return of == (boot or this_boot()) or running(user)


def _boot_of(record: str) -> str:
    with open(record, "rb") as file:
        try:
            return str(json.load(file)["boot"])
        except (ValueError, TypeError, KeyError, RecursionError):
            # Written by somebody else: of no boot.
            return ""


def this_boot(path: str = "/proc/sys/kernel/random/boot_id") -> str:
    """How the kernel calls this boot; empty where it does not say."""
    try:
        with open(path, encoding="ascii") as opened:
            return opened.read().strip()
    except OSError:
        return ""


def remove_all(path: str, key: str) -> None:
    """Remove the records of a set that goes."""
    names: Iterable[str] = written(path, key)
    for name in names:
        take_back(path, key, name)
    try:
        os.rmdir(folder_of(path, key))
    except OSError:
        # What somebody else put there stays.
        return
