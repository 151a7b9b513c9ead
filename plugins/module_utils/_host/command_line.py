# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The kernel's command line: what is on it, what is missing, and the boot loader's text that adds it."""

from __future__ import annotations

import re

from .._refusal import Refusal

HEADER = "# Written by Ansible (gaudi3.scale.kernel_command_line): changes made here are lost.\n"


def checked(arguments: list[str]) -> list[str]:
    """The arguments, or an error for one which would need quoting."""
    for argument in arguments:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/+@-]*", argument):
            raise Refusal(
                f"kernel argument {argument!r} cannot be used: write one NAME or NAME=VALUE, without blanks and quotes"
            )
    return arguments


def missing(arguments: list[str], command_line: str) -> list[str]:
    """The arguments which the running kernel was not started with."""
    present = set(command_line.split())
    return [argument for argument in arguments if argument not in present]


def grub_text(arguments: list[str]) -> str:
    """The drop-in for /etc/default/grub.d which adds the arguments to those of the distribution."""
    return f'{HEADER}GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {" ".join(arguments)}"\n'


def grubby_arguments(info: str) -> str:
    """The command line in ``grubby --info=DEFAULT``: its line ``args="ro quiet"``."""
    match = re.search(r'^args="(.*)"$', info, re.MULTILINE)
    return match.group(1) if match else ""
