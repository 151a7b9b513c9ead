"""The index files of an apt repository: ``Packages`` and ``Release``."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping

from .deb import EPOCH, Package, stanza


def pool_path(package: Package) -> str:
    """Where a package lies under the repository's base."""
    return f"pool/{package.name}/{package.filename}"


def packages_text(packages: Iterable[Package]) -> str:
    """The ``Packages`` index."""
    paragraphs = []
    for package in packages:
        control = dict(package.control)
        description = control.pop("Description")
        where = {
            "Filename": pool_path(package),
            "Size": str(len(package.content)),
            "SHA256": hashlib.sha256(package.content).hexdigest(),
        }
        paragraphs.append(stanza(control | where | {"Description": description}))
    return "\n".join(paragraphs)


def release_text(suite: str, indexes: Mapping[str, bytes], valid_until: int | None) -> str:
    """The ``Release`` file of ``suite`` over ``indexes`` (path under ``dists/SUITE`` to content)."""
    fields = {
        "Origin": "gaudi3.scale simulator",
        "Label": "Simulated stand-in for the vendor repository",
        "Suite": suite,
        "Codename": suite,
        "Date": _date(EPOCH),
    }
    if valid_until is not None:
        fields["Valid-Until"] = _date(valid_until)
    fields |= {"Architectures": "amd64", "Components": "main"}
    sums = "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {path}\n" for path, content in sorted(indexes.items())
    )
    return stanza(fields) + "SHA256:\n" + sums


def _date(moment: int) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(moment))
