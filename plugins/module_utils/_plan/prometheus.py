# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prometheus on a monitoring host."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Optional

from .._monitoring.prometheus_plan import CONFIGURATION, DIRECTORY, Plan, Wanted, addresses, nodes, plan
from .._monitoring.secrets import Secrets
from .._monitoring.texts import arguments_line
from .._refusal import Refusal
from .model import Answers
from .monitoring import File, Service, certificate_of, stem
from .prometheus_targets import QUIET, expected, target_file, text

ARGUMENT_SPEC = "/etc/default/prometheus"
#: Where a site's own configuration is kept, of which its jobs go on.
KEPT = {CONFIGURATION: f"{DIRECTORY}/site.yml"}
GROUP = "prometheus"
_TIME = re.compile(r"([0-9]+(ms|[smhdwy]))+")
_SIZE = re.compile("[0-9]+[KMGTPE]?B")


class Prometheus(Service):
    """Prometheus, its targets and its rules."""

    name = "prometheus"
    unit = "prometheus.service"
    data = "/var/lib/prometheus/metrics2"
    arguments_file = ARGUMENT_SPEC
    programs = ("/usr/bin/prometheus",)
    secret_files = (f"{DIRECTORY}/server.crt", f"{DIRECTORY}/server.key", f"{DIRECTORY}/web.yml")
    planned: Optional[Plan] = None

    @property
    def jobs(self) -> list[Mapping[str, Any]]:
        """What is scraped."""
        return [*(self.own("jobs") or ())]

    @property
    def templates(self) -> list[str]:
        """Templates of rules."""
        return [str(name) for name in self.own("rule_templates") or ()]

    @property
    def passwords(self) -> list[str]:
        """Of this service, and of those that are scraped."""
        return [*dict.fromkeys(["prometheus", *(str(job["service"]) for job in self.jobs if "service" in job)])]

    def own_problems(self) -> list[str]:
        """Also what the addresses of all hosts and the variables do not allow, as far as that is known."""
        time, size = str(self.own("retention_time") or ""), str(self.own("retention_size") or "")
        names = [str(job["name"]) for job in self.jobs]
        return [
            f'prometheus_retention_time is "{time}"; write a number and one of ms, s, m, h, d, w, y, such as 15d.'
            if time and not _TIME.fullmatch(time)
            else "",
            f'prometheus_retention_size is "{size}"; write a number and one of B, KB, MB, GB, TB, PB, EB, such as 20GB.'
            if size and not _SIZE.fullmatch(size)
            else "",
            f"prometheus_jobs has two jobs of one name among {', '.join(names)}; name each differently."
            if len({*names}) != len(names)
            else "",
            "prometheus_jobs has a job with both service and tls_config, and service has TLS of its own: leave one of "
            "them out."
            if any("service" in job and "tls_config" in job for job in self.jobs)
            else "",
        ]

    def problems(self) -> list[str]:
        """The plan without a site's own part comes last."""
        found = super().problems()
        if not found:
            try:
                self._plan({})
            except Refusal as refusal:
                found.append(str(refusal))
        return found

    # The cluster that is watched

    @cached_property
    def wanted(self) -> Wanted:
        """What the variables say."""
        value = self.given.value
        return Wanted(
            self.given.host,
            self.jobs,
            [f"rules-{stem(name)}" for name in self.templates],
            self.own("scrape_limits") or {},
            {
                "scrape_interval": self.own("scrape_interval"),
                "evaluation_interval": self.own("evaluation_interval"),
                "external_labels": self.own("external_labels"),
            },
            self.given.groups,
            str(value("gaudi_remove") or "").split(","),
            self.arguments,
            [*(self.own("extra_arguments") or ())],
            [*(self.own("extra_scrape_configs") or ())],
            {"time": str(self.own("retention_time") or ""), "size": str(self.own("retention_size") or "")},
            self.switch("accept_shorter_retention"),
        )

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """The address of each host that is watched; ``Refusal`` where one has none."""
        return addresses(self.wanted, self.given.hostvars)

    @property
    def arguments(self) -> list[str]:
        """The role's own arguments.

        Alerts that wait for 1 minute or more go on after a restart where they were: with the grace period of 10 minutes
        that Prometheus has, those of 5 minutes would begin again, and their receivers would get "resolved" in between.
        """
        return [
            f"--web.listen-address={self.authority}",
            f"--web.config.file={DIRECTORY}/web.yml",
            f"--web.external-url={self.own('external_url')}",
            "--rules.alert.for-grace-period=1m",
        ]

    def cluster(self) -> dict[str, Any]:
        """The cluster that is watched, known again by its authority or by the addresses of its nodes."""
        handed = (self.own("secrets") or {}).get("ca_certificate") or ""
        directory = str(self.own("secrets_dir") or "")
        text = str(handed or (self.given.controller.kept_authority(directory) if directory else "")).strip()
        digest = hashlib.sha256(text.encode()).hexdigest() if text else ""
        return {"authority": digest, "nodes": nodes(self.wanted, self.addresses)}

    def _plan(self, claim: Mapping[str, Any]) -> Plan:
        return plan(self.wanted, self.addresses, claim, self.given.controller.read)

    def learn(self, answers: Answers) -> None:
        """Also what a site's Prometheus had before."""
        super().learn(answers)
        self.planned = self._plan(self.claimed)

    # Whose the files are

    @property
    def target_files(self) -> list[str]:
        """One for each job."""
        return [target_file(str(job["name"])) for job in self.jobs]

    def written(self) -> list[str]:
        """All that the role writes."""
        names = ["ca.crt", "server.crt", "server.key", "web.yml", "prometheus.yml"]
        names += [f"{service}_password" for service in self.passwords]
        files = [f"{DIRECTORY}/{name}" for name in names] + self.target_files
        files += [f"{DIRECTORY}/{name}" for name in self.wanted.rules]
        return [*files, ARGUMENT_SPEC, *([self.page_of_certificates] if self.page_of_certificates else [])]

    def record(self, files: Sequence[str]) -> dict[str, Any]:
        """With the cluster."""
        return {**super().record(files), "cluster": self.cluster()}

    def claim(self) -> dict[str, Any]:
        """With what a site goes on with."""
        return {**super().claim(), "keep": KEPT}

    def watches(self) -> dict[str, Any]:
        """The options of gaudi_claim that refuse a host which watches another cluster."""
        return {"service": self.name, "variable": self.name, "cluster": self.cluster()}

    def removal(self) -> dict[str, Any]:
        """With the cluster, and what was kept of a site's."""
        return {**super().removal(), "cluster": self.cluster(), "keep": KEPT}

    # Files

    def targets(self) -> list[File]:
        """The hosts of each job. Prometheus notices a change by itself."""
        controller, targets = self.given.controller, self._planned.targets
        written = {str(job["name"]): controller.write([*targets[job["name"]]]) for job in self.jobs}
        return [File(target_file(name), text(controller.head(), each)) for name, each in written.items()]

    def before(self) -> list[File]:
        """The targets, which a site writes alone where nodes come and go."""
        return self.targets()

    def files(self, secrets: Secrets) -> list[File]:
        """Rules come before the configuration that loads them, which is checked with them.

        Not with --lint-fatal, which came with 2.36.1 (June 2022): Debian 11 and Ubuntu 22.04 have older ones.
        """
        controller, certificate = self.given.controller, certificate_of(secrets)
        passwords = {f"{name}_password": secrets.passwords[name].password for name in self.passwords}
        contents = {
            "ca.crt": certificate.authority,
            "server.crt": certificate.certificate,
            "server.key": certificate.private_key,
            "web.yml": controller.head() + controller.write(self.web(secrets)) + "\n",
            **passwords,
        }
        # The site's part may hold passwords.
        hidden = bool(self.claimed.get("kept"))
        rules = [
            File(
                f"{DIRECTORY}/rules-{stem(template)}",
                controller.template(self.name, template),
                secret=hidden,
                reload=True,
                validate="promtool check rules %s",
            )
            for template in self.templates
        ]
        settings = controller.write(dict(self._planned.configuration))
        return [
            *(File(f"{DIRECTORY}/{name}", text, GROUP, "0640", secret=True) for name, text in contents.items()),
            *self.certificates(secrets),
            *rules,
            File(
                CONFIGURATION,
                f"{controller.head()}{settings}\n",
                GROUP,
                "0640",
                secret=hidden,
                reload=True,
                validate="promtool check config %s",
            ),
            File(
                ARGUMENT_SPEC,
                f"{controller.head()}{arguments_line(self._planned.arguments)}\n",
                secret=hidden,
                restart=True,
                validate="/bin/sh -n %s",
            ),
        ]

    def web(self, secrets: Secrets) -> dict[str, Any]:
        """How it serves its page."""
        return web_configuration(f"{DIRECTORY}/server", {"prometheus": secrets.passwords["prometheus"].hash})

    @property
    def _planned(self) -> Plan:
        if self.planned is None:
            raise Refusal("The host was not asked whose the files of Prometheus are.")
        return self.planned

    # The page

    def page(self, secrets: Secrets) -> dict[str, Any]:
        """Its targets."""
        return {
            "url": f"https://{self.authority}/api/v1/targets?state=active",
            "username": "prometheus",
            "password": secrets.passwords["prometheus"].password,
            "authority": f"{DIRECTORY}/ca.crt",
            "targets": expected(self.wanted) if self.switch("verify_targets") else [],
            "quiet": [*QUIET],
        }

    def is_answered(self, answer: Mapping[str, Any]) -> bool:
        """It knows its targets, and all answer."""
        return super().is_answered(answer) and answer.get("missing") == [] and answer.get("silent") == []


def web_configuration(files: str, users: Mapping[str, str]) -> dict[str, Any]:
    """How a service serves its page: over TLS, to those who know the password."""
    return {
        "tls_server_config": {"cert_file": f"{files}.crt", "key_file": f"{files}.key", "min_version": "TLS12"},
        "basic_auth_users": dict(users),
    }
