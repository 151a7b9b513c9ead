"""gaudi_credentials as a task calls it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_credentials


def test_it_returns_what_was_asked_for_and_a_second_run_changes_nothing(tmp_path: Path, run_module: Any) -> None:
    options = {"directory": str(tmp_path / "s"), "passwords": ["a", "b"], "certificate": "c", "hosts": ["10.0.0.1"]}
    first = run_module(gaudi_credentials, **options)
    assert first["changed"] is True
    assert sorted(first["passwords"]) == ["a", "b"]
    assert first["passwords"]["a"]["password"] == (tmp_path / "s" / "a_password").read_text().strip()
    assert first["certificate"] == (tmp_path / "s" / "c.crt").read_text()
    assert first["private_key"] == (tmp_path / "s" / "c.key").read_text()
    assert first["authority"] == (tmp_path / "s" / "ca.crt").read_text()
    second = run_module(gaudi_credentials, **options)
    assert (second["changed"], second["files"]) == (False, [])
    same = ("passwords", "certificate", "private_key", "authority", "expires")
    assert [second[key] for key in same] == [first[key] for key in same]


def test_check_mode_predicts_and_writes_nothing(tmp_path: Path, run_module: Any) -> None:
    result = run_module(gaudi_credentials, directory=str(tmp_path / "s"), passwords=["a"], check=True)
    assert result["changed"] is True
    assert result["files"] == [f"{tmp_path}/s", f"{tmp_path}/s/a_password", f"{tmp_path}/s/a_password.bcrypt"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"passwords": ["../x"]},
            "'../x' is no name for a secret; use letters, digits, dots, hyphens and underscores.",
        ),
        (
            {"certificate": "c", "hosts": []},
            "The certificate c is for no host; give its names as hosts.",
        ),
        (
            {"renew_before_days": 400},
            "renew_before_days 400, certificate_days 397 and authority_days 3650 must grow in this order; "
            "correct them.",
        ),
    ],
)
def test_wrong_options_are_told_before_anything_is_made(
    tmp_path: Path, run_module: Any, options: dict[str, Any], message: str
) -> None:
    result = run_module(gaudi_credentials, directory=str(tmp_path / "s"), **options)
    assert result["failed"] is True
    assert result["msg"] == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("library", "options"),
    [("bcrypt", {"passwords": ["a"]}), ("cryptography", {"certificate": "c", "hosts": ["10.0.0.1"]})],
)
def test_a_missing_library_is_named_before_anything_is_made(
    tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch, library: str, options: dict[str, Any]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # import raises ImportError
    result = run_module(gaudi_credentials, directory=str(tmp_path / "s"), **options)
    assert result["failed"] is True
    assert result["msg"].startswith(f"Failed to import the required Python library ({library})")
    assert "on the controller" in result["msg"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("10.0.0.5", "The certificate trainer-evil is to be for 10.0.0.5, which the inventory gives to mon"),
        ("FD00:0::5", "The certificate trainer-evil is to be for fd00::5, which the inventory gives to mon"),
        ("MON", "The certificate trainer-evil is to be for MON, which the inventory gives to mon"),
        ("*.example", "The certificate trainer-evil is to be for '*.example', which is no address of one host"),
        ("10.0.0.0/8", "The certificate trainer-evil is to be for '10.0.0.0/8', which is no address of one host"),
    ],
)
def test_no_certificate_is_for_another_hosts_address(host: str, said: str, tmp_path: Path, run_module: Any) -> None:
    options = {"directory": str(tmp_path / "s"), "certificate": "trainer-evil", "hosts": ["evil", host]}
    others = {"mon": ["mon", "10.0.0.5", "fd00::5"]}
    assert run_module(gaudi_credentials, **options, others=others)["msg"].startswith(said)
    assert not (tmp_path / "s").exists()


def test_every_place_that_asks_for_a_certificate_names_the_other_hosts() -> None:
    """One question is asked for all of them, and the others are in it."""
    root = Path(__file__).resolve().parents[4]
    found = [path for path in root.glob("roles/*/tasks/*.yml") if "gaudi_credentials:" in path.read_text()]
    found += [path for path in root.glob("playbooks/**/*.yml") if "gaudi_credentials:" in path.read_text()]
    # These ask for passwords alone.
    found = [path for path in found if path.name != "silence.yml" and "roles/slurm/" not in str(path)]
    assert [str(path.relative_to(root)) for path in found] == ["roles/monitoring_service/tasks/credentials.yml"]
    assert all("_monitoring_service_wanted" in path.read_text() for path in found)
    assert "'others':" in (root / "roles/monitoring_service/vars/main.yml").read_text()
