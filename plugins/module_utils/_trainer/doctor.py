# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The examination of a node, brought to nodes on which no trainer is installed.

Its one home is the package ``gaudi3_doctor``, which needs only the standard library. The controller packs it, the
module on the node imports it from the archive.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import io
import os
import sys
import zipfile
from typing import Any

from .._refusal import Refusal

#: Under this name the package is imported on a node, whose Python may be the trainer's and have it under its own.
PACKAGE = "gaudi3_doctor_sent"
#: Where it lies, seen from the collection's folder.
SOURCES = "doctor/src/gaudi3_doctor"
#: What the package lets one consent to; a test holds the two together.
CONSENTS = ("kill-holder", "lost-peer", "part-of-node", "translated-iommu")


def pack(folder: str) -> str:
    """The package as the text of an archive; the same sources give the same text."""
    names = sorted(
        os.path.relpath(os.path.join(place, name), folder)
        for place, _folders, files in os.walk(folder)
        for name in files
        if name.endswith(".py")
    )
    if "__init__.py" not in names:
        raise Refusal(f"{folder} is not the package gaudi3_doctor: reinstall the collection.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                archive.writestr(zipfile.ZipInfo(f"{PACKAGE}/{name}"), file.read(), zipfile.ZIP_DEFLATED)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def unpack(package: str, folder: str) -> Any:
    """Import the package from its text; the archive is put into the folder."""
    path = os.path.join(folder, f"{PACKAGE}.zip")
    try:
        content = base64.b64decode(package, validate=True)
        with open(path, "wb") as file:
            file.write(content)
        sys.path.insert(0, path)
        importlib.invalidate_caches()
        return importlib.import_module(PACKAGE)
    except (binascii.Error, ImportError, OSError) as error:
        raise Refusal(
            f"The examination cannot be loaded on Python {sys.version.split()[0]} ({error}): use Python 3.9 or newer "
            "on the node (ansible_python_interpreter)."
        ) from error
