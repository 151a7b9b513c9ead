"""The commands of certificate: what is shown, what got worse, and what is not as it was signed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Deploy
from gaudi3_deploy.collection._certificate import document, page, signature
from gaudi3_deploy.collection._certificate.evidence import COUNTERS, read


def facts(rows: int = 0, taken_at: float = 1_790_000_000.0, serial: str = "AM") -> dict[str, Any]:
    """A machine of eight cards, the first of which has replaced rows."""
    replaced = [{"address": f"0x{place}", "cause": "Double Bit ECC"} for place in range(rows)]
    return {
        "format": 1, "node": "gaudi-1", "taken_at": taken_at, "board": "HL-225", "generation": "gaudi2",
        "cards": [
            {
                "index": index, "serial": f"{serial}{index}", "status": "Operational", "rows_pending": False,
                "counters": dict.fromkeys(COUNTERS, 0), "rows": [] if index else replaced,
                "pcie": {"gen": 4, "gen_max": 4, "width": 16, "width_max": 16},
                "ports": [{"port": 7, "type": "internal", "link": "up", "restores": 0}],
            }
            for index in range(8)
        ],
    }  # fmt: skip


@pytest.fixture(name="signed")
def a_signed_certificate(deploy: Deploy) -> Path:
    """The certificate of a machine with its page and signature, and the key beside it."""
    key = deploy.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return put(deploy.folder / "gaudi-1.certificate.json", facts(), key)


def put(path: Path, content: dict[str, Any], key: Path | None = None) -> Path:
    text = document.write(read(content))
    path.write_text(text)
    by = ""
    if key is not None:
        made = signature.sign(text, str(key))
        by, _why = signature.signer(text, made)
        path.with_name(path.name + ".sig").write_text(made)
    path.with_suffix(".html").write_text(page.html(document.load(text, path.name), by))
    return path


def test_a_certificate_is_shown_with_its_grade_and_its_key(deploy: Deploy, signed: Path) -> None:
    said = deploy.run("certificate", "show", signed.name)
    assert said.startswith("gaudi-1: no grade\n") and "hl_qual: no answer: it was not asked for" in said
    assert "The file is signed by the key SHA256:" in said
    answer = json.loads(deploy.run("certificate", "show", signed.name, "--json"))
    assert (answer["schema"], answer["judgement"]["grade"], answer["signed_by"][:7]) == (1, "none", "SHA256:")
    signed.with_name(signed.name + ".sig").unlink()
    assert "NOT SIGNED" in deploy.run("certificate", "show", signed.name)


def test_one_that_is_as_it_was_signed_is_verified(deploy: Deploy, signed: Path) -> None:
    said = deploy.run("certificate", "verify", signed.name, "--key", "key.pub")
    assert said.endswith("unchanged. The page beside it is its own.\n")
    said = deploy.run("certificate", "verify", signed.name, code=1)
    assert "and nothing says whose that is: give the owner's with --key." in said


@pytest.mark.parametrize("place", [0.5])
def test_a_changed_byte_is_refused(deploy: Deploy, signed: Path, place: float) -> None:
    text = signed.read_text()
    # A digit, so that the file is still a certificate.
    at = next(index for index in range(int(len(text) * place), len(text)) if text[index] == "0")
    signed.write_text(text[:at] + "1" + text[at + 1 :])
    said = deploy.run("certificate", "verify", signed.name, "--key", "key.pub", code=1)
    assert "gaudi-1.certificate.json is not what gaudi-1.certificate.json.sig signs (" in said


def test_another_key_another_page_and_no_signature_are_refused(deploy: Deploy, signed: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(deploy.folder / "other")], check=True)
    said = deploy.run("certificate", "verify", signed.name, "--key", "other.pub", code=1)
    assert "is not verified: it is signed by the key SHA256:" in said
    shown = signed.with_suffix(".html")
    shown.write_text(shown.read_text().replace("no grade", "A"))
    said = deploy.run("certificate", "verify", signed.name, "--key", "key.pub", code=1)
    assert "gaudi-1.certificate.html is not the page that this release makes of it" in said
    signed.with_name(signed.name + ".sig").unlink()
    assert "is not signed" in deploy.run("certificate", "verify", signed.name, "--key", "key.pub", code=1)


def test_two_of_one_machine_are_compared(deploy: Deploy, signed: Path) -> None:
    put(deploy.folder / "later.json", facts(rows=3, taken_at=1_792_000_000.0))
    for pair in (("later.json", signed.name), (signed.name, "later.json")):
        assert deploy.run("certificate", "compare", *pair, code=1) == (
            "grade: none both times\nworse\n  accel0 (AM0): replaced rows (cause Double Bit ECC) were 0 and are 3\n"
        )
    assert deploy.run("certificate", "compare", signed.name, signed.name).endswith("nothing changed\n")
    answer = json.loads(deploy.run("certificate", "compare", signed.name, "later.json", "--json", code=1))
    assert len(answer["worse"]) == 1
    put(deploy.folder / "reset.json", facts(taken_at=1_792_000_000.0))
    put(deploy.folder / "worn.json", facts(rows=3))
    assert deploy.run("certificate", "compare", "reset.json", "worn.json", code=1).splitlines()[1:] == [
        "odd",
        "  accel0 (AM0): replaced rows (cause Double Bit ECC) were 3 and are 0, and a row stays replaced",
        "by the machine's clock from 2026-09-21 14:13 UTC to 2026-10-14 17:46 UTC: where that was wrong, it is the "
        "other way round",
    ]
    put(deploy.folder / "other.json", facts(serial="AX"))
    assert "These are two machines" in deploy.run("certificate", "compare", signed.name, "other.json", code=2)


@pytest.mark.parametrize("text", [None, "", "{}", '{"certificate": {}}'])
def test_what_is_no_certificate_is_refused(deploy: Deploy, text: str | None) -> None:
    if text is not None:
        (deploy.folder / "x.json").write_text(text)
    for command in ("show", "verify"):
        said = deploy.run("certificate", command, "x.json", code=2)
        assert "x.json" in said or "no evidence" in said


@pytest.mark.parametrize("place", ["certificate", "signature", "key"])
def test_a_pipe_and_a_device_are_refused_and_not_waited_for(deploy: Deploy, signed: Path, place: str) -> None:
    key = deploy.folder / "key.pub"
    names = {"certificate": signed, "signature": signed.with_name(signed.name + ".sig"), "key": key}
    path = names[place]
    path.unlink()
    os.mkfifo(path)
    command = ["certificate", "verify", signed.name, "--key", key.name]
    shown = key.name if place == "key" else path.name
    refused = f"{shown} cannot be read (not a regular file): give a file NODE.certificate.json."
    assert refused in deploy.run(*command, code=2)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert refused in deploy.run(*command, code=2)
