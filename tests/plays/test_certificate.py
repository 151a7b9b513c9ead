"""Certificates through the real playbook: a grade, a signature, a page, a second run, and what was cut off."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import document, page, signature
from gaudi3_simulator.controllers import USER, certify, served
from gaudi3_simulator.node import bmc, cli
from gaudi3_simulator.node.node import Node
from tests.stand_in_bmc import PASSWORD

from .cluster import Cluster
from .host import Host, _environment, program

STEP = '{"passed": true, "message": ""}'


def shown_by_controller(host: Host) -> dict[str, Any]:
    """What the stand-in of a host's controller serves."""
    with _environment({"GAUDI3_SIMULATOR_ROOT": str(host.root)}):
        return bmc.resources(Node.load())


@pytest.fixture(scope="module", name="site")
def a_site(new_cluster: Callable[[], Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two machines: the first has all sources and a history, the second has no controller and no tools."""
    cluster = new_cluster()
    cluster.gaudi(2)
    folder = tmp_path_factory.mktemp("bmc")
    folder.chmod(0o755)
    first = cluster["gaudi-1"]
    program(first, "dmesg", "dmesg", "main")
    program(first, "modinfo", "kmod_tools", "modinfo")
    qual = first.folder / "bin/hl_qual"
    qual.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(first.folder / "modes"))}\necho Passed\n')
    qual.chmod(0o755)
    with _environment({"GAUDI3_SIMULATOR_ROOT": str(first.root)}):
        assert cli.main(["fault", "ecc-corrected", "--card", "3", "--count", "7"]) == 0
    certificate, key = certify(folder)
    controller = shown_by_controller(first)
    with served(lambda: controller, PASSWORD, certificate, key) as address:
        cluster.given = {  # type: ignore[attr-defined]
            "gaudi_bmc_user": USER, "gaudi_bmc_password": PASSWORD, "gaudi_bmc_ca_file": str(certificate),
        }  # fmt: skip
        cluster.address = address  # type: ignore[attr-defined]
        yield cluster


def python(host: Host, answer: str, last: int = 8) -> Path:
    """A Python whose torch computes as it is told, on the first cards; on others it dies."""
    path = host.folder / "bin/torch-python"
    path.write_text(
        f'#!/bin/sh\necho "$HLS_MODULE_ID" >> {shlex.quote(str(host.folder / "steps"))}\n'
        f'[ "$(wc -l < {shlex.quote(str(host.folder / "steps"))})" -le {last} ] || exit 9\n'
        f"echo {shlex.quote(answer)}\n"
    )
    path.chmod(0o755)
    return path


def play(site: Cluster, *arguments: str, **variables: Any) -> Any:
    given = {"trainer_root": "/nowhere", "trainer_python": "/nowhere/python", **variables}
    return site.play("certificate.yml", *arguments, certificate_directory=str(site.folder / "certificates"), **given)


def test_one_machine_is_graded_and_the_other_is_told_what_is_missing(site: Cluster) -> None:
    key = site.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host = site["gaudi-1"]
    long = {
        **site.given, "certificate_key": str(key), "certificate_qualify": True, "certificate_train": True,  # type: ignore[attr-defined]
        "certificate_hl_qual": str(host.folder / "bin/hl_qual"),
        "gaudi_bmc_address": site.address,  # type: ignore[attr-defined]
    }  # fmt: skip
    folder = site.folder / "certificates"
    before = host.files()
    predicted = play(site, "--check", "--diff", "--limit", "gaudi-1", **long)
    assert predicted.returncode == 0, predicted.messages()
    assert host.files() == before and not folder.exists()

    # Cut off after three cards, and taken up again by the next run.
    long["trainer_python"] = str(python(host, STEP, last=3))
    cut = play(site, "--limit", "gaudi-1", **long)
    assert cut.returncode == 0, cut.messages()
    assert (
        "no grade, because training step did not answer: accel3: exit code 9"
        in cut.result("gaudi-1", "Sum up")["msg"][0]
    )
    assert len((host.folder / "modes").read_text().splitlines()) == 7
    (host.folder / "steps").unlink()
    python(host, STEP)
    run = play(site, "--limit", "gaudi-1", **long)
    assert run.result("gaudi-1", "Gather what the node says")["ran"] == [
        f"training step of accel{index}" for index in range(3, 8)
    ]
    assert len((host.folder / "steps").read_text().split()) == 5
    assert len((host.folder / "modes").read_text().splitlines()) == 7
    assert run.result("gaudi-1", "Sum up")["msg"][0] == "gaudi-1: A: every source answered and no rule is broken"
    found = json.loads((folder / "gaudi-1.certificate.json").read_text())
    assert (found["judgement"]["grade"], found["judgement"]["silent"]) == ("A", {})
    assert "7 corrected memory errors since the driver was loaded" in {
        each["said"] for each in found["judgement"]["noted"]
    }
    names = [path.name for path in sorted(folder.iterdir())]
    assert names == [f"gaudi-1.certificate.{end}" for end in ("html", "json", "json.sig")]
    assert PASSWORD not in run.everything

    text, signed = ((folder / f"gaudi-1.certificate.json{end}").read_text() for end in ("", ".sig"))
    assert signature.problem(text, signed, Path(f"{key}.pub").read_text()) == ""
    shown = page.html(document.load(text, "gaudi-1"), signature.signer(text, signed)[0])
    assert (folder / "gaudi-1.certificate.html").read_text() == shown and "signed by the key SHA256:" in shown

    again = play(site, "--limit", "gaudi-1", **long)
    assert (again.changed(), again.result("gaudi-1", "Gather what the node says")["ran"]) == (set(), [])


def test_without_tools_nothing_is_graded_and_nothing_is_signed(site: Cluster) -> None:
    before = site["gaudi-2"].files()
    run = play(site, "--limit", "gaudi-2", certificate_qualify=True)
    assert run.returncode == 0, run.messages()
    line = run.result("gaudi-2", "Sum up")["msg"][0]
    assert line.startswith("gaudi-2: no grade, because ") and "more are silent" in line
    assert site["gaudi-2"].files() == before
    shown = (site.folder / "certificates/gaudi-2.certificate.html").read_text()
    assert "NOT SIGNED" in shown and "hl_qual is not there" in shown
