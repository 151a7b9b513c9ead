"""The trainer's image: what its recipe says, what is installed, and what its bill of materials has."""

from __future__ import annotations

import json
import re
import subprocess
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
    assert arguments == {"BASE", "PYTHON", "VERSION"}, "an argument is readable in the image: no secrets"


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
    assert build.problem(base, tag, ["sh"], build.REQUIREMENTS, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", ""], "--engine is empty: give podman or docker.\n"),
        (["--engine", "no-such-engine"], "no-such-engine is not installed: install it, or name another one "),
        (["--engine", "sh", "--requirements", "none.txt"], "--requirements is none.txt, which is no file: give a "),
        (["--engine", "sh", "--output", "/dev/null"], "--output is /dev/null, which is no folder: give another one."),
        (["--engine", "sh", "--output", "/dev/null/a"], "--output is /dev/null/a, which cannot be made (Not a direct"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_built(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build.main(["--base", f"r.example/base:1@{DIGEST}", "--tag", "r.example/mine:1", *words]) == 2
    assert capsys.readouterr().err.startswith(said)


ENGINE = """#!/bin/sh
echo "$*" >> "$0.calls"
for word; do case "$word" in id=index,src=*) cat "${word#id=index,src=}" > "$0.secret";; esac; done
case "$1" in cp) echo {} > "$3";; *) echo 1;; esac
"""


def test_the_index_with_its_password_is_a_secret_of_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, index = tmp_path / "podman", "https://me:hidden@index.example/simple"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    monkeypatch.setattr(build, "wheel", lambda _folder: "0.1.0")
    asked = ["--base", f"r.example/base:1@{DIGEST}", "--tag", "r.example/mine:1", "--engine", str(engine)]
    assert build.main([*asked, "--output", str(tmp_path / "out"), "--index", index]) == 0
    assert Path(f"{engine}.secret").read_text() == index
    assert "hidden" not in Path(f"{engine}.calls").read_text() + (tmp_path / "out/image.json").read_text()
    Path(f"{engine}.secret").unlink()
    assert build.main([*asked, "--output", str(tmp_path / "out")]) == 0
    assert not Path(f"{engine}.secret").exists()


def test_docker_is_asked_for_the_digest_of_the_place_that_was_pushed_to(tmp_path: Path) -> None:
    engine = tmp_path / "docker"
    places = [f"{name}@sha256:{digit * 64}" for name, digit in (("r.example/mine", "2"), ("r.example/mine-2", "1"))]
    engine.write_text(f'#!/bin/sh\n[ "$1" = push ] || printf "%s\\n" {" ".join(places)}\n')
    engine.chmod(0o755)
    assert build.push("r.example/mine:1", tmp_path, [str(engine)]) == "sha256:" + "2" * 64


def test_pip_gets_the_index_and_no_command_line_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[str], env: dict[str, str], **_more: object) -> subprocess.CompletedProcess[str]:
        calls.append((command, env))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    (tmp_path / "requirements.txt").write_text("no-such-thing==1 --hash=sha256:0\n")
    (tmp_path / "index").write_text("https://me:hidden@index.example/simple\n")
    install.install(tmp_path, tmp_path / "index")
    install.install(tmp_path, tmp_path / "none")
    assert [each.get("PIP_INDEX_URL", "") for _command, each in calls] == [
        *("https://me:hidden@index.example/simple",) * 2, *("",) * 2,
    ]  # fmt: skip
    assert "hidden" not in str([command for command, _environment in calls])


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


def test_a_package_that_was_removed_is_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dpkg-query"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *db:Status-Status*) ;; *) exit 2;; esac\n'
        "echo 'installed libc6 2.36-9'\necho 'config-files nginx 1.22.1-9'\necho 'not-installed vim '\n"
    )
    program.chmod(0o755)
    (tmp_path / "os-release").write_text('ID="debian"\n')
    monkeypatch.setenv("PATH", str(tmp_path) + ":/bin")
    assert [each["purl"] for each in sbom.of_system(str(tmp_path / "os-release"))] == ["pkg:deb/debian/libc6@2.36-9"]
