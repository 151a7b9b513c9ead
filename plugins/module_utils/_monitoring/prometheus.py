# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prometheus' configuration and arguments: the collection's own, beside what the host's Prometheus had before.

A site's jobs, rules, labels, receivers and remote storage stay, and so do its arguments. Data is never kept for less
than before unless that was asked for twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._refusal import Refusal

#: What Prometheus does without any argument for it, and what the role wants of a new one.
DEFAULT_TIME, NEW_SIZE = "15d", "20GB"
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_SIZES = {prefix: 1024**power for power, prefix in enumerate(("", "K", "M", "G", "T", "P", "E"))}
_TIME_FLAGS = ("storage.tsdb.retention.time", "storage.tsdb.retention")
_SIZE_FLAG = "storage.tsdb.retention.size"
_HERE = ("localhost", "127.0.0.1", "[::1]")
_LIMITS = ("body_size_limit", "sample_limit", "label_limit", "label_name_length_limit", "label_value_length_limit")


@dataclass
class Site:
    """What the host's Prometheus had before."""

    configuration: Mapping[str, Any] = field(default_factory=dict)
    arguments: Sequence[str] = ()


def milliseconds(text: str) -> int:
    """A duration of Prometheus, such as ``1h30m``; ValueError for anything else."""
    if not re.fullmatch(r"0|([0-9]+(ms|[smhdwy]))+", text):
        raise ValueError(text)
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)(ms|[smhdwy])", text))


def size(text: str) -> int:
    """A number of bytes, such as ``20GB``; ValueError for anything else."""
    found = re.fullmatch(r"([0-9]+)([KMGTPE]?)(?:i?B)?", text)
    if not found:
        raise ValueError(text)
    return int(int(found[1]) * _SIZES[found[2]])


