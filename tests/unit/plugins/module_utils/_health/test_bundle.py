"""The archive for the vendor's support: what it holds, that no secret is in it, and how large it may get."""

from __future__ import annotations

import io
import random
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import bundle
from ansible_collections.gaudi3.scale.plugins.module_utils._health.scrub import scrub

SECRETS = {
    "an address with a login": ("git clone https://build:Hunter2Hunter2@git.example.org/x.git", "Hunter2Hunter2"),
    "a header": ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
    "a variable": ("WANDB_API_KEY=0123456789abcdef0123", "0123456789abcdef0123"),
    "a quoted variable": ("export HF_TOKEN='two words secret'", "two words secret"),
    "an option": ("train.py --db-password Winter2026 --steps 5", "Winter2026"),
    "JSON": ('{"client_secret": "s3cr3t-json", "port": 5}', "s3cr3t-json"),
    "a key of AWS": ("using AKIAIOSFODNN7EXAMPLE now", "AKIAIOSFODNN7EXAMPLE"),
    "a private key": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\nabcd\n-----END RSA PRIVATE KEY-----\n",
        "MIIEpAIBAAKCAQEA75",
    ),
    "a token of a hub": ("login with hf_abcdefghijklmnopqrst", "hf_abcdefghijklmnopqrst"),
    "a hash": ("root:$6$saltsalt$abcdefghijklmnop:19000:", "$6$saltsalt$abcdefghijklmnop"),
    "a web token": ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abcDEF123", "eyJzdWIiOiIx"),
    "the end of a key": ("QkJCQkJCQkJCQkJCQkJC\nQ0NDQ0ND\n-----END PRIVATE KEY-----\n", "QkJCQkJCQkJCQkJCQkJC"),
}
KEPT = (
    "Serial Number                   : AO00000001\n[   12.5] habanalabs 0000:19:00.0: Device heartbeat failed!\n"
    "Firmware [SPI] Version          : Preboot version hl-gaudi3-1.23.0-fw-62.2.1-sec-9\nBus Id : 0000:19:00.0\n"
)


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in scrub(text)
    assert scrub(scrub(text)) == scrub(text)


def test_what_support_needs_stays() -> None:
    assert scrub(KEPT) == KEPT


def test_a_long_line_costs_little() -> None:
    before = time.process_time()
    for text in ("a" * 200_000, "token" * 40_000, "x-" * 60_000, "://" * 60_000):
        scrub(text)
    assert time.process_time() - before < 5


def contents(archive: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {entry.name: tar.extractfile(entry).read().decode() for entry in tar}  # type: ignore[union-attr]


def test_the_archive_holds_what_support_asks_for_and_none_of_the_planted_secrets(tmp_path: Path) -> None:
    texts = list(SECRETS.values())
    logs = tmp_path / "var/log/habana_logs/qual"
    logs.mkdir(parents=True)
    (logs / "report.log").write_text("\n".join(text for text, _secret in texts[:6]))
    (tmp_path / "etc/gaudi3-scale").mkdir(parents=True)
    (tmp_path / "etc/gaudi3-scale/fabric.env").write_text(texts[2][0])
    (logs / "link.log").symlink_to("/etc/shadow")
    card = tmp_path / "sys/bus/pci/devices/0000:19:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x1da3\n")

    def run(command: list[str]) -> tuple[int, str, str]:
        if command[0] == "ipmitool":
            raise FileNotFoundError("No such file: ipmitool")
        return (
            (0, KEPT + "\n".join(text for text, _secret in texts[6:]), "") if command[0] == "dmesg" else (1, "", "no")
        )

    health: dict[str, Any] = {"health.json": '{"password": "in the report"}'}
    archive = bundle.archive(bundle.parts(run, "hl-smi", str(tmp_path)), health, 1_700_000_000)
    found = contents(archive)
    whole = "".join(found.values())
    assert [secret for _text, secret in texts if secret in whole] == []
    assert "in the report" not in whole
    assert "AO00000001" in found["gaudi-support/kernel-log.txt"]
    assert {
        f"gaudi-support/{name}" for name in ("hl-smi.txt", "hl-smi-log.txt", "counters-0000:19:00.0.txt", "lspci.txt")
    } <= set(found)
    assert "No such file: ipmitool" in found["gaudi-support/bmc-fru.txt"]
    assert "gaudi-support/logs/qual/report.log" in found
    assert "gaudi-support/logs/qual/link.log" not in found


def test_the_archive_stays_small_and_names_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundle.TOTAL_BYTES < 19 << 20, "a megabyte for what compression and headers may add"
    monkeypatch.setattr(bundle, "PART_BYTES", 1 << 16)
    monkeypatch.setattr(bundle, "TOTAL_BYTES", 9 << 16)
    noise = random.Random(5).randbytes(1 << 17).hex()
    archive = bundle.archive(((f"logs/{number}.log", noise) for number in range(12)), {}, 0)
    found = contents(archive)
    assert found["gaudi-support/left-out.txt"].split() == ["logs/9.log", "logs/10.log", "logs/11.log"]
    assert len(found["gaudi-support/logs/8.log"]) == 1 << 16
