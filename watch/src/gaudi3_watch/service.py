"""The page of a cluster as the unit of role watch runs it: `python3 -m gaudi3_watch.service SETTINGS`.

SETTINGS is a JSON file with where the page listens and which Prometheus it asks. Passwords and certificates are
systemd's credentials. It needs Python 3.9 and nothing besides, so that a monitoring host gets no package of an index.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_watch.listening import Place
from gaudi3_watch.serve import Terms, cluster_source, serve

KINDS: dict[str, type] = {"address": str, "port": int, "names": list, "prometheus": str, "simulated": bool}
CREDENTIALS = ("certificate", "key", "password", "prometheus_password", "prometheus_authority")


def settings(path: Path) -> dict[str, Any]:
    """What a file of settings says; ConfigError where it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is no JSON"
        raise ConfigError(f"{path} cannot be read ({said}): run the role watch, which writes it.") from None
    kinds = {name: type(value) for name, value in found.items()} if isinstance(found, dict) else {}
    if kinds != KINDS:
        raise ConfigError(f"{path} is not what this version reads: run the role watch, which writes it.")
    return dict(found)


def run(path: Path, credentials: Path) -> None:
    """Serve the page; ConfigError or TrainerError where that cannot be."""
    asked = settings(path)
    certificate, key, password, prometheus_password, authority = (credentials / name for name in CREDENTIALS)
    source = cluster_source(
        asked["prometheus"], "prometheus", prometheus_password, authority, simulated=asked["simulated"]
    )
    where = Place(asked["address"], asked["port"])
    serve(source, Terms(where, certificate, key, password, [str(name) for name in asked["names"]]))


def main() -> int:
    """Run until systemd ends it; what a person can act on is said in one sentence."""
    if len(sys.argv) != 2 or "CREDENTIALS_DIRECTORY" not in os.environ:
        print("gaudi3-watch: this is what the unit gaudi3-watch runs: call gaudi3-watch cluster.", file=sys.stderr)
        return 2
    try:
        run(Path(sys.argv[1]), Path(os.environ["CREDENTIALS_DIRECTORY"]))
    except TrainerError as error:
        print(f"gaudi3-watch: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
