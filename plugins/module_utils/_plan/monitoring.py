# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the services of a monitoring host have in common: their variables, files, claim, unit and page.

Each service asks its host twice. The first answers say whose its files are, and what of a site's own stays; from them
follow the files. The second say what its tasks would do, as in check mode.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Optional, Protocol

from ansible.module_utils.parsing.convert_bool import boolean

from .._credentials import Certificate
from .._host.address import authority, names_of
from .._host.service_state import is_unchanged
from .._monitoring.secrets import Secrets, Wanted
from .._monitoring.texts import certificates_page
from .._refusal import Refusal
from .model import Answers, Values, mapping

#: One question of gaudi_node_look.
Part = Mapping[str, Any]
#: Addresses at which a service would be everybody's, or nobody's.
EVERYWHERE = ("", "0.0.0.0", "::", "127.0.0.1", "localhost")


class Controller(Protocol):
    """What only the controller can do."""

    def head(self, mark: str = "#") -> str:
        """The comment that a managed file begins with."""

    def template(self, role: str, name: str) -> str:
        """A template beside the playbook or of the role, rendered."""

    def file(self, role: str, name: str) -> str:
        """A file beside the playbook or of the role."""

    def write(self, value: Any) -> str:
        """A value as YAML."""

    def read(self, text: str) -> Any:
        """YAML of a site; ``ValueError`` for what is none."""

    def kept_authority(self, directory: str) -> str:
        """The certificate of the authority in a folder of secrets; empty where none is."""

    def secrets(self, wanted: Wanted, dry_run: bool) -> Secrets:
        """Passwords and certificate; ``Refusal`` where they are not available."""


@dataclass(frozen=True)
class Given:
    """What is known of a monitoring host before it is asked."""

    host: str
    value: Values
    facts: Mapping[str, Any]
    groups: Mapping[str, Sequence[str]]
    hostvars: Mapping[str, Mapping[str, Any]]
    controller: Controller

    def others(self) -> dict[str, list[str]]:
        """The names and addresses of the cluster's other hosts, for none of which a certificate of this one is."""
        names = [*self.groups.get("gaudi", ()), *self.groups.get("monitoring", ())]
        return {
            host: names_of(host, self.hostvars[host])
            for host in dict.fromkeys(names)
            if host != self.host and host in self.hostvars
        }


@dataclass(frozen=True)
class File:
    """A file of a service, as gaudi_service takes it."""

    path: str
    content: Optional[str]
    """None where something else writes it, and only its owner and permissions are looked after."""
    group: str = "root"
    mode: str = "0644"
    secret: bool = False
    """Whether a difference shows no content."""
    restart: bool = False
    reload: bool = False
    validate: str = ""
    complaint: str = ""
    """What a refusal of the checking program begins with."""


