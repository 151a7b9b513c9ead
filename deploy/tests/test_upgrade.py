"""The commands of upgrade: a plan from reports, what is refused in it, its signature, and whether it still fits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Deploy
from gaudi3_deploy.cli import app
from gaudi3_deploy.collection._upgrade import planned
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.upgrade_files import states

CARD = "0000:19:00.0"


def report(folder: Path, name: str, release: str = "1.22.0-740", driver: str = "1.22.0-5f8fa9f", **system: str) -> None:
    """A node's report, as the doctor writes it."""
    sections: dict[str, Any] = {
        "machine": {
            "kernel": system.get("kernel", "6.8.0-60-generic"),
            "system": {"ID": system.get("id", "ubuntu"), "VERSION_ID": system.get("version", "22.04")},
        },
        "modules": {"loaded": {"habanalabs": {"version": driver}}},
        "packages": {"packages": [{"name": "habanalabs-dkms", "version": release, "state": "installed"}]},
        "cards": {"cards": [{"address": CARD, "device": "0x1060"}]},
        "firmware": {"sysfs": {CARD: {"preboot_btl_ver": "Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9"}}},
    }
    folder.mkdir(exist_ok=True)
    content = {"format": 1, "sections": {key: {"data": data} for key, data in sections.items()}}
    (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture(name="reports")
def of_three_nodes(deploy: Deploy) -> Path:
    folder = deploy.folder / "reports"
    for number in (1, 2, 3):
        report(folder, f"gaudi-{number}")
    return folder


def test_a_plan_that_a_person_reads(deploy: Deploy, reports: Path) -> None:
    said = deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", "--spare", "gaudi-3")
    lines = said.splitlines()
    assert lines[:7] == [
        "to 1.23.0-695: 3 nodes in 3 batches, 0 there already, jobs stopped before",
        "  batch 1 (canary): gaudi-3",
        "  batch 2: gaudi-1",
        "  batch 3: gaudi-2",
        "gaudi-1, gaudi-2, gaudi-3: from 1.22.0-740, 0 boots, minutes unknown",
        "  1. fence: take the node out of service; its jobs save a checkpoint and leave",
        "  2. packages: bring the package set to 1.23.0-695, and hold it",
    ]
    assert "  habanalabs-dkms 1.22.0-740 -> 1.23.0-695" in lines
    assert "  way back: packages, driver, health, passport, unfence; to the same versions and holds" in lines
    written = json.loads((deploy.folder / "plan.json").read_text())
    assert lines[-2] == f"fingerprint of the fleet: {written['fingerprint']}" and lines[-1] == "written to plan.json"
    again = json.loads(deploy.run("upgrade", "plan", "1.23.0", "--reports", "reports", "--json"))
    assert again["fingerprint"] == written["fingerprint"] and again["batches"][0] == ["gaudi-1"]


def test_a_plan_that_is_made_again_is_another_one(deploy: Deploy, reports: Path) -> None:
    """Else the records of the one that ended with a surprise would be its own, and nothing would help."""
    texts = []
    for _attempt in range(2):
        deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports")
        texts.append((deploy.folder / "plan.json").read_text())
    one, other = map(planned.digest, texts)
    assert one[:16] != other[:16]
    first, second = map(json.loads, texts)
    assert first["fingerprint"] == second["fingerprint"] and first["made"] < second["made"]


def test_what_is_refused_is_named_and_the_plan_cannot_be_used(deploy: Deploy, reports: Path) -> None:
    report(reports, "gaudi-2", driver="1.21.0-555")
    said = deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", code=1)
    sentence = "gaudi-2: Its driver is 1.21.0-555 and its packages are 1.22.0-740: load that driver or boot it first."
    assert f"refused: {sentence}\n" in said
    assert deploy.run("upgrade", "check", "plan.json", "--reports", "reports", code=1).endswith(f"{sentence}\n")


def test_a_report_that_is_a_copy_under_another_name_is_no_node(deploy: Deploy, reports: Path) -> None:
    (reports / "gaudi-1 (1).json").write_text((reports / "gaudi-1.json").read_text())
    said = deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", code=2)
    assert said.startswith("gaudi3-deploy: reports/gaudi-1 (1).json is named after no node: name it NODE.json")
    assert not (deploy.folder / "plan.json").exists()


def test_a_plan_fits_until_a_node_is_another_one(deploy: Deploy, reports: Path) -> None:
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports")
    said = deploy.run("upgrade", "check", "plan.json", "--reports", "reports")
    assert said.startswith("plan.json fits the 3 nodes: ")
    report(reports, "gaudi-2", kernel="6.8.0-61-generic")
    said = deploy.run("upgrade", "check", "plan.json", "--reports", "reports", code=1)
    assert said == (
        "gaudi3-deploy: gaudi-2 is not as it was when the plan was made (its kernel was 6.8.0-60-generic and is "
        "6.8.0-61-generic): plan again.\n"
    )
    answer = json.loads(deploy.run("upgrade", "check", "plan.json", "--reports", "reports", "--json", code=1))
    assert (answer["fits"], len(answer["refusals"])) == (False, 1)


def test_a_rehearsal_is_written_into_the_plan(deploy: Deploy, reports: Path) -> None:
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports")
    lines = deploy.run("upgrade", "rehearse", "plan.json", "--reports", "reports").splitlines()
    about = json.loads((deploy.folder / "plan.json").read_text())["rehearsal"]
    every = "gaudi-1, gaudi-2, gaudi-3"
    cuts = [way["cuts"] for way in about["ways"]]
    assert lines[0] == f"{every}: {cuts[0]} power cuts on the way up, and there each time"
    assert lines[1] == (
        f"{every}: {cuts[1]} power cuts where fence fails, and back each time: health, passport, unfence"
    )
    assert lines[-4] == (
        "drifted: gaudi-1 is not as it was when the plan was made (its kernel was 6.8.0-60-generic and is "
        "6.8.0-60-generic-drifted): plan again."
    )
    assert lines[-3:] == [
        f"{sum(cuts)} power cuts, each continued by the same command; no step skipped, none done twice",
        "minutes unknown: fence, packages, driver, health, passport, unfence",
        "written into plan.json",
    ]
    assert (about["cuts"], about["minutes"]["fleet"]) == (sum(cuts), None) and sum(cuts) > 100
    assert deploy.run("upgrade", "check", "plan.json", "--reports", "reports").endswith(", rehearsed\n")
    report(reports, "gaudi-2", kernel="6.8.0-61-generic")
    before = (deploy.folder / "plan.json").read_text()
    said = deploy.run("upgrade", "rehearse", "plan.json", "--reports", "reports", code=1)
    assert said.startswith("gaudi3-deploy: gaudi-2 is not as it was when the plan was made (its kernel was ")
    assert (deploy.folder / "plan.json").read_text() == before


def test_minutes_are_those_of_the_owner(deploy: Deploy, reports: Path) -> None:
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports")
    folder = deploy.folder / "earlier/0123"
    folder.mkdir(parents=True)
    (folder / "gaudi-1.json").write_text(json.dumps({"seconds": {"health": 1230.0, "driver": 90.0}}))
    (folder / "gaudi-2.json").write_text("[1")
    asked = (
        "upgrade",
        "rehearse",
        "plan.json",
        "--reports",
        "reports",
        "--records",
        "earlier",
        "--minutes",
        "driver=4",
    )
    said = deploy.run(*asked, code=2)
    assert "A report is of a simulated node, whose records tell no minutes of a Gaudi: leave --records out." in said
    for path in reports.iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "simulated": False}))
    lines = deploy.run(*asked).splitlines()
    assert lines[-4:-1] == [
        "minutes of driver: 4 (given)",
        "minutes of health: 20.5 (the longest of 1 in records)",
        "minutes unknown: fence, packages, passport, unfence",
    ]
    every = [word for step in ("fence", "packages", "passport", "unfence") for word in ("--minutes", f"{step}=1")]
    assert deploy.run(*asked, *every).splitlines()[-2] == "minutes of all batches, one after another: 85.5"


