# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Variables that nobody reads, although their names look like those of this collection: misspelt ones above all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Optional

from .._printable import printable
from .near import nearest

#: Variables that playbooks and inventories have, and no role's specification.
OF_PLAYBOOKS = frozenset(
    f"{prefix}_{name}"
    for prefix, names in {
        "certificate": ("directory", "hl_qual", "key", "qualify", "restart", "timeout", "train"),
        "doctor": ("cards", "consent", "directory", "quick"),
        "gaudi": (
            "accept_variables", "apt_cache_valid_time", "bmc_address", "bmc_ca_file", "bmc_fingerprint", "bmc_from",
            "bmc_metrics", "bmc_password", "bmc_ports", "bmc_timeout", "bmc_user", "checkpoint_target", "cloud",
            "cluster", "cluster_address", "controller_paths", "controller_repository", "hl_smi", "hooks_dir",
            "instance_id", "instance_type", "inventory_partial", "market", "metrics_tls", "mirror",
            "mirror_lock_sha256", "network_script", "public_address", "region", "remove", "remove_data",
            "remove_driver", "restore_host", "secrets", "secrets_dir", "serial", "zone",
        ),
        "health": (
            "boot_time_command", "depth", "directory", "expected_cards", "hccl_demo", "hl_qual", "huge_pages", "mode",
            "pair_delay", "pair_faults", "pair_floors", "pair_port", "pair_timeout", "passport_days", "reboot_timeout",
            "released", "share", "spares", "timeout",
        ),
        "provision": (
            "allow_replace", "cloud", "destroy", "executable", "inventory_dir", "name", "size", "state",
            "terraform_dir", "type", "variables",
        ),
        "silence": ("ca_file", "for", "hosts", "state", "why"),
        "upgrade": ("allowed_signers", "directory", "flash_allowed", "plan", "signer", "unrehearsed_allowed"),
    }.items()
    for name in names
)  # fmt: skip
#: What names of the collection begin with, besides the names of its roles.
PREFIXES = ("certificate", "doctor", "gaudi", "health", "provision", "silence", "upgrade")
#: Likeness from which a name counts as one that was misspelt: of what stands behind a role's name, and of whole names.
ALIKE, ALIKE_ELSEWHERE = 0.75, 0.9


@dataclass(frozen=True)
class Unread:
    """A variable that nothing of the collection reads."""

    name: str
    near: Optional[str]
    """The variable that was meant, as far as one is like it."""
    ours: bool
    """Whether the name begins as names of the collection do."""

    @property
    def refused(self) -> bool:
        """Whether the run ends for it: where a misspelt name is much likelier than a variable of somebody else."""
        return self.ours and self.near is not None

    def sentence(self, origin: str) -> str:
        """What is wrong and what to do; ``origin`` says where the variable stands, and may be empty."""
        name = printable(self.name, 100)
        where = f" ({origin})" if origin else ""
        if self.near is None:
            return (
                f"{name}{where} begins as variables of this collection do, and nothing reads it: correct or remove it, "
                "or add it to gaudi_accept_variables if something else does."
            )
        return (
            f"{name}{where} is no variable of this collection: write {self.near} if you mean that, or add {name} to "
            "gaudi_accept_variables if something else reads it."
        )


def unread_variables(
    given: Iterable[str], known: Collection[str], roles: Iterable[str], accepted: Iterable[str] = ()
) -> list[Unread]:
    """The names among ``given`` that nothing reads; ``accepted`` are names, or patterns such as ``prometheus_*``."""
    prefixes = tuple(f"{each}_" for each in (*roles, *PREFIXES))
    patterns = list(accepted)
    found = []
    for name in sorted({str(each) for each in given}):
        if name in known or name.startswith(("_", "ansible_")) or any(fnmatchcase(name, each) for each in patterns):
            continue
        ours = name.startswith(prefixes)
        near = _same_begin(name, known, prefixes) if ours else nearest(name, known, ALIKE_ELSEWHERE)
        if ours or near is not None:
            found.append(Unread(name, near, ours))
    return found


def _same_begin(name: str, known: Collection[str], prefixes: tuple[str, ...]) -> Optional[str]:
    """The known name that begins with the same role's name and is alike behind it, which alone tells names apart."""
    begin = max((each for each in prefixes if name.startswith(each)), key=len)
    rests = [each[len(begin) :] for each in known if each.startswith(begin)]
    near = nearest(name[len(begin) :], rests, ALIKE)
    return None if near is None else begin + near


def used_in(values: object, names: Collection[str]) -> set[str]:
    """Those of ``names`` that a template in these values has: helpers of the inventory's own."""
    wanted = set(names)
    return (
        {word for text in _templates(values) for word in re.findall(r"\w+", text) if word in wanted}
        if wanted
        else set()
    )


def _templates(values: object) -> Iterator[str]:
    if isinstance(values, str):
        if "{{" in values or "{%" in values:
            yield values
    elif isinstance(values, Mapping):
        for each in values.values():
            yield from _templates(each)
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from _templates(each)
