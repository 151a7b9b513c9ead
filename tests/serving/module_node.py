"""A node in a folder on which the module gaudi_serving runs, with a stand-in for systemctl, and real HAProxy."""

from __future__ import annotations

import datetime
import grp
import hashlib
import json
import os
import pwd
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Authority, issue

from .clients import Client
from .node import FILES, KEY, ROOT, STAND_IN, free_ports, haproxy
from .processes import family

SYSTEMCTL = Path(__file__).with_name("stand_in_systemctl.py")


def make_model(place: Path, length: int = 4096) -> Path:
    """A folder as an export leaves it, with its modes."""
    place.mkdir(exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": length}
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer.json").write_text("{}")
    header = json.dumps({"a": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
    weights = place / "model.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    weights.chmod(0o600)
    return place


class ModuleNode:
    """Its folders, and runs of the module."""

    def __init__(self, folder: Path, program: str = "", model: Path | None = None, **options: Any) -> None:
        self.folder = folder
        for name in ("units", "settings", "programs", "run", "bin"):
            (folder / name).mkdir()
        self.model = model or make_model(folder / "model")
        self.root = folder / "root"
        #: Only a stand-in knows the time of a token; vLLM warns of names that it does not know.
        self.environment = {} if program else {"STAND_IN_TOKEN": "0.02"}
        port, metrics, *ports = free_ports(4)
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        assert user == group, "the tests of the module need a user with a group of its own"
        path, environment = haproxy()
        libraries = environment.get("LD_LIBRARY_PATH", "")
        self.options: dict[str, Any] = {
            "model": str(self.model),
            "engine": "vllm-cpu",
            "served_name": "job",
            "program": program or self._script("vllm", " ".join(STAND_IN)),
            "ports": ports,
            "address": "127.0.0.1",
            "port": port,
            "metrics_port": metrics,
            "key_sha256": hashlib.sha256(KEY.encode()).hexdigest(),
            "programs": {each.name: each.read_text() for each in FILES.glob("*.py")},
            "python": sys.executable,
            "root": str(self.root),
            "folder": str(folder / "settings"),
            "unit_folder": str(folder / "units"),
            "program_folder": str(folder / "programs"),
            "runtime_folder": str(folder / "run"),
            "user": user,
            "balancer_user": group,
            "drain_seconds": 60,
            "systemctl_executable": self._script("systemctl", f"{sys.executable} -IS {SYSTEMCTL}"),
            "haproxy_executable": self._script("haproxy", path, f"export LD_LIBRARY_PATH={libraries}"),
            # The kernel's own has all processes here in the control group of the tests.
            "proc_root": str(folder / "proc"),
            **options,
        }
        self._certificates()

    def _script(self, name: str, command: str, before: str = "") -> str:
        place = self.folder / "bin" / name
        place.write_text(f'#!/bin/sh\nexport STAND_IN_UNITS={self.folder / "units"}\n{before}\nexec {command} "$@"\n')
        place.chmod(0o755)
        return str(place)

    def _certificates(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        authority = Authority(*issue(None, [], 30, now))
        certificate, key = issue(authority, ["localhost", "127.0.0.1"], 2, now)
        for name, content in (("ca.crt", authority.certificate), ("server.crt", certificate), ("server.key", key)):
            (self.folder / "settings" / name).write_bytes(content)

    def run(self, check: bool = False, **options: Any) -> dict[str, Any]:
        """What the module answers."""
        arguments = {**self.options, **options, "_ansible_check_mode": check, "_ansible_remote_tmp": str(self.folder)}
        arguments["environment"] = {**self.environment, **(options.get("environment") or {})}
        program = (
            "import json, sys; from ansible.module_utils.testing import patch_module_args;"
            "from ansible_collections.gaudi3.scale.plugins.modules import gaudi_serving;"
            "exec('with patch_module_args(json.load(sys.stdin)):\\n gaudi_serving.main()')"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "collections")},
            check=False,
        )
        assert done.stdout, done.stderr
        return dict(json.loads(done.stdout))

    @property
    def client(self) -> Client:
        """Who talks to the balancer."""
        context = ssl.create_default_context(cafile=str(self.folder / "settings/ca.crt"))
        return Client("127.0.0.1", self.options["port"], key=KEY, context=context)

    def hold(self, port: int) -> None:
        """Have the kernel's table say that somebody listens on a port."""
        (self.folder / "proc/net").mkdir(parents=True)
        row = f"   0: 0100007F:{port:04X} 00000000:0000 0A 0:0 0:0 0 0 0 4711"
        (self.folder / "proc/net/tcp").write_text(f"  sl  local_address\n{row}\n")

    def behind(self, link: str) -> str:
        """The release behind a link."""
        return (self.root / link).resolve().name

    def calls(self) -> list[str]:
        """What systemctl was called with."""
        path = self.folder / "units/calls"
        return path.read_text().splitlines() if path.exists() else []

    def files(self) -> dict[str, bytes]:
        """All that the module writes."""
        found = {}
        for top in ("units", "settings", "programs", "root"):
            for path in sorted((self.folder / top).rglob("*")):
                if path.is_file() and path.suffix not in (".log", ".state", ".notify") and path.name != "calls":
                    found[str(path)] = path.read_bytes()
        return found

    def close(self) -> None:
        """End what still runs, as SIGKILL to each unit's own session and its engine's would."""
        for path in (self.folder / "units").glob("*.state"):
            number = int(json.loads(path.read_text())["pid"])
            if not number:
                continue
            for each in [number, *family(number)]:
                try:
                    os.killpg(each, signal.SIGKILL)
                except ProcessLookupError:
                    continue