def test_an_address_of_a_card_is_no_picture(deploy: Deploy, reports: Path) -> None:
    for path in reports.iterdir():
        text = path.read_text().replace(CARD, "0000:cd:00.0")
        path.write_text(text.replace("habanalabs-dkms", "habanalabs-firmware-odm"))
    said = deploy.run("upgrade", "plan", "1.23.0", "--reports", "reports", "--firmware", "hl-gaudi3-1.23.0-fw-1")
    assert "  4. firmware 0000:cd:00.0: take the driver out, flash the preboot firmware of 0000:cd:00.0 alone" in said


def test_a_signed_plan(deploy: Deploy, reports: Path) -> None:
    for name in ("key", "other"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(deploy.folder / name)]
        subprocess.run(make, check=True)
    public = (deploy.folder / "key.pub").read_text().split()
    (deploy.folder / "signers").write_text(f"ops@site {public[0]} {public[1]}\n")
    asked = ("upgrade", "check", "plan.json", "--reports", "reports", "--allowed-signers", "signers", "--signer")
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports")
    assert (
        "plan.json has no signature plan.json.sig: let its owner sign it with `gaudi3-deploy upgrade plan --sign"
        in deploy.run(*asked, "ops@site", code=1)
    )
    said = deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", "--sign", "key")
    assert said.endswith("written to plan.json\nsigned in plan.json.sig\n")
    assert deploy.run(*asked, "ops@site").endswith(", signed by ops@site\n")
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", "--sign", "other")
    said = deploy.run(*asked, "ops@site", code=1)
    assert "plan.json is signed by the key SHA256:" in said and "is not of ops@site in signers (" in said
    deploy.run("upgrade", "plan", "1.23.0-695", "--reports", "reports", "--sign", "key")
    with (deploy.folder / "plan.json").open("a") as stream:
        stream.write(" ")
    said = deploy.run(*asked, "ops@site", code=1)
    assert "plan.json is not what plan.json.sig signs (Signature verification failed" in said, "one byte more"
    said = deploy.run("upgrade", "rehearse", "plan.json", "--reports", "reports", "--sign", "key")
    assert said.endswith("written into plan.json\nsigned in plan.json.sig\n")
    assert deploy.run(*asked, "ops@site").endswith(", rehearsed, signed by ops@site\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "1.23.0-695", "--reports", "none"), "There is no folder none: give the one that gaudi3.scale.doctor"),
        (("plan", "9.9.9", "--reports", "reports"), "Release 9.9.9 is in no matrix: give one of"),
        (("plan", "1.23.0", "--reports", "reports", "--jobs", "kill"), "--jobs is 'kill': give stopped or move."),
        (("plan", "1.23.0", "--reports", "reports", "--canary", "x"), "x is not among the nodes: give one of gaudi-1"),
        (("plan", "1.23.0", "--reports", "reports", "--into", "no/p.json"), "no/p.json cannot be written ("),
        (("rehearse", "plan.json", "--reports", "reports", "--minutes", "x=1"), "The plan plan.json cannot be read"),
        (("check", "none.json", "--reports", "reports"), "The plan none.json cannot be read (no such file or"),
        (("check", "reports/gaudi-1.json", "--reports", "reports"), "The plan is not of format 1"),
        (("check", "plan.json", "--reports", "reports", "--signer", "a"), "give --allowed-signers and --signer."),
    ],
)
def test_a_wrong_request_is_one_sentence(
    deploy: Deploy, reports: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(reports.parent)
    with pytest.raises(UsageError) as refused:
        app(["upgrade", *words], standalone_mode=False)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_report_that_is_none_is_named(reports: Path) -> None:
    (reports / "gaudi-2.json").write_text("[1")
    with pytest.raises(UsageError, match=r"The report .*/gaudi-2.json cannot be read \("):
        states(reports)
    (reports / "gaudi-2.json").write_text("{}")
    with pytest.raises(UsageError, match=r"cannot be read. It is no doctor's report of format 1"):
        states(reports)
