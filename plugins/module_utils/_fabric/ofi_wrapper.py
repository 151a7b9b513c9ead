# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The library through which Gaudi's collectives reach libfabric: its source, how it is built, and what it must export.

Its source is public (HabanaAI/hccl_ofi_wrapper: Makefile, README.md, hccl_ofi_wrapper.cpp).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from .._refusal import Refusal

LIBRARY = "libhccl_ofi_wrapper.so"
MAIN = "hccl_ofi_wrapper.cpp"
#: What the collective library asks the wrapper for.
SYMBOLS = ("create_ofi_plugin_handle", "get_version")


def checked(folder: str, sha256: Mapping[str, str]) -> str:
    """One digest over the source files, or an error for the first that is missing or differs."""
    together = hashlib.sha256()
    for name, wanted in sorted(sha256.items()):
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                found = hashlib.sha256(file.read()).hexdigest()
        except OSError as error:
            raise Refusal(
                f"{path} cannot be read ({error.strerror}): give the source of HabanaAI/hccl_ofi_wrapper"
            ) from error
        if found != wanted.lower():
            raise Refusal(
                f"{path} has SHA-256 {found} and not {wanted}: give the source of the pinned commit, or the digests of "
                "yours"
            )
        together.update(f"{name} {found}\n".encode())
    return together.hexdigest()


def compile_argv(compiler: str, folder: str, target: str) -> list[str]:
    """The command that builds the library, with libfabric where the distribution puts it."""
    return [
        compiler,
        "-std=gnu++11",
        "-O2",
        "-Wall",
        "-shared",
        "-fPIC",
        "-o",
        target,
        os.path.join(folder, MAIN),
        "-lfabric",
    ]


def check_program() -> str:
    """A Python program that loads the library named by its argument and looks for what it must export."""
    return (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); "
        f"missing = [name for name in {SYMBOLS!r} if not hasattr(library, name)]; "
        "sys.exit('it does not export ' + ', '.join(missing) if missing else 0)"
    )
