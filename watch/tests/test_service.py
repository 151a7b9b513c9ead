"""The page of a cluster as a monitoring host's unit runs it, on the oldest Python that is here."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from test_listening import certificate

from gaudi3_scale.errors import ConfigError
from gaudi3_watch import service

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [str(ROOT / "trainer/src"), str(ROOT / "watch/src")]
SETTINGS: dict[str, Any] = {
    "address": "127.0.0.1", "port": 0, "names": ["mon"], "prometheus": "https://127.0.0.1:9", "simulated": True
}  # fmt: skip
PASSWORD = "correct horse battery"


def python() -> str:
    """A Python 3.9 that pyenv has, or this one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return str(next(iter(sorted(pyenv.glob("versions/3.9.*/bin/python3.9"))), sys.executable))


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """The folder that systemd makes."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    crt, key = certificate(tmp_path, -1, 9)
    for name, content in {
        "certificate": crt.read_bytes(),
        "key": key.read_bytes(),
        "password": PASSWORD.encode(),
        "prometheus_password": b"of prometheus",
        "prometheus_authority": crt.read_bytes(),
    }.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o400)
    return folder


def start(tmp_path: Path, credentials: Path, **changes: Any) -> subprocess.Popen[str]:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({**SETTINGS, **changes}))
    environment = {"PYTHONPATH": ":".join(SOURCES), "CREDENTIALS_DIRECTORY": str(credentials)}
    # Without the packages of its environment, as on a monitoring host.
    command = [python(), "-S", "-s", "-m", "gaudi3_watch.service", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_it_serves_the_page_with_the_standard_library_alone(tmp_path: Path, credentials: Path) -> None:
    trusted = ssl.create_default_context(cafile=str(credentials / "certificate"))
    trusted.check_hostname = False
    with start(tmp_path, credentials) as served:
        assert served.stdout is not None
        address = served.stdout.readline().strip()
        try:
            assert address.startswith("https://127.0.0.1:"), served.communicate()
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{address}data.json", context=trusted, timeout=20)
            word = base64.b64encode(f"watch:{PASSWORD}".encode()).decode()
            for host, status in (("mon", 200), ("elsewhere", 421)):
                asked = urllib.request.Request(f"{address}data.json", headers={"Authorization": f"Basic {word}"})
                asked.add_header("Host", host)
                try:
                    with urllib.request.urlopen(asked, context=trusted, timeout=20) as answer:
                        found = json.load(answer)
                    assert status == 200 and "cannot be reached" in found["state"]["text"]
                    assert found["simulated"].startswith("This cluster is simulated")
                except urllib.error.HTTPError as error:
                    assert error.code == status
        finally:
            served.terminate()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prometheus": "mon:9090"}, "is no address"),
        ({"port": "9109"}, "is not what this version reads: run the role watch"),
        ({"address": "192.0.2.1"}, "cannot be listened on"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, credentials: Path, changes: dict[str, Any], said: str) -> None:
    with start(tmp_path, credentials, **changes) as served:
        _out, errors = served.communicate(timeout=30)
    assert served.returncode in (1, 2) and said in errors
    assert errors.startswith("gaudi3-watch: ") and errors.count("\n") == 1


def test_an_expired_certificate_is_one_sentence(tmp_path: Path, credentials: Path) -> None:
    for path, name in zip(certificate(tmp_path, -9, -1), ("certificate", "key"), strict=True):
        (credentials / name).unlink()
        path.rename(credentials / name)
    with start(tmp_path, credentials) as served:
        _out, errors = served.communicate(timeout=30)
    assert errors == f"gaudi3-watch: The certificate {credentials / 'certificate'} has expired: renew it.\n"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"address": "a"}', "\udcff"])
def test_settings_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match="run the role watch"):
        service.settings(path)


def test_by_hand_it_names_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["service"])
    assert service.main() == 2
    assert "call gaudi3-watch cluster" in capsys.readouterr().err