def flags(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Arguments by their names without dashes, each with its words; one without dashes belongs to the one before."""
    found: dict[str, list[str]] = {}
    last = ""
    for word in arguments:
        if word.startswith("-"):
            last = word.lstrip("-").partition("=")[0]
            found.setdefault(last, []).append(word)
        elif last:
            found[last].append(word)
    return found


def _value(found: Mapping[str, list[str]], names: Sequence[str]) -> str:
    """The value of the first of these names that is given; it takes precedence in Prometheus, too."""
    words = next((found[name] for name in names if found.get(name)), [])
    return words[-1].partition("=")[2] if words and words[-1].startswith("-") else words[-1] if words else ""


def retention(
    wanted: Mapping[str, str], before: Sequence[str] | None, shorter_accepted: bool, host: str
) -> tuple[str, str]:
    """Time and size to be kept, each empty for without end; ``before`` are the arguments so far, None for a new one."""
    if before is None:
        return wanted["time"] or DEFAULT_TIME, wanted["size"] or NEW_SIZE
    found = flags(before)
    time, most = _value(found, _TIME_FLAGS), _value(found, [_SIZE_FLAG])
    if not time and not most:
        time = DEFAULT_TIME
    for name, old, read in (("time", time, milliseconds), ("size", most, size)):
        new = wanted[name]
        try:
            less = bool(new) and (not old or not read(old) or read(new) < read(old)) and read(new) > 0
        except ValueError:
            less = False
        if less and new != old and not shorter_accepted:
            raise Refusal(
                f"prometheus_retention_{name} is {new}, and Prometheus on {host} keeps {old or 'all'}, so older data "
                f"would be deleted: leave prometheus_retention_{name} out to keep it, or set "
                "prometheus_accept_shorter_retention=true."
            )
    return wanted["time"] or time, wanted["size"] or most


def arguments(own: Sequence[str], kept: Sequence[str], site: Sequence[str], config_file: str) -> list[str]:
    """The role's arguments, retention among them, and those of the site that the role does not set itself."""
    found = flags(site)
    elsewhere = _value(found, ["config.file"])
    if elsewhere not in ("", config_file):
        raise Refusal(
            f"Prometheus was started with --config.file={elsewhere}, and the role keeps the jobs of {config_file}: "
            "copy that file there, and run again."
        )
    ours = {*flags([*own, *kept]), *_TIME_FLAGS, _SIZE_FLAG, "config.file"}
    more = [word for name, words in found.items() if name not in ours for word in words]
    return [*own, *more, *kept]


def configuration(
    own: Mapping[str, Any], site: Mapping[str, Any], written: Sequence[str], ports: Sequence[int]
) -> tuple[dict[str, Any], list[str]]:
    """The configuration of both, and the names of the site's jobs that the role's own replace.

    ``written`` are files that the role writes, and ``ports`` those of services that it moves from the loopback address
    to the cluster network: a job of the site that reads only those is the role's own.
    """
    if not site:
        return dict(own), []
    names = {job["job_name"] for job in own["scrape_configs"]}
    jobs, replaced = [], []
    for job in _list(site, "scrape_configs"):
        if _reads_only_ours(job, written, ports):
            replaced.append(str(job.get("job_name")))
        else:
            jobs.append(_beside(job, names))
    alerting = dict(site.get("alerting") or {})
    managers = [each for each in _list(alerting, "alertmanagers") if not _reads_only_ours(each, written, ports)]
    alerting["alertmanagers"] = [*managers, *_list(own.get("alerting") or {}, "alertmanagers")]
    # The site's own interval stays that of its jobs; each job of the role names its own.
    pace = {key: value for key, value in own["global"].items() if key in ("scrape_interval",)}
    ours = [{**pace, **job} for job in own["scrape_configs"]]
    general = dict(site.get("global") or {})
    general.setdefault("evaluation_interval", own["global"]["evaluation_interval"])
    labels = {**(general.get("external_labels") or {}), **(own["global"].get("external_labels") or {})}
    rules = [*_list(site, "rule_files"), *own["rule_files"]]
    merged = {
        **site,
        "global": {**general, "external_labels": labels},
        "rule_files": list(dict.fromkeys(rules)),
        "alerting": alerting,
        "scrape_configs": [*ours, *jobs],
    }
    return merged, replaced


def _list(mapping: Mapping[str, Any], key: str) -> list[Any]:
    value = mapping.get(key) or []
    if not isinstance(value, list) or not all(isinstance(each, (Mapping, str)) for each in value):
        raise Refusal(f"The host's prometheus.yml has a {key} that is no list: correct it there, and run again.")
    return value


def _reads_only_ours(job: Mapping[str, Any], written: Sequence[str], ports: Sequence[int]) -> bool:
    """Whether everything that a job reads is a service of the role, or a file of targets that it writes."""
    static = [str(target) for each in job.get("static_configs") or [] for target in each.get("targets") or []]
    files = [str(path) for each in job.get("file_sd_configs") or [] for path in each.get("files") or []]
    discovered = [key for key in job if key.endswith("_sd_configs") and key != "file_sd_configs"]
    local = {f"{host}:{port}" for host in _HERE for port in ports}
    return bool(static or files) and not discovered and {*static} <= local and {*files} <= {*written}


def _beside(job: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """A job of the site; one that has the name of the role's gets another, and keeps the label of its series."""
    if job.get("job_name") not in names:
        return dict(job)
    name = job["job_name"]
    label = {"target_label": "job", "replacement": name}
    return {**job, "job_name": f"site-{name}", "relabel_configs": [label, *(job.get("relabel_configs") or [])]}


def limited(jobs: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The jobs with bounds on what a target may serve; those that a job has itself go first."""
    unknown = sorted(set(limits) - set(_LIMITS))
    if unknown:
        raise Refusal(f"prometheus_scrape_limits has {', '.join(unknown)}: give {', '.join(_LIMITS)} only.")
    return [{**limits, **job} for job in jobs]


def own_jobs(jobs: Sequence[Mapping[str, Any]], directory: str) -> list[dict[str, Any]]:
    """The scrape configurations of ``prometheus_jobs``."""
    made = []
    for job in jobs:
        scrape: dict[str, Any] = {"job_name": job["name"], "file_sd_configs": [{"files": [_targets(job, directory)]}]}
        keys = ("scrape_interval", "scrape_timeout", "metrics_path", *_LIMITS)
        scrape |= {key: job[key] for key in keys if key in job}
        if job.get("service"):
            scrape |= access(job["service"], directory)
        if job.get("tls_config"):
            scrape |= {"scheme": "https", "tls_config": job["tls_config"]}
        if job.get("metric_relabel_configs"):
            scrape["metric_relabel_configs"] = job["metric_relabel_configs"]
        made.append(scrape)
    return made


def _targets(job: Mapping[str, Any], directory: str) -> str:
    return f"{directory}/targets-{job['name']}.yml"


def access(service: str, directory: str) -> dict[str, Any]:
    """How a service of the collection is reached: over TLS, with its password."""
    password = {"username": service, "password_file": f"{directory}/{service}_password"}
    return {"scheme": "https", "tls_config": {"ca_file": f"{directory}/ca.crt"}, "basic_auth": password}


def own_configuration(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the role wants of Prometheus, without a site's part; ``given`` is as the filter documents it."""
    directory = given["directory"]
    alertmanagers = [
        {
            "file_sd_configs": [{"files": [_targets(job, directory)]}],
            **(access(job["service"], directory) if job.get("service") else {}),
        }
        for job in given["jobs"]
        if job["name"] == "alertmanager"
    ]
    jobs = [*own_jobs(given["jobs"], directory), *given["extra_scrape_configs"]]
    return {
        "global": dict(given["global"]),
        "rule_files": [f"{directory}/{name}" for name in given["rules"]],
        **({"alerting": {"alertmanagers": alertmanagers}} if alertmanagers else {}),
        "scrape_configs": limited(jobs, given["limits"]),
    }
