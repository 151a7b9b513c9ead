# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The page of gaudi3-watch on a monitoring host.

The program is this collection's own and needs Python alone, so that it is written as files: nothing is fetched from an
index, and a new version of it is a difference like any other.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from typing import Any

from .._host.address import authority
from .._monitoring.secrets import Secrets
from .._refusal import Refusal
from .model import Answers, mapping
from .monitoring import File, Part, Service, certificate_of
from .shipped import content_of

DIRECTORY = "/etc/gaudi3-scale/watch"
PROGRAM = "/usr/local/lib/gaudi3-watch"
UNIT = "gaudi3-watch.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
#: The oldest Python that runs it: that of Debian 11.
OLDEST = (3, 9)
#: As the program demands it of a page that others reach.
SHORTEST_PASSWORD = 12
#: What it consists of, by the folder that has it. A test holds the lists against what the program imports and serves.
SHIPPED = {
    "trainer/src/gaudi3_scale": ("__init__.py", "errors.py", "lazy.py", "metrics_listener.py", "version.py"),
    "watch/src/gaudi3_watch": (
        *("__init__.py", "causes.py", "cluster.py", "cluster_sections.py", "downsample.py", "listening.py"),
        *("node_reports.py", "pages.py", "prometheus.py", "queries.py", "serve.py", "service.py", "view.py"),
    ),
    "watch/src/gaudi3_watch/static": (
        *("address.js", "charts.js", "elements.js", "icon.svg", "index.html", "theme.js", "uplot-license.txt"),
        *("uplot.min.css", "uplot.min.js", "watch.css", "watch.js"),
    ),
}
_EXECUTABLE = re.compile("/[A-Za-z0-9._/+-]+")
_WEB = re.compile(r"https://[^\s/?#@]+/?")


def program() -> dict[str, str]:
    """The sources in this collection by their places on the host."""
    return {
        f"{PROGRAM}/{folder.partition('/src/')[2]}/{name}": f"{folder}/{name}"
        for folder, names in SHIPPED.items()
        for name in names
    }


class WatchPage(Service):
    """One page for training, cards, nodes and cost, from the Prometheus of the cluster."""

    name = "watch"
    unit = UNIT
    secret_files = (f"{DIRECTORY}/server.crt", f"{DIRECTORY}/server.key")

    @property
    def enabled(self) -> bool:
        """Unless it is switched off."""
        return self.switch("enabled")

    @property
    def package(self) -> str:
        """None: the role brings the program."""
        return ""

    @property
    def python(self) -> str:
        """The Python that runs it."""
        return str(self.own("python"))

    @property
    def programs(self) -> Sequence[str]:
        """Only Python is not written by the role."""
        return (self.python,)

    @property
    def passwords(self) -> list[str]:
        """Its own, and that of the Prometheus which it asks."""
        return ["watch", "prometheus"]

    @property
    def prometheus(self) -> str:
        """The Prometheus that it asks: that of the role on the same host, or another."""
        given = str(self.own("prometheus_url") or "")
        return given or f"https://{authority(self.address, self.given.value('prometheus_port'))}"

    # What is wrong

    def own_problems(self) -> list[str]:
        """Also a password that the program would refuse when it starts."""
        handed = str((self.own("secrets") or {}).get("watch_password") or "")
        return [
            ""
            if _EXECUTABLE.fullmatch(self.python)
            else f'watch_python is "{self.python}"; give the path of a Python, such as /usr/bin/python3.',
            ""
            if _WEB.fullmatch(self.prometheus)
            else "watch_prometheus_url is not an address such as https://10.0.0.5:9090, without user and password; "
            "correct it.",
            ""
            if not handed or len(handed) >= SHORTEST_PASSWORD
            else f"The secret watch_password has {len(handed)} characters; hand over {SHORTEST_PASSWORD} or more.",
        ]

    def first(self) -> list[Part]:
        """Also which Python there is."""
        asked = {"executable": self.python}
        part = {"name": "watch_python", "module": "interpreter", "arguments": asked, "tolerated": True}
        return [*super().first(), part]

    def learn(self, answers: Answers) -> None:
        """``Refusal`` for a Python that does not run the program."""
        super().learn(answers)
        answer = mapping(answers, "watch_python")
        if "version" not in answer:
            return
        version, oldest = str(answer["version"]), ".".join(map(str, OLDEST))
        remedy = f"install Python {oldest} or newer there and name it in watch_python, or set watch_enabled to false."
        if not version:
            raise Refusal(f"{self.given.host} has no {self.python} that runs, and gaudi3-watch needs one: {remedy}")
        if tuple(map(int, version.split("."))) < OLDEST:
            raise Refusal(
                f"{self.python} on {self.given.host} is Python {version}, and gaudi3-watch needs {oldest}: {remedy}"
            )

    # Files

    def written(self) -> list[str]:
        """All that the role writes."""
        names = ("ca.crt", "server.crt", "server.key", "password", "prometheus_password", "settings.json")
        files = [*(f"{DIRECTORY}/{name}" for name in names), *program(), UNIT_FILE]
        return [*files, *([self.page_of_certificates] if self.page_of_certificates else [])]

    def folders(self) -> list[str]:
        """Of the program, and of its settings."""
        return [DIRECTORY, *dict.fromkeys([PROGRAM, *(posixpath.dirname(path) for path in program())])]

    def settings(self) -> dict[str, Any]:
        """What the program reads; JSON has no comment that says who wrote it."""
        return {
            "address": self.address,
            "port": self.port,
            "names": [*dict.fromkeys([*map(str, self.own("certificate_hosts") or ()), self.address])],
            "prometheus": self.prometheus,
            "simulated": self.switch("simulated"),
        }

    def files(self, secrets: Secrets) -> list[File]:
        """All is read when the program starts. systemd hands over what is secret, so that root alone has to read it."""
        certificate = certificate_of(secrets)
        contents = {
            "ca.crt": certificate.authority,
            "server.crt": certificate.certificate,
            "server.key": certificate.private_key,
            "password": secrets.passwords["watch"].password,
            "prometheus_password": secrets.passwords["prometheus"].password,
        }
        return [
            *(
                File(f"{DIRECTORY}/{name}", text, "root", "0640", secret=True, restart=True)
                for name, text in contents.items()
            ),
            File(f"{DIRECTORY}/settings.json", f"{json.dumps(self.settings(), indent=1)}\n", restart=True),
            *(File(path, content_of(source), restart=True) for path, source in program().items()),
            File(UNIT_FILE, self.given.controller.template(self.name, f"{UNIT}.j2"), restart=True),
            *self.certificates(secrets),
        ]

    def page(self, secrets: Secrets) -> dict[str, Any]:
        """The page itself."""
        return {
            "url": f"https://{self.authority}/",
            "username": "watch",
            "password": secrets.passwords["watch"].password,
            "authority": f"{DIRECTORY}/ca.crt",
        }
