"""What is installed: packages, kernel modules, firmware files, and the Python that has torch."""

from __future__ import annotations

import json
import os
import platform
import re
from typing import Any

from .host import Host, Options, Result, scratch, user_named
from .known_bad import KNOWN_BAD, complaint

_PACKAGES = (
    "habanalabs*", "grafana*", "prometheus*", "dkms", "podman", "docker-ce", "rdma-core", "libfabric*", "epel-release*",
    "gpg-pubkey*",
)  # fmt: skip
_SOURCES = ("/etc/apt/sources.list.d", "/etc/apt/preferences.d", "/etc/yum.repos.d")
_INSTALL_LOGS = ("/var/log/dpkg.log", "/var/log/apt/history.log", "/var/log/apt/term.log", "/var/log/dnf.rpm.log")
_OF_THE_VENDOR = re.compile(r"habana|gaudi|synapse", re.IGNORECASE)
_INSTALLED = re.compile(r"habana|gaudi|synapse|grafana|epel", re.IGNORECASE)
_CONFIGURED = ("/etc/modules-load.d", "/etc/modprobe.d", "/etc/ld.so.conf.d")
_ATTRIBUTES = ("version", "srcversion", "initstate", "refcnt", "taint")
DISTRIBUTIONS = (
    "torch", "habana-torch-plugin", "habana-torch-dataloader", "habana-pyhlml", "habana-media-loader", "lightning",
    "pytorch-lightning", "transformers", "optimum-habana", "deepspeed", "gaudi3-scale", "gaudi3-hpu-simulator", "numpy",
    "safetensors", "pydantic",
)  # fmt: skip
IMPORTS = ("torch", "habana_frameworks.torch", "lightning", "transformers", "gaudi3_scale.job.fit")

# Run by the interpreter that is to have torch. Versions first: they cost nothing and an import may end the process.
_ASK_PYTHON = """
import importlib, importlib.metadata, json, sys, time
names, modules, bad = json.loads(sys.argv[1])
def say(**found):
    sys.stdout.write("DOCTOR " + json.dumps(found) + "\\n"); sys.stdout.flush()
versions = {}
for name in names:
    try: versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: pass
say(version=sys.version, executable=sys.executable, versions=versions)
# A release that does harm does it when it is imported.
if any((versions.get(name) or "").partition("+")[0] in found for name, found in bad): modules = []
for name in modules:
    started = time.monotonic()
    try: importlib.import_module(name)
    except BaseException as error: say(module=name, error=type(error).__name__ + ": " + str(error)[:400])
    else: say(module=name, seconds=round(time.monotonic() - started, 2))
"""


def packages(host: Host, options: Options) -> Result:
    """The vendor's packages and a few beside them, where they come from, and how their installation went."""
    found = _dpkg(host) if host.program("dpkg-query") else _rpm(host) if host.program("rpm") else []
    logs = {path: _lines(host.read(path, 4 * 1024 * 1024) or "") for path in _INSTALL_LOGS if host.exists(path)}
    result = Result({"packages": found, "sources": _texts(host, _SOURCES, _INSTALLED), "installation_log": logs})
    if host.program("dkms"):
        result.data["dkms_status"] = host.run(["dkms", "status"], 30).as_dict()
    made = [path for path in host.files_below("/var/lib/dkms") if path.endswith("/make.log") and "habana" in path]
    result.data["dkms_log"] = {path: (host.read(path, 4 * 1024 * 1024) or "")[-4000:] for path in made[:2]}
    vendor = [each for each in found if each["name"].startswith("habanalabs")]
    releases = sorted({re.sub(r"(?:~\w+|\.el\d+)$", "", each["version"]) for each in vendor})
    if not vendor:
        result.odd.append("no package of the vendor (habanalabs*) is installed")
    if len(releases) > 1:
        result.odd.append(f"the vendor's packages are of {len(releases)} versions: {', '.join(releases)}")
    unfinished = [each["name"] for each in vendor if each["state"] != "installed"]
    if unfinished:
        result.odd.append(f"not wholly installed: {', '.join(unfinished)}")
    return result


