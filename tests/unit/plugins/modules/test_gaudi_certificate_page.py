"""gaudi_certificate_page: files on the controller, signatures, check mode, a second run, a node without an answer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import signature
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.answers import answers
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_certificate_page

ANSWER = {"evidence": {"format": 1, "node": "storage-7", "taken_at": 1_790_000_000.0, "board": "HL-225", "cards": []}}
FILES = ["gaudi-1.certificate.html", "gaudi-1.certificate.json"]


@pytest.fixture(name="write")
def write_certificates(run_module: Any, tmp_path: Path) -> Any:
    def write(answer: Any = ANSWER, **more: Any) -> dict[str, Any]:
        given = {"answers": answers({"gaudi-1": answer}, {}), "folder": str(tmp_path), **more}
        found: dict[str, Any] = run_module(gaudi_certificate_page, **given)
        return found

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("gaudi"))


def test_it_is_written_once_under_the_inventory_s_name(write: Any, tmp_path: Path) -> None:
    planned = write(check=True)
    assert (planned["changed"], names(tmp_path)) == (True, [])
    first = write(diff=True)
    assert (first["changed"], names(tmp_path)) == (True, FILES)
    assert first["nodes"]["gaudi-1"]["grade"] == "none"
    assert "storage-7" not in "".join((tmp_path / name).read_text() for name in FILES)
    assert write()["changed"] is False
    later = {"evidence": {**ANSWER["evidence"], "taken_at": 1_790_009_999.0}}
    assert write(later)["changed"] is False
    assert write({"evidence": {**ANSWER["evidence"], "driver": "1.24.1"}})["changed"] is True


def test_what_a_colleague_has_written_into_a_shared_folder_stays(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    assert write()["changed"] is False


def test_a_signature_comes_stays_and_goes_with_the_key(write: Any, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(key)], check=True)
    assert write(key=str(key))["changed"] is True
    assert names(tmp_path) == [*FILES, "gaudi-1.certificate.json.sig"]
    text, signed = ((tmp_path / f"gaudi-1.certificate.json{end}").read_text() for end in ("", ".sig"))
    assert signature.problem(text, signed, Path(f"{key}.pub").read_text()) == ""
    assert "signed by the key SHA256:" in (tmp_path / FILES[0]).read_text()
    assert write(key=str(key))["changed"] is False, "a second signature of this kind of key has other bytes"
    assert write()["changed"] is True
    assert names(tmp_path) == FILES and "NOT SIGNED" in (tmp_path / FILES[0]).read_text()


def test_a_key_that_is_not_there_is_refused_before_anything_is_written(write: Any, tmp_path: Path) -> None:
    assert "none is no file: give an SSH key" in write(key=str(tmp_path / "none"))["msg"]
    assert names(tmp_path) == []


@pytest.mark.parametrize("answer", [{}, {"msg": "no ssh"}, {"evidence": 4}, {"evidence": {"format": 9}}])
def test_a_node_that_gave_no_evidence_has_none(write: Any, tmp_path: Path, answer: Any) -> None:
    found = write(answer)
    assert (found["nodes"], names(tmp_path)) == ({}, [])
    assert found["unread"]["gaudi-1"] == answer.get("msg", "it gave no answer")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (FILES[0], "is a folder, and a file of that name is to be there: look at what made it, and move it away."),
        (FILES[1], "cannot be used (Is a directory): remove it, or give another folder."),
    ],
    ids=["written", "read"],
)
def test_a_folder_in_the_place_of_a_file_is_one_sentence(write: Any, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).mkdir()
    assert write()["msg"] == f"{tmp_path / name} {said}"


def test_a_folder_that_is_not_there_is_refused(write: Any) -> None:
    assert write(folder="/nowhere/at/all")["msg"] == "There is no folder /nowhere/at/all: make it first."
