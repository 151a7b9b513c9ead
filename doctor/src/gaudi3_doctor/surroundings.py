"""Environment variables of the vendor's runtime: what a job's unit has, and what a login has."""

from __future__ import annotations

import os
import re
import shlex

from .host import Host, Options, Result, scratch, user_named

# Only these names go into a report: variables may hold passwords and tokens.
_PREFIXES = (
    "HABANA_", "HABANALABS_", "GC_", "PT_HPU_", "PT_HABANA_", "PT_HCCL_", "PT_ENABLE_", "HCCL_", "HCL_", "RDMA_",
    "RDMAV_", "HLS_", "FI_", "ENABLE_CONSOLE", "LOG_LEVEL_", "DATA_LOADER_AEON_",
)  # fmt: skip
_NAMES = frozenset({
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "LD_PRELOAD", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "MALLOC_CONF",
    "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD", "MLX5_SCATTER_TO_CQE",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "BOX_TYPE", "MTU_SIZE",
})  # fmt: skip
_SECRET = re.compile(r"token|secret|passw|credential|api_?key", re.IGNORECASE)
NEEDED = ("GC_KERNEL_PATH", "HABANA_SCAL_BIN_PATH", "HABANA_PLUGINS_LIB_PATH", "RDMA_CORE_ROOT", "RDMA_CORE_LIB")
"""What the vendor's profile files set and its runtime reads (Setup_and_Install, dockerfiles/base)."""
_PROFILES = "/etc/profile.d"
_UNITS = ("/etc/systemd/system", "/run/systemd/system")


def allowed(variables: dict[str, str]) -> dict[str, str]:
    """Those of the variables that may go into a report."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    }


def environment(host: Host, options: Options) -> Result:
    """Variables of the asking process, of the jobs' units with their files, and of a login; paths that do not exist."""
    texts = {path: host.read(path) for path in options.environment_files}
    files = {path: allowed(variables(text)) for path, text in texts.items() if text is not None}
    units = _units(host)
    login = login_variables(host, options)
    profiles = {
        f"{_PROFILES}/{name}": _exports(host.read(f"{_PROFILES}/{name}") or "")
        for name in host.names(_PROFILES)
        if re.search(r"habana|gaudi|synapse|rdma", name)
    }
    result = Result(
        {
            "here": allowed(dict(os.environ)),
            "files": files,
            "missing_files": [path for path in options.environment_files if path not in files],
            "units": units,
            "login": login,
            "profiles": profiles,
            "container": [path for path in ("/.dockerenv", "/run/.containerenv") if host.exists(path)],
        }
    )
    of_files = {name: value for found in files.values() for name, value in found.items()}
    missing, empty, dangling = [], [], []
    for name in NEEDED:
        jobs = of_files.get(name)
        if name in login and jobs is None and options.environment_files:
            missing.append(name)
        value = jobs if jobs is not None else login.get(name)
        if value == "":
            empty.append(name)
        elif value and not host.exists(value):
            dangling.append(f"{name}={value}")
    if missing:
        result.odd.append(f"a login has what the files of the jobs' unit lack: {', '.join(missing)}")
    if empty:
        result.odd.append(f"empty: {', '.join(empty)}")
    if dangling:
        result.odd.append(f"there is no such file or folder: {', '.join(dangling)}")
    if "GC_KERNEL_PATH" not in login and "GC_KERNEL_PATH" not in of_files:
        result.odd.append("GC_KERNEL_PATH is set nowhere: without it no graph is compiled")
    return result


def variables(text: str) -> dict[str, str]:
    """What a file of a unit's EnvironmentFile= sets."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"\w+", name):
            try:
                found[name] = " ".join(shlex.split(value, comments=False))
            except ValueError:
                found[name] = value
    return found


def login_variables(host: Host, options: Options) -> dict[str, str]:
    """What a login shell of the jobs' user has, of the names that may go into a report."""
    shell = host.program("/bin/bash", "/bin/sh")
    if shell is None:
        return {}
    user = user_named(options.user) if options.user else None
    with scratch(user) as folder:
        bare = {"HOME": folder, "PATH": host.search, "LC_ALL": "C"}
        outcome = host.run([shell, "-lc", "env -0"], 30, user, bare, folder)
    return allowed(dict(entry.partition("=")[::2] for entry in outcome.out.split("\0") if "=" in entry))


def _units(host: Host) -> dict[str, dict[str, object]]:
    """The jobs' units: their variables, the files that they read, and a few of their limits."""
    found: dict[str, dict[str, object]] = {}
    for folder in _UNITS:
        for name in host.names(folder):
            if re.fullmatch(r"gaudi.*\.service", name):
                text = host.read(f"{folder}/{name}") or ""
                pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
                set_here = variables("\n".join(value.strip('"') for key, value in pairs if key == "Environment"))
                found[name] = {
                    "variables": allowed(set_here),
                    "files": [value.lstrip("-") for key, value in pairs if key == "EnvironmentFile"],
                    "limits": {key: value for key, value in pairs if key.startswith("Limit") or key == "User"},
                }
    return found


def _exports(text: str) -> list[str]:
    """Lines of a profile file that set a variable which may go into a report, and the other lines' number."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    kept = [line for line in lines if allowed({re.sub(r"^export\s+", "", line).partition("=")[0]: ""})]
    left_out = len(lines) - len(kept)
    return [*kept, *([f"[{left_out} other lines]"] if left_out else [])]
