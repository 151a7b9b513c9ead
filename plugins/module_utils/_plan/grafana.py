# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Grafana on a monitoring host."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from .._monitoring.secrets import Secrets
from .._monitoring.texts import ini_text
from .monitoring import File, Service, certificate_of

DIRECTORY = "/etc/grafana"
DASHBOARDS = f"{DIRECTORY}/dashboards"
PROVISIONING = f"{DIRECTORY}/provisioning"
KEY = "/etc/apt/keyrings/grafana.asc"
SOURCE = "/etc/apt/sources.list.d/grafana.sources"
_WEB = re.compile("https?://[!-~]+")
_FINGERPRINT = re.compile("[0-9A-F]{40}")


class Grafana(Service):
    """Grafana, its data source and its dashboards."""

    name = "grafana"
    unit = "grafana-server.service"
    data = "/var/lib/grafana"
    programs = ("/usr/sbin/grafana-server", "/usr/share/grafana/bin/grafana")
    secret_files = (f"{DIRECTORY}/server.crt", f"{DIRECTORY}/server.key")
    source = "Grafana's apt repository"
    # The first start makes the data base.
    timeout = 60
    tries = 30

    @property
    def enabled(self) -> bool:
        """Unless it is switched off."""
        return self.switch("enabled")

    @property
    def runs(self) -> bool:
        """Not where it is installed otherwise."""
        return self.switch("install")

    @property
    def passwords(self) -> list[str]:
        """Its own, and that of its data source."""
        return ["grafana", "prometheus"]

    def problems(self) -> list[str]:
        """What is wrong with the repository comes last."""
        return [*super().problems(), *(filter(None, self._repository_problems()) if self.runs else ())]

    def _repository_problems(self) -> list[str]:
        url, fingerprint = str(self.own("repository_url")), str(self.own("repository_key_fingerprint"))
        return [
            ""
            if _WEB.fullmatch(url)
            else f'grafana_repository_url is "{url}"; give one address of the web, without white space.',
            ""
            if _FINGERPRINT.fullmatch(fingerprint)
            else f'grafana_repository_key_fingerprint is "{fingerprint}"; give the 40 hexadecimal digits of the key, '
            "in capitals and without spaces.",
        ]

    @property
    def dashboards(self) -> dict[str, str]:
        """The files of dashboards, by their places on the host."""
        return {f"{DASHBOARDS}/{posixpath.basename(str(name))}": str(name) for name in self.own("dashboards") or ()}

    def written(self) -> list[str]:
        """All that the role writes, but for the source of packages."""
        names = ("ca.crt", "server.crt", "server.key", "admin_password", "grafana.ini")
        files = [f"{DIRECTORY}/{name}" for name in names]
        files += [f"{PROVISIONING}/datasources/gaudi3-prometheus.yml", f"{PROVISIONING}/dashboards/gaudi3.yml"]
        return [*files, *([self.page_of_certificates] if self.page_of_certificates else []), *self.dashboards]

    def folders(self) -> list[str]:
        """Of its configuration."""
        return [DIRECTORY, PROVISIONING, f"{PROVISIONING}/datasources", f"{PROVISIONING}/dashboards", DASHBOARDS]

    def settings(self) -> dict[str, dict[str, Any]]:
        """Sections of grafana.ini; those of the site are stronger. Nothing is reported to Grafana Labs."""
        own: dict[str, dict[str, Any]] = {
            "server": {
                "protocol": "https",
                "http_addr": self.address,
                "http_port": self.port,
                "root_url": self.own("external_url"),
                "cert_file": f"{DIRECTORY}/server.crt",
                "cert_key": f"{DIRECTORY}/server.key",
            },
            "security": {
                "admin_password": f"$__file{{{DIRECTORY}/admin_password}}",
                "cookie_secure": "true",
                "disable_gravatar": "true",
            },
            "users": {"allow_sign_up": "false"},
            "analytics": {
                "reporting_enabled": "false",
                "check_for_updates": "false",
                "check_for_plugin_updates": "false",
            },
        }
        more: Mapping[str, Mapping[str, Any]] = self.own("settings") or {}
        return {name: {**own.get(name, {}), **more.get(name, {})} for name in dict.fromkeys([*own, *more])}

    def datasource(self, secrets: Secrets) -> dict[str, Any]:
        """The Prometheus that the dashboards show. Grafana takes $$ for a dollar sign."""
        return {
            "apiVersion": 1,
            "prune": True,
            "datasources": [
                {
                    "name": "Prometheus",
                    "uid": "gaudi3-prometheus",
                    "type": "prometheus",
                    "access": "proxy",
                    "isDefault": True,
                    "editable": False,
                    "url": self.own("prometheus_url"),
                    "basicAuth": True,
                    "basicAuthUser": "prometheus",
                    "jsonData": {
                        "httpMethod": "POST",
                        "timeInterval": self.own("prometheus_scrape_interval"),
                        "tlsAuthWithCACert": True,
                    },
                    "secureJsonData": {
                        "basicAuthPassword": secrets.passwords["prometheus"].password.replace("$", "$$"),
                        "tlsCACert": certificate_of(secrets).authority.strip() + "\n",
                    },
                }
            ],
        }

    def files(self, secrets: Secrets) -> list[File]:
        """What Grafana reads when it starts, and the dashboards, which it reads again by itself."""
        controller, certificate = self.given.controller, certificate_of(secrets)
        folder = {"name": "gaudi3.scale", "folder": "Gaudi 3", "type": "file", "allowUiUpdates": False}
        provider = {"apiVersion": 1, "providers": [{**folder, "options": {"path": DASHBOARDS}}]}
        head = controller.head()
        contents = {
            f"{DIRECTORY}/ca.crt": certificate.authority,
            f"{DIRECTORY}/server.crt": certificate.certificate,
            f"{DIRECTORY}/server.key": certificate.private_key,
            f"{DIRECTORY}/admin_password": secrets.passwords["grafana"].password,
            f"{DIRECTORY}/grafana.ini": f"{controller.head(';')}{ini_text(self.settings())}\n",
            f"{PROVISIONING}/datasources/gaudi3-prometheus.yml": head
            + controller.write(self.datasource(secrets))
            + "\n",
            f"{PROVISIONING}/dashboards/gaudi3.yml": head + controller.write(provider),
        }
        group = str(self.own("group"))
        return [
            *(File(path, text, group, "0640", secret=True, restart=True) for path, text in contents.items()),
            *self.certificates(secrets),
            *(File(path, controller.file(self.name, name)) for path, name in self.dashboards.items()),
        ]

    def before(self) -> list[File]:
        """Where the package comes from."""
        if not self.runs:
            return []
        return [File(KEY, None), File(SOURCE, self.given.controller.template(self.name, "grafana.sources.j2"))]

    def page(self, _secrets: Secrets) -> dict[str, Any]:
        """Whether it is well, which it says to everybody."""
        return {"url": f"https://{self.authority}/api/health", "authority": f"{DIRECTORY}/ca.crt"}
