# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Alertmanager on a monitoring host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._monitoring.secrets import Secrets
from .._monitoring.texts import arguments_line
from .monitoring import File, Service, certificate_of
from .prometheus import web_configuration

#: Where the package has its configuration, too.
DIRECTORY = "/etc/prometheus"
CONFIGURATION = f"{DIRECTORY}/alertmanager.yml"
ARGUMENT_SPEC = "/etc/default/prometheus-alertmanager"
PACKAGE = "prometheus-alertmanager"
GROUP = "prometheus"
NOBODY = "nobody"


class Alertmanager(Service):
    """Alertmanager. Its configuration may hold receivers' passwords, so all its files count as secrets."""

    name = "alertmanager"
    unit = "prometheus-alertmanager.service"
    data = "/var/lib/prometheus/alertmanager"
    arguments_file = ARGUMENT_SPEC
    programs = ("/usr/bin/prometheus-alertmanager",)
    secret_files = tuple(f"{DIRECTORY}/alertmanager{end}" for end in (".crt", ".key", "-web.yml"))

    @property
    def receivers(self) -> list[Mapping[str, Any]]:
        """Who gets messages."""
        return [*(self.own("receivers") or ())]

    @property
    def passwords(self) -> list[str]:
        """Its own."""
        return ["alertmanager"]

    def problems(self) -> list[str]:
        """Receivers come last."""
        return [*super().problems(), *filter(None, self._receiver_problems())]

    def own_problems(self) -> list[str]:
        """An Alertmanager that is too old."""
        facts = self.given.facts
        version = str(facts.get("distribution_major_version"))
        old = facts.get("distribution") == "Debian" and re.fullmatch("[0-9]+", version) and int(version) < 12
        return [
            f"{self.given.host} runs Debian {version}, whose Alertmanager knows neither TLS nor passwords: put a host "
            "with Debian 12, Ubuntu 22.04 or newer into the group monitoring, name another package in "
            "alertmanager_package, or leave monitoring out with --skip-tags monitoring."
            if old and self.package == PACKAGE
            else ""
        ]

    def _receiver_problems(self) -> list[str]:
        known = [str(each.get("name")) for each in self.receivers]
        route, watchdog = (self.own("route") or {}).get("receiver"), self.own("watchdog_receiver")
        none = f"which is none of alertmanager_receivers ({', '.join(known)}); add it there or correct the name."
        return [
            "" if route in known else f'alertmanager_route sends to "{route}", {none}',
            "" if watchdog in [NOBODY, *known] else f'alertmanager_watchdog_receiver is "{watchdog}", {none}',
        ]

    @property
    def arguments(self) -> list[str]:
        """One Alertmanager: no gossip with others, and no port for it."""
        return [
            f"--config.file={CONFIGURATION}",
            f"--web.listen-address={self.authority}",
            f"--web.config.file={DIRECTORY}/alertmanager-web.yml",
            f"--web.external-url={self.own('external_url')}",
            "--cluster.listen-address=",
            *map(str, self.own("extra_arguments") or ()),
        ]

    def written(self) -> list[str]:
        """All that the role writes."""
        names = ("-ca.crt", ".crt", ".key", "-web.yml", ".yml")
        files = [*(f"{DIRECTORY}/alertmanager{end}" for end in names), ARGUMENT_SPEC]
        return [*files, *([self.page_of_certificates] if self.page_of_certificates else [])]

    def files(self, secrets: Secrets) -> list[File]:
        """Certificates and passwords are noticed by Alertmanager itself."""
        controller, certificate = self.given.controller, certificate_of(secrets)
        web = web_configuration(f"{DIRECTORY}/alertmanager", {self.name: secrets.passwords[self.name].hash})
        contents = {
            "-ca.crt": certificate.authority,
            ".crt": certificate.certificate,
            ".key": certificate.private_key,
            "-web.yml": controller.head() + controller.write(web) + "\n",
        }
        named = {str(each.get("name")): each for each in [{"name": NOBODY}, *reversed(self.receivers)]}
        ordered = [str(each.get("name")) for each in self.receivers]
        settings = {
            "global": self.own("global"),
            "route": self.own("route"),
            "receivers": [named[name] for name in dict.fromkeys([*ordered, NOBODY])],
            "inhibit_rules": self.own("inhibit_rules"),
        }
        return [
            *(
                File(f"{DIRECTORY}/alertmanager{end}", text, GROUP, "0640", secret=True)
                for end, text in contents.items()
            ),
            File(
                CONFIGURATION,
                controller.head() + controller.write(settings) + "\n",
                GROUP,
                "0640",
                secret=True,
                reload=True,
                validate="amtool check-config %s",
                complaint="amtool refuses what alertmanager_receivers, alertmanager_route, alertmanager_global and "
                "alertmanager_inhibit_rules make",
            ),
            File(
                ARGUMENT_SPEC,
                f"{controller.head()}{arguments_line(self.arguments)}\n",
                GROUP,
                "0640",
                secret=True,
                restart=True,
                validate="/bin/sh -n %s",
            ),
            *self.certificates(secrets),
        ]

    def page(self, secrets: Secrets) -> dict[str, Any]:
        """Whether it is ready."""
        return {
            "url": f"https://{self.authority}/-/ready",
            "username": self.name,
            "password": secrets.passwords[self.name].password,
            "authority": f"{DIRECTORY}/alertmanager-ca.crt",
        }
