# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The command of this run, to type again: without what may be a secret."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Optional

from .._secret_words import names_secret, secret_kind

#: Options that only predict.
_PREDICTS = ("--check", "-C", "--diff", "-D")
#: Names of several secrets, and short ones. To leave a command out that has none costs less than to show one that has.
_SEVERAL = re.compile(r"pass|secret|token|cred|api_?key|(?:^|_)pwd?(?:_|$)", re.IGNORECASE)
_ENTRY = re.compile(r"[\"']?([A-Za-z_]\w*)[\"']?\s*[=:]")


def again(arguments: Sequence[str], really: bool = False) -> Optional[str]:
    """The command with these arguments, its program first, as a line for a shell.

    With ``really`` without the options that only predict. None where an argument may hold a secret.
    """
    if not arguments or any(_may_be_secret(each) for each in arguments[1:]):
        return None
    rest = [each for each in map(_without_prediction, arguments[1:]) if each] if really else list(arguments[1:])
    return shlex.join([os.path.basename(arguments[0]), *rest])


def _without_prediction(argument: str) -> str:
    """The argument, without the short options that only predict; empty where it is nothing else."""
    if argument in _PREDICTS:
        return ""
    if re.fullmatch(r"-[vCDbkKJ]+", argument):
        rest = re.sub("[CD]", "", argument)
        return "" if rest == "-" else rest
    return argument


def _may_be_secret(argument: str) -> bool:
    return bool(secret_kind(argument) or "sshpass" in argument) or any(
        names_secret(name) or _SEVERAL.search(name) for name in _ENTRY.findall(argument)
    )
