"""synapseai_rpm_key: what it keeps, fetches and refuses; and that dnf gets its key from nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import armor, dearmor, fingerprints
from ansible_collections.gaudi3.scale.plugins.modules import synapseai_rpm_key

Run = Callable[..., dict[str, Any]]
ROLE = Path(__file__).resolve().parents[4] / "roles/synapseai"
VENDOR, OTHER = b"\x98\x06\x04abcde", b"\x98\x06\x04other"
FINGERPRINT, OTHERS = (fingerprints(key)[0] for key in (VENDOR, OTHER))


class Site:
    def __init__(self, folder: Path, run_module: Run) -> None:
        self.url = folder / "public"
        self.path = folder / "pki/RPM-GPG-KEY-habanalabs"
        self.warnings: list[str] = []
        self._run = run_module

    def serves(self, *keys: bytes) -> None:
        self.url.write_bytes(armor(b"".join(keys)))

    def run(self, check: bool = False, **options: Any) -> dict[str, Any]:
        return self._run(synapseai_rpm_key, check=check, url=self.url.as_uri(), path=str(self.path), **options)

    def keys(self) -> list[str]:
        return fingerprints(dearmor(self.path.read_bytes()))


@pytest.fixture
def site(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path, run_module)
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: site.warnings.append(warning))
    return site


@pytest.mark.parametrize("order", [(VENDOR, OTHER), (OTHER, VENDOR)])
def test_only_the_pinned_key_of_the_file_is_kept(site: Site, order: tuple[bytes, bytes]) -> None:
    site.serves(*order)
    result = site.run(fingerprint=FINGERPRINT)
    assert (result["changed"], result["fingerprints"], site.keys()) == (True, [FINGERPRINT], [FINGERPRINT])
    assert site.path.read_bytes() == armor(VENDOR)
    assert site.path.stat().st_mode & 0o777 == 0o644
    assert site.warnings == []
    site.url.unlink()  # What is right is not asked for again.
    assert site.run(fingerprint=FINGERPRINT)["changed"] is False


def test_check_mode_predicts_and_writes_nothing(site: Site) -> None:
    site.serves(VENDOR)
    result = site.run(check=True)
    assert (result["changed"], result["fingerprints"]) == (True, [FINGERPRINT])
    assert not site.path.parent.exists()


def test_another_key_than_the_pinned_one_is_refused(site: Site) -> None:
    site.serves(OTHER)
    assert site.run(fingerprint=FINGERPRINT)["msg"] == (
        f"The key at {site.url.as_uri()} has fingerprint {OTHERS}, not {FINGERPRINT} as synapseai_rpm_key_fingerprint "
        "says; find out which is right before you go on."
    )
    assert not site.path.exists()


def test_trust_on_first_use_is_warned_about_once_and_the_key_stays(site: Site) -> None:
    site.serves(VENDOR)
    site.run()
    assert site.warnings == [
        f"The key of {site.url.as_uri()} is trusted on first use: compare {FINGERPRINT} with the vendor's and set "
        "synapseai_rpm_key_fingerprint to it."
    ]
    site.serves(OTHER)
    assert site.run()["changed"] is False
    assert (site.keys(), len(site.warnings)) == ([FINGERPRINT], 1)


def test_a_file_with_more_keys_than_the_pinned_one_is_put_right(site: Site) -> None:
    site.serves(VENDOR)
    site.path.parent.mkdir()
    site.path.write_bytes(armor(OTHER + VENDOR))
    assert site.run(fingerprint=FINGERPRINT)["changed"] is True
    assert site.keys() == [FINGERPRINT]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"<html></html>", "is not a signing key: it holds no OpenPGP public key; check synapseai_rpm_key_url."),
     (None, "check")],
)  # fmt: skip
def test_what_is_no_key_is_refused(site: Site, content: bytes | None, words: str) -> None:
    if content is not None:
        site.url.write_bytes(content)
    result = site.run()
    assert result["failed"] is True
    assert words in result["msg"]


def test_dnf_gets_the_checked_key_and_none_from_the_network() -> None:
    tasks = yaml.safe_load((ROLE / "tasks/install-dnf.yml").read_text())
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    flat = [task for outer in tasks for task in (outer, *outer.get("block", []), *outer.get("always", []))]
    modules = [name for task in flat for name in task if "." in name]
    assert modules.index("gaudi3.scale.synapseai_rpm_key") < modules.index("ansible.builtin.yum_repository")
    (repository,) = (
        task["ansible.builtin.yum_repository"] for task in flat if "ansible.builtin.yum_repository" in task
    )
    (trust,) = (task["ansible.builtin.rpm_key"] for task in flat if "ansible.builtin.rpm_key" in task)
    (kept,) = (task["gaudi3.scale.synapseai_rpm_key"] for task in flat if "gaudi3.scale.synapseai_rpm_key" in task)
    assert repository["gpgkey"] == "file://{{ _synapseai_rpm_key }}"
    assert repository["gpgcheck"] is True
    assert trust["key"] == kept["path"] == "{{ _synapseai_rpm_key }}"
    assert variables["_synapseai_rpm_key"].startswith("/etc/pki/rpm-gpg/")
