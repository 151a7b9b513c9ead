"""The trainer's image: what its recipe says, what is installed, and what its bill of materials has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from containers import build
from containers.trainer import install, sbom

FILE = (build.FILES / "Containerfile").read_text()
INSTRUCTIONS = [line.split(maxsplit=1) for line in FILE.splitlines() if re.match(r"[A-Z]+ ", line)]
DIGEST = "sha256:" + "0" * 64


def test_the_job_is_not_roots_and_a_number_tells_so() -> None:
    users = [words for name, words in INSTRUCTIONS if name == "USER"]
    assert users == ["10001:10001"]
    after = [name for name, _words in INSTRUCTIONS[[name for name, _words in INSTRUCTIONS].index("USER") :]]
    assert set(after) <= {"USER", "ENV", "WORKDIR", "ENTRYPOINT"}, "nothing is done as root behind it"


def test_nothing_of_the_build_stays_and_nothing_is_fetched_by_name() -> None:
    assert [words for name, words in INSTRUCTIONS if name in ("COPY", "ADD")] == []
    assert [words for name, words in INSTRUCTIONS if name == "FROM"] == ["${BASE}"]
    assert not re.search(r"\b(curl|wget|apt-get|sudo|chmod)\b", FILE)
    arguments = {words.partition("=")[0] for name, words in INSTRUCTIONS if name == "ARG"}
    assert arguments == {"BASE", "PYTHON", "VERSION", "INDEX"}, "an argument is readable in the image: no secrets"


@pytest.mark.parametrize(
    ("base", "tag", "said"),
    [
        (
            "registry.example/base:1",
            "registry.example/mine:1",
            "The base is 'registry.example/base:1', without a digest: ",
        ),
        (f"registry.example/base:1@{DIGEST}", "Mine", "The tag is 'Mine': write it as REGISTRY/NAME:TAG, "),
        (f"registry.example/base:1@{DIGEST}", "registry.example/mine:1", ""),
    ],
)
def test_a_base_without_a_digest_is_refused(
    base: str, tag: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if said:
        assert build.main(["--base", base, "--tag", tag, "--output", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.startswith(said) and not (tmp_path / "out").exists()
    assert build.problem(base, tag).startswith(said)


def test_what_the_base_has_is_not_installed_again() -> None:
    lines = build.REQUIREMENTS.read_text().splitlines()
    names = {install.plain(line.partition("==")[0]) for line in lines if not line.startswith("#")}
    assert install.lacking(lines, names) == []
    (one,) = install.lacking(lines, names - {"typing-extensions"})
    assert one.startswith(("typing_extensions==", "typing-extensions=="))
    assert " --hash=sha256:" in one


def test_the_bill_of_materials_is_the_same_for_the_same_parts() -> None:
    parts = [sbom.component("pypi", "torch", "2.9.0+hpu"), sbom.component("deb", "debian/libc6", "2.36-9")]
    one, other = (sbom.bill("base@sha256:0", "1", each) for each in (parts, parts[::-1]))
    assert json.dumps(one) == json.dumps(other)
    assert [(each["name"], each["purl"]) for each in one["components"]] == [
        ("libc6", "pkg:deb/debian/libc6@2.36-9"),
        ("torch", "pkg:pypi/torch@2.9.0%2Bhpu"),
    ]
    assert one["serialNumber"] != sbom.bill("base@sha256:1", "1", parts)["serialNumber"]
    assert {"gaudi3-scale"} <= {each["name"] for each in sbom.of_python()}
