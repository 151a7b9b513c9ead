# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The passwords and the certificate of a service: handed over, or kept in a folder of the controller."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .._credentials import Certificate, Folder, Lifetimes, Password, keep_certificate, keep_password
from .._given_secrets import Given
from .._host.address import single_host
from .._printable import printable
from .._refusal import Refusal

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Wanted:
    """What is asked for; as the module gaudi_credentials documents its options."""

    passwords: Sequence[str] = ()
    certificate: str = ""
    service: str = ""
    hosts: Sequence[str] = ()
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    present: Sequence[str] = ()
    directory: str = ""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)

    @property
    def missing(self) -> list[str]:
        """What is not handed over, and has to be kept in a folder therefore."""
        return Given(self.given).missing(self.passwords, bool(self.certificate))

    def fault(self) -> str:
        """What is wrong with it, in one sentence; empty where nothing is."""
        for name in [*self.passwords, *([self.certificate] if self.certificate else [])]:
            if not _NAME.fullmatch(name):
                return f"{name!r} is no name for a secret; use letters, digits, dots, hyphens and underscores."
        fault = self._foreign()
        if fault:
            return fault
        if self.certificate and not self.hosts:
            return f"The certificate {self.certificate} is for no host; give its names as hosts."
        times = self.lifetimes
        if not 0 < times.renew_before < times.certificate < times.authority:
            return (
                f"renew_before_days {times.renew_before}, certificate_days {times.certificate} and authority_days "
                f"{times.authority} must grow in this order; correct them."
            )
        fault = Given(self.given).fault([*self.passwords, *([self.service] if self.service else [])])
        if not fault and self.missing and not self.directory:
            return f"There is no directory to keep {', '.join(self.missing)} in; give one, or hand all over in given."
        return fault

    def _foreign(self) -> str:
        """Which name of a certificate is not one host's, or is another host's; it could stand for that one."""
        for host in self.hosts:
            name = single_host(host)
            if name is None:
                return (
                    f"The certificate {self.certificate} is to be for {printable(host)!r}, which is no address of one "
                    "host: give an IP address or a host name."
                )
            other = next((each for each, names in self.others.items() if name.lower().rstrip(".") in names), None)
            if other:
                return (
                    f"The certificate {self.certificate} is to be for {name}, which the inventory gives to {other}: "
                    "correct the address of one of them, or put one name into both groups."
                )
        return ""


@dataclass(frozen=True)
class Secrets:
    """What was asked for, and the files of the folder that were written or had their permissions narrowed."""

    passwords: Mapping[str, Password]
    certificate: Optional[Certificate]
    files: Sequence[str] = ()


def keep(wanted: Wanted, dry_run: bool) -> Secrets:
    """Handed over, or else out of the folder, which is opened for nothing else. ``Refusal`` where neither can be."""
    fault = wanted.fault()
    if fault:
        raise Refusal(fault)
    given = Given(wanted.given, wanted.present)
    name, hosts = wanted.certificate, [*wanted.hosts]
    now = datetime.datetime.now(datetime.timezone.utc)
    known = {each: given.password(each) for each in wanted.passwords}
    certificate = given.certificate(wanted.service or name, hosts, wanted.lifetimes, now) if name else None
    folder = Folder(wanted.directory, dry_run=dry_run)
    if not wanted.missing:
        return Secrets({each: found for each, found in known.items() if found}, certificate)
    with folder.opened():
        passwords = {each: found or keep_password(folder, each) for each, found in known.items()}
        if name:
            certificate = certificate or keep_certificate(folder, name, hosts, wanted.lifetimes, now)
    return Secrets(passwords, certificate, folder.changed)