@dataclass
class Service:
    """One service on one host. The names of its role's variables begin with ``name``."""

    given: Given
    claimed: Mapping[str, Any] = field(default_factory=dict)
    """What gaudi_claim answered."""
    present: Sequence[str] = ()
    """Texts of the host among which secrets may be that cannot be handed over as they are."""

    name = ""
    unit = ""
    data = ""
    arguments_file = ""
    secret_files: ClassVar[Sequence[str]] = ()
    source = "Debian's or Ubuntu's packages"
    timeout = 30
    """For how many seconds the service is waited for until it listens."""
    tries = 15
    """How often its page is then asked for."""

    def own(self, name: str) -> Any:
        """A variable of the role."""
        return self.given.value(f"{self.name}_{name}")

    def switch(self, name: str) -> bool:
        """A variable of the role that is true or false."""
        return bool(boolean(self.own(name), strict=False))

    @property
    def enabled(self) -> bool:
        """Whether the role does anything."""
        return True

    @property
    def runs(self) -> bool:
        """Whether the role installs the package and runs the service."""
        return True

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self.own("listen_address"))

    @property
    def port(self) -> int:
        """On which port; 0 for what is none."""
        try:
            return int(self.own("port"))
        except (TypeError, ValueError):
            return 0

    @property
    def authority(self) -> str:
        """Address and port as URLs have them."""
        return authority(self.address, self.port)

    @property
    def programs(self) -> Sequence[str]:
        """What the service runs; it starts again with a newer one."""
        return ()

    @property
    def package(self) -> str:
        """The package, as apt names it; empty where the role brings all that it needs."""
        return str(self.own("package"))

    # What is wrong

    def refuse(self) -> None:
        """``Refusal`` with the first of what is wrong with the variables or the host."""
        for problem in self.problems():
            raise Refusal(problem)

    def problems(self) -> list[str]:
        """What is wrong with the variables or the host, each in one sentence."""
        facts = self.given.facts
        system = (
            f"{self.given.host} runs {facts.get('distribution')}, and the role {self.name} installs from {self.source} "
            "only: put a Debian or Ubuntu host into the group monitoring."
            if facts.get("os_family") != "Debian"
            else ""
        )
        return [found for found in (system, *self.own_problems(), *self._listen_problems()) if found]

    def own_problems(self) -> Sequence[str]:
        """What is wrong with the variables that only this service has."""
        return ()

    def _listen_problems(self) -> Sequence[str]:
        port = f"{self.name}_port is {self.own('port')}; give a port from 1 to 65535."
        address = f'{self.name}_listen_address is "{self.address}"; give the host\'s address on the cluster network.'
        return [
            "" if 0 < self.port < 65536 else port,
            address if self.address in EVERYWHERE else "",
        ]

    # Whose the files are

    def written(self) -> list[str]:
        """All that the role writes."""
        raise NotImplementedError

    @property
    def page_of_certificates(self) -> str:
        """The file that says when the certificates end; empty where none is written."""
        folder = str(self.own("textfile_directory") or "")
        return f"{folder}/gaudi-certificates-{self.name}.prom" if folder else ""

    def listens(self) -> dict[str, Any]:
        """Where it is to listen."""
        where = {"address": self.address, "port": self.port, "variable": self.name}
        return {**where, "timeout": self.timeout}

    def claim(self) -> dict[str, Any]:
        """The options of gaudi_claim."""
        return {**self.record(self.written()), "unit": self.unit, "listens": self.listens()}

    def record(self, files: Sequence[str]) -> dict[str, Any]:
        """The options of a claim of some of its files, as gaudi_service takes them."""
        return {
            "service": self.name,
            "variable": self.name,
            "files": [*files],
            "package": self.package,
            "take_over": self.switch("take_over"),
            "arguments_file": self.arguments_file,
            "data": self.data,
        }

    def removal(self) -> dict[str, Any]:
        """The options of gaudi_claim that remove it."""
        return {"service": self.name, "variable": self.name, "state": "absent", "package": self.package}

    def first(self) -> list[Part]:
        """What is asked first."""
        claim = {"name": f"{self.name}_claim", "module": "gaudi_claim", "arguments": self.claim(), "tolerated": False}
        return [claim, *self.known_secrets()]

    def known_secrets(self) -> list[Part]:
        """Where secrets are handed over: what the host has of them."""
        if not self.own("secrets"):
            return []
        paths = {"paths": [*self.secret_files]}
        return [{"name": f"{self.name}_secrets", "module": "contents", "arguments": paths, "tolerated": True}]

    def learn(self, answers: Answers) -> None:
        """Take the first answers; ``Refusal`` where the files that follow from them cannot be."""
        self.claimed = mapping(answers, f"{self.name}_claim")
        texts = mapping(answers, f"{self.name}_secrets").get("texts")
        self.present = [str(text) for text in texts.values()] if isinstance(texts, Mapping) else []

    # Secrets

    @property
    def passwords(self) -> Sequence[str]:
        """Services whose passwords are needed here."""
        return [self.name]

    def secrets(self, dry_run: bool) -> Secrets:
        """Passwords and certificate, made where they are missing or end soon."""
        wanted = Wanted(
            self.passwords,
            f"{self.name}-{self.given.host}",
            self.name,
            [*dict.fromkeys(map(str, self.own("certificate_hosts") or ()))],
            self.given.others(),
            self.own("secrets") or {},
            self.present,
            str(self.own("secrets_dir") or ""),
        )
        return self.given.controller.secrets(wanted, dry_run)

    # Files

    def files(self, secrets: Secrets) -> list[File]:
        """All files, but for those that ``before`` has."""
        raise NotImplementedError

    def before(self) -> list[File]:
        """Files that have a task of their own."""
        return []

    def folders(self) -> Sequence[str]:
        """Folders that are root's and open to all."""
        return ()

    def certificates(self, secrets: Secrets) -> list[File]:
        """The page that says when the certificates end."""
        path, certificate = self.page_of_certificates, certificate_of(secrets)
        if not path:
            return []
        head = self.given.controller.head()
        text = certificates_page(head, self.name, certificate.expires, certificate.authority_expires)
        return [File(path, text)]

    def options(self, files: Sequence[File], claimed: Sequence[str], pending: str = "none") -> dict[str, Any]:
        """The options of gaudi_service that writes files, of which those are recorded, and runs the service."""
        running = {
            "restart_files": [*self.programs],
            "listens": self.listens(),
            "pending": pending,
        }
        return {
            "name": self.unit,
            "state": "running" if self.runs else "written",
            "files": [asdict(file) for file in files],
            "folders": [*self.folders()],
            "claim": self.record(claimed),
            **(running if self.runs else {}),
        }

    # The page

    def page(self, secrets: Secrets) -> dict[str, Any]:
        """What its page is asked for, as the part ``service_page`` of gaudi_node_look."""
        raise NotImplementedError

    def is_answered(self, answer: Mapping[str, Any]) -> bool:
        """Whether the page says that nothing is to be done."""
        return answer.get("status") == 200

    # What is to be done

    def then(self, secrets: Secrets) -> list[Part]:
        """What is asked with the first answers known."""
        files = [*self.before(), *self.files(secrets)]
        asked = [("", "gaudi_service", self.options(files, self.written()))]
        if self.runs and self.package:
            asked.append(("_package", "package", {"package": self.package}))
        if self.runs:
            asked.append(("_page", "service_page", self.page(secrets)))
        return [
            {"name": self.name + end, "module": module, "arguments": arguments, "tolerated": True}
            for end, module, arguments in asked
        ]

    def unchanged(self, answers: Answers) -> bool:
        """Whether its role would change nothing, and would have nothing to tell."""
        service = mapping(answers, self.name)
        installed = not self.package or mapping(answers, f"{self.name}_package").get("installed") is True
        return (
            is_unchanged(service)
            and service.get("recorded") is True
            and (not self.runs or (installed and self.is_answered(mapping(answers, f"{self.name}_page"))))
        )


def certificate_of(secrets: Secrets) -> Certificate:
    """The certificate, which every service of a monitoring host has."""
    if secrets.certificate is None:
        raise Refusal("There is no certificate.")
    return secrets.certificate


def stem(path: str) -> str:
    """The name of a template's file without its last ending."""
    return posixpath.splitext(posixpath.basename(path))[0]