def modules(host: Host, options: Options) -> Result:
    """The driver's modules as files, as modinfo describes them, and as they are loaded."""
    kernel = platform.release()
    loaded = {}
    for name in host.names("/sys/module"):
        if name.startswith(("habanalabs", "hbl", "ib_uverbs")):
            values = {each: host.value(f"/sys/module/{name}/{each}") for each in _ATTRIBUTES}
            folder = f"/sys/module/{name}/parameters"
            set_to = {each: host.value(f"{folder}/{each}") for each in host.names(folder)}
            loaded[name] = {**{key: value for key, value in values.items() if value is not None}, "parameters": set_to}
    files = []
    for path in host.files_below(f"/lib/modules/{kernel}", 200_000):
        if re.match(r"(habanalabs|hbl)\w*\.ko", os.path.basename(path)):
            status = host.status(path)
            described = host.run(["modinfo", path], 10)
            files.append({"path": path, "bytes": status.st_size if status else None, "modinfo": described.out[:2000]})
    firmware = [
        {"path": path, "bytes": status.st_size if status else None}
        for path in host.files_below("/lib/firmware/habanalabs")
        for status in [host.status(path)]
    ]
    result = Result(
        {
            "kernel": kernel,
            "loaded": loaded,
            "files": files,
            "firmware": firmware,
            "texts": _texts(host, _CONFIGURED, _OF_THE_VENDOR),
        }
    )
    if "habanalabs" not in loaded:
        result.odd.append("the driver (module habanalabs) is not loaded")
    empty = [each["path"] for each in files if not each["bytes"]]
    if empty:
        result.odd.append(f"empty module files: {', '.join(map(str, empty))}")
    if not files:
        result.odd.append(f"no module file of the vendor for the running kernel {kernel}")
    return result


def python(host: Host, options: Options) -> Result:
    """Versions of what the trainer needs in the Python of the jobs, and how long each import takes."""
    interpreter = host.program(*options.pythons) if options.pythons else None
    if interpreter is None:
        return Result(not_tried=f"there is no Python at {' or '.join(options.pythons) or 'the given place'}")
    user = user_named(options.user) if options.user else None
    asked = json.dumps([DISTRIBUTIONS, IMPORTS, [[bad.package, bad.versions] for bad in KNOWN_BAD]])
    with scratch(user) as folder:
        environment = host.environment(user, HOME=folder, HABANA_LOGS=folder, PYTHONDONTWRITEBYTECODE="1")
        outcome = host.run([interpreter, "-c", _ASK_PYTHON, asked], 300, user, environment, folder)
    said = [line[7:] for line in outcome.out.splitlines() if line.startswith("DOCTOR ")]
    answers: list[dict[str, Any]] = [json.loads(line) for line in said]
    if not answers:
        return Result({"interpreter": interpreter}, [f"{interpreter} did not answer ({outcome.failure})"])
    imports = answers[1:]
    result = Result({"interpreter": interpreter, **answers[0], "imports": imports, "user": options.user or None})
    harm = complaint(answers[0]["versions"])
    if harm:
        result.odd.append(f"in {interpreter}, {harm.rstrip('.')}")
        return result
    broken = [each for each in imports if "error" in each and "No module named" not in each["error"]]
    for each in broken:
        result.odd.append(f"import {each['module']} fails: {each['error'][:160]}")
    if len(imports) < len(IMPORTS):
        result.odd.append(f"the import of {IMPORTS[len(imports)]} ended the process ({outcome.failure})")
    missing = [name for name in ("torch", "habana-torch-plugin") if name not in answers[0]["versions"]]
    if missing:
        result.odd.append(f"{interpreter} has no {' and no '.join(missing)}")
    return result


def _dpkg(host: Host) -> list[dict[str, str]]:
    form = "${Package}\\t${Version}\\t${db:Status-Want}\\t${db:Status-Status}\\t${binary:Summary}\\n"
    outcome = host.run(["dpkg-query", "-W", "-f", form, *_PACKAGES], 30)
    rows = [(line.split("\t") + [""])[:5] for line in outcome.out.splitlines() if line.count("\t") >= 3]
    return [
        {"name": name, "version": version, "wanted": wanted, "state": state, "summary": summary}
        for name, version, wanted, state, summary in rows
        if version
    ]


def _rpm(host: Host) -> list[dict[str, str]]:
    form = "%{NAME}\\t%{VERSION}-%{RELEASE}\\t%{SUMMARY}\\n"
    outcome = host.run(["rpm", "-qa", "--qf", form, *_PACKAGES], 60)
    rows = [line.split("\t") for line in sorted(outcome.out.splitlines()) if line.count("\t") == 2]
    return [
        {"name": name, "version": version, "wanted": "", "state": "installed", "summary": summary}
        for name, version, summary in rows
    ]


def _lines(text: str, most: int = 150) -> list[str]:
    return [line for line in text.splitlines() if _INSTALLED.search(line)][-most:]


def _texts(host: Host, folders: tuple[str, ...], about: re.Pattern[str]) -> dict[str, str]:
    """Files of these folders that are about something, by name or by content."""
    found = {}
    for folder in folders:
        for name in host.names(folder):
            text = host.read(f"{folder}/{name}", 8000)
            if text and (about.search(name) or about.search(text)):
                found[f"{folder}/{name}"] = text
    return found
