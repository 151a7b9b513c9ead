"""What the examinations of all nodes found, as it is read: sentences, cures, causes and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.filter.doctor_letter import doctor_letter
from ansible_collections.gaudi3.scale.plugins.module_utils._progress import doctor

ROOT = Path(__file__).resolve().parents[5]
SUMMARY = "8 Gaudi cards, driver not loaded, Ubuntu 24.04, kernel 6.8; 3 odd (machine, modules, cards); 2 fine"
SITE = "  ansible-playbook -i mine gaudi3.scale.site --check --diff"


def answer(**odd: list[str]) -> dict[str, Any]:
    sections = {name: {"state": "odd", "odd": said} for name, said in odd.items()}
    return {"report": {"sections": sections}, "summary": SUMMARY}


def test_every_cure_begins_a_sentence_of_the_examination() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "doctor/src/gaudi3_doctor").glob("*.py")))
    phases = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
    for section, begin, phase in (*doctor.CURES, *doctor.WITH_THE_DRIVER):
        assert f'Section("{section}"' in text and phase in phases
        assert not begin or f'"{begin}' in text, begin
    for section, begin, _more in doctor.ALLOWED:
        assert f'Section("{section}"' in text and f'"{begin}' in text


def test_a_bare_node_has_nothing_to_look_at() -> None:
    bare = answer(
        machine=["no huge pages are set aside"],
        packages=["no package of the vendor (habanalabs*) is installed"],
        modules=["the driver (module habanalabs) is not loaded",
                 "no module file of the vendor for the running kernel 6.8"],
        device_files=["gaudi3-scale cannot open 1 of 1 device files, such as /dev/x",
                      "there is no device file below /dev/accel"],
        cards=["cards without a device of the driver: 0000:19:00.0", "no card has a network device for a port"],
        environment=["GC_KERNEL_PATH is set nowhere: without it no graph is compiled"],
        python=["/usr/bin/python3 has no torch and no habana-torch-plugin"],
    )  # fmt: skip
    lines = doctor_letter({"gaudi-01": bare, "gaudi-02": bare}, {}, ["mine"])
    assert lines[0] == (
        "gaudi-01, gaudi-02: 8 Gaudi cards, driver not loaded, Ubuntu 24.04, kernel 6.8; "
        "10 that a phase of the site cures"
    )
    assert [line for line in lines if line.startswith("  cured")] == [
        "  cured by the phase tuning:", "  cured by the phase drivers:", "  cured by the phase pytorch:",
    ]  # fmt: skip
    assert lines[-2:] == ["Next, to see what the site would change:", SITE]


def test_what_no_phase_cures_comes_first_and_is_a_sentence() -> None:
    given = answer(
        cards=["the IOMMU translates addresses of 8 cards, so results may be wrong: boot with iommu=pt",
               "cards without a device of the driver: 0000:19:00.0"],
        machine=["no huge pages are set aside"],
    )  # fmt: skip
    lines = doctor_letter({"gaudi-01": given}, None, ["mine", "other"])
    assert lines[0].endswith("; 2 to look at and 1 that a phase of the site cures")
    assert lines[1].startswith("  cards: the IOMMU translates addresses of 8 cards") and lines[1].endswith(
        "The phase tuning does so with tuning_kernel_command_line_state=present and tuning_reboot_allowed=true"
    )
    # With a driver, a card without a device of it is a fault.
    assert lines[2] == "  cards: cards without a device of the driver: 0000:19:00.0"
    assert lines[-2] == "Next, when you have looked at what is odd, and what a phase cures can stay:"
    assert lines[-1] == "  ansible-playbook -i mine -i other gaudi3.scale.site --check --diff"


def test_a_node_without_anything_odd() -> None:
    lines = doctor_letter({"gaudi-01": answer()}, {}, ["mine"])
    assert lines[0].endswith("kernel 6.8; nothing odd") and lines[1:] == [
        "Next, to see what the site would change:",
        SITE,
    ]


def test_nodes_that_do_not_answer_are_told_apart_by_cause() -> None:
    login = ["10.0.0.9", "root", 2222, "/keys/a b"]
    refused = {"unreachable": True, "msg": "root@10.0.0.9: Permission denied (publickey)."}
    route = {"unreachable": True, "msg": "ssh: connect to host 10.0.0.8 port 22: No route to host"}
    lines = doctor_letter(
        {"gaudi-01": answer(), "gaudi-02": refused, "gaudi-03": route, "gaudi-04": refused},
        {"gaudi-02": login, "gaudi-03": ["10.0.0.8", "", "", ""]},
        ["mine"],
    )
    assert "gaudi-02, gaudi-04: does not answer: login refused" in lines
    assert "  ssh -v -p 2222 -i '/keys/a b' root@10.0.0.9" in lines
    assert "gaudi-03: does not answer: no route" in lines and "  ping -c 3 10.0.0.8" in lines
    assert lines[-2] == "Next (login refused):"


def test_a_command_goes_by_the_jump_host_of_ansible() -> None:
    bastion = {"unreachable": True, "msg": "ssh: connect to host bastion port 22: Connection refused"}
    login = ["10.0.0.9", "", "", "", "-o ControlMaster=no -J 'admin@bastion'"]
    lines = doctor_letter({"gaudi-01": bastion}, {"gaudi-01": login}, ["mine"])
    assert lines[1].startswith("  bastion (where ssh goes for 10.0.0.9) is there, and nothing listens on its port 22.")
    assert lines[-1] == "  ssh -v -J admin@bastion 10.0.0.9"
    # A way that nobody can type leads to the examination itself.
    lines = doctor_letter({"gaudi-01": bastion}, {"gaudi-01": [*login[:4], "-J 'open"]}, ["mine"])
    assert lines[-1] == "  ansible-playbook -i mine gaudi3.scale.doctor"


@pytest.mark.parametrize(
    "odd",
    [
        None, 7, [], {}, {"failed": True, "msg": "Python 3.6 is too old."}, {"report": 1, "summary": "x"},
        {"report": {"sections": [1]}, "summary": "x"}, {"report": {"sections": {"a": 1}}, "summary": "x"},
        {"report": {"sections": {"a": {"state": "odd", "odd": {"b": 1}}}}, "summary": "\x1b[2J"},
        {"report": {"sections": {3: {"state": "odd", "odd": [None, ["\x1b[2J"], "y" * 9999]}}}, "summary": "x"},
        {"report": {"sections": {"a": {"state": "failed", "error": "\x1b[2J"}}}, "summary": "x"},
    ],
)  # fmt: skip
def test_a_node_that_answers_anything_spoils_no_other_line(odd: object) -> None:
    lines = doctor_letter({"gaudi-01": odd, "gaudi-02": answer()}, {"gaudi-01": [None, 1]}, ["mine"])
    assert any(line.startswith("gaudi-02: 8 Gaudi cards") for line in lines) and lines[-1] == SITE
    assert all(line.isprintable() and len(line) < 1000 for line in lines)


def test_why_a_node_was_not_examined_is_said() -> None:
    lines = doctor_letter({"gaudi-01": {"failed": True, "msg": "Use Python 3.9."}, "gaudi-02": {}}, {}, ["mine"])
    assert lines[:4] == [
        "gaudi-01: was not examined", "  examination: Use Python 3.9.",
        "gaudi-02: was not examined", "  examination: it gave no answer",
    ]  # fmt: skip
