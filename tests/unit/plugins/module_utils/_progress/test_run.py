"""What a run of a playbook shows: its phases, what failed and what to type next, and the time that is left."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from ansible.cli.playbook import PlaybookCLI

from ansible_collections.gaudi3.scale.plugins.module_utils._progress import command, history
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.failures import Failure, gathered, sentences
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.history import Past, Phase
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.run import Run, group_of, phase_of
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.screen import (
    clock,
    folded,
    roughly,
    safe_diff,
    shown_lines,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Cause, Login, cause

PHASES = ("preflight", "tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train", "verify")
NODES = [f"gaudi-{number:02d}" for number in range(1, 9)]
GROUPS = {"all": [*NODES, "mon"], "ungrouped": [], "gaudi": NODES, "gaudi_head": NODES[:1], "monitoring": ["mon"]}
ESCAPE = "\x1b[2J"


def shown(lines: object) -> list[str]:
    return [line.text for line in lines]  # type: ignore[attr-defined]


def played(run: Run, changed: int = 0, seconds: float = 10.0) -> list[str]:
    """A site on eight nodes and a monitoring host, of which each phase changes so much, and what is shown of it."""
    now, lines = 0.0, []
    for phase in PHASES:
        lines += run.play(now, "", [*NODES, "mon"], GROUPS)
        lines += run.play(now, phase, [*NODES, "mon"], GROUPS)
        for number in range(max(changed, 1)):
            lines += run.task(now)
            for host in (*NODES, "mon"):
                run.result(
                    now + seconds / 2, host, f"Task {number} of the phase with a name of some length", changed > 0
                )
        now += seconds
    return shown(lines + run.end(now, [], "again", "really"))


def test_a_run_that_changes_nothing_takes_less_than_two_screens() -> None:
    lines = played(Run(0.0, 80))
    # The messages of a playbook, such as the summary of a site, come on top.
    assert len(lines) <= 30 and max(map(len, lines)) <= 80, "\n".join(lines)
    # Both groups share a line, as nothing was done in either.
    assert lines[1] == "preflight   gaudi (8), monitoring (1)  nothing to change            0:05"
    assert lines[-1] == "Finished in 1:30: 9 hosts, no change."


def test_a_first_run_takes_few_screens() -> None:
    lines = played(Run(0.0, 80), changed=6)
    assert len(lines) <= 110 and max(map(len, lines)) <= 80, "\n".join(lines)
    assert lines[1] == "preflight   gaudi (8)                  8 changed                    0:05"
    assert lines[-1] == "Finished in 1:30: 9 hosts, 486 changes."
    without = played(Run(0.0, 80, names=False), changed=6)
    assert len(without) <= 30


def test_a_prediction_says_so_and_ends_with_the_run_itself() -> None:
    run = Run(0.0, 80, predicts=True)
    lines = played(run, changed=1)
    assert "8 would change" in lines[1]
    assert lines[-3:] == ["Predicted in 1:30: 9 hosts, 81 changes to make.", "Next, to make them:", "  really"]
    assert played(Run(0.0, 80, predicts=True))[-1] == "Predicted in 1:30: 9 hosts, no change to make."
    # A playbook before it on the same command line would change something.
    assert shown(Run(0.0, 80, predicts=True).end(1.0, [], "again", "really", earlier=1))[-1] == "  really"


def test_a_phase_is_the_playbook_that_is_imported() -> None:
    assert phase_of("/c/playbooks/drivers.yml", "/c/playbooks/site.yml", "Install") == "drivers"
    assert phase_of("/c/playbooks/health.yml", "/c/playbooks/health.yml", "Ask the nodes") == "Ask the nodes"
    assert phase_of("/c/playbooks/check_variables.yml", "/c/playbooks/drivers.yml", "Check") == ""
    assert phase_of("", "", "Mine") == "Mine"


def test_checks_belong_to_the_phase_behind_them() -> None:
    run = Run(0.0, 80)
    lines = run.play(0.0, "drivers", NODES, GROUPS)
    run.result(5.0, "gaudi-01", "Load", True)
    lines += run.play(6.0, "", [*NODES, "mon"], GROUPS)
    run.result(7.0, "gaudi-01", "Check the variables", False)
    lines += run.play(8.0, "fabric", NODES, GROUPS)
    assert shown(lines) == [
        "drivers     gaudi (8)                  1 changed                    0:05",
        " " * 12 + "Load (1 of 8)",
    ]
    # Two plays of the same phase, with a check between them.
    lines = run.play(9.0, "", NODES, GROUPS) + run.play(9.0, "fabric", NODES, GROUPS)
    assert lines == []
    assert shown(run.end(10.0, [], None, None))[0].startswith(
        "fabric      gaudi (8)                  nothing to change"
    )
    assert run.past == Past("", (Phase("drivers", 6.0, True), Phase("fabric", 4.0, False)))


def test_a_check_that_fails_is_no_failure_of_the_phase_before_it() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "drivers", NODES, GROUPS)
    run.play(1.0, "", NODES, GROUPS)
    run.failed(2.0, Failure("gaudi-01", "Check the variables", ("fabric_mode is l4.",)))
    text = "\n".join(shown(run.end(3.0, ["gaudi-01"], None, None)))
    assert "drivers     gaudi (8)                  nothing to change" in text and "checks      gaudi-01" not in text
    assert "checks      gaudi (1)                  1 failed" in text


def test_hosts_are_counted_in_one_group_each() -> None:
    groups = {**GROUPS, "storage": ["nas", "gaudi-01"]}
    assert [group_of(host, groups) for host in ("gaudi-01", "mon", "nas", "localhost", "alone")] == [
        "gaudi", "monitoring", "storage", "controller", "alone",
    ]  # fmt: skip


def test_the_same_failure_of_many_hosts_is_shown_once_and_repeated_last() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "fabric", NODES, GROUPS)
    first = []
    for host in NODES:
        sentence = (
            f"1 of 24 external ports of {host} stayed down after 60 seconds: check cables, then run 'hl-smi -n link'."
        )
        first += shown(run.failed(1.0, Failure(host, "Bring the ports up", (sentence,))))
    assert first[0] == "FAILED  gaudi-01: Bring the ports up" and len(first) == 3
    last = shown(run.end(60.0, NODES, "ansible-playbook -i mine gaudi3.scale.site", None))
    assert last == [
        "fabric      gaudi (8)                  8 failed                     0:01",
        "Stopped after 1:00. What failed:",
        "  fabric: Bring the ports up",
        "    on gaudi-01, gaudi-02, gaudi-03, gaudi-04, gaudi-05, gaudi-06, gaudi-07,",
        "    gaudi-08",
        "    1 of 24 external ports of gaudi-01 stayed down after 60 seconds: check",
        "    cables, then run 'hl-smi -n link'.",
        "Next, when that is mended:",
        "  ansible-playbook -i mine gaudi3.scale.site",
    ]


def test_a_command_with_a_wrong_value_is_not_shown_as_if_it_were_right() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "train", NODES, GROUPS)
    run.failed(1.0, Failure("gaudi-01", "Train", ("trainer_nodes is -1: give a number above 0.",)))
    command = "ansible-playbook gaudi3.scale.site -e trainer_nodes=-1"
    last = shown(run.end(2.0, ["gaudi-01"], command, None, given=["fabric_mtu", "trainer_nodes"]))
    assert last[-2:] == ["Next, when trainer_nodes in it is put right:", f"  {command}"]
    assert shown(run.end(2.0, ["gaudi-01"], command, None, given=["nodes"]))[-2] == "Next, when that is mended:"


def test_the_variables_of_a_command() -> None:
    assert command.variables(["a=1 b=2", '{"c": 1}', "d=4", "a: 1"]) == ["a", "b", "c", "d"]
    assert command.variables(["@file.yml"]) == []


MESSAGES = {
    "no route": "ssh: connect to host 10.0.0.5 port 22: No route to host",
    "no ssh server": "ssh: connect to host 10.0.0.5 port 22: Connection refused",
    "no such name": "ssh: Could not resolve hostname 10.0.0.5: Name or service not known",
    "unknown host key": "No ED25519 host key is known for 10.0.0.5 and you have requested strict checking.\r\n"
    "Host key verification failed.",
    "changed host key": "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nHost key verification failed.",
    "login refused": "root@10.0.0.5: Permission denied (publickey,password).",
}
NEXT = {
    "no route": "ping -c 3 10.0.0.5",
    "no ssh server": "ssh -v -p 2222 -i /keys/one root@10.0.0.5",
    "no such name": "getent hosts 10.0.0.5",
    "unknown host key": "ssh -p 2222 -i /keys/one root@10.0.0.5",
    "changed host key": "ssh-keygen -R '[10.0.0.5]:2222'",
    "login refused": "ssh -v -p 2222 -i /keys/one root@10.0.0.5",
}
LOGIN = Login("10.0.0.5", "root", 2222, "/keys/one")


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_host_that_does_not_answer_has_a_cause_and_a_command(kind: str) -> None:
    found = cause(f"Failed to connect to the host via ssh: {MESSAGES[kind]}", LOGIN)
    assert (found.kind, found.command) == (kind, NEXT[kind])
    assert "10.0.0.5" in found.sentence and not found.sentence.endswith(".")


def test_an_unknown_cause_is_shown_as_ssh_says_it() -> None:
    found = cause(f"ssh: it is {ESCAPE} Tuesday.", Login("host"))
    assert (found.kind, found.sentence) == (
        "no answer",
        r"why is not known. What was said is: ssh: it is \x1b[2J Tuesday",
    )
    assert cause("", Login("host")).sentence == "it gave no answer"
    assert cause("No route to host", Login("a b")).command == "ping -c 3 'a b'"


def test_hosts_that_do_not_answer_are_told_apart_by_cause() -> None:
    failures = []
    for host, kind in zip(NODES, ("no route", "login refused", "no route", "login refused"), strict=False):
        why = cause(MESSAGES[kind], Login(host))
        failures.append(Failure(host, "Gather", (why.sentence,), why))
    assert [[each.host for each in group] for group in gathered(failures)] == [
        ["gaudi-01", "gaudi-03"], ["gaudi-02", "gaudi-04"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"msg": "It cannot be.", "found": {"driver": "x" * 4000}}, ["It cannot be."]),
        ({"msg": "These cannot be used:\nfabric_mode is l4"}, ["These cannot be used:", "fabric_mode is l4"]),
        ({"msg": ["one", "two"]}, ["one", "two"]),
        ({"msg": "non-zero return code", "stderr": "a\nb: none\n"}, ["non-zero return code", "a", "b: none"]),
        ({"results": [{"failed": True, "msg": "x"}, {"msg": "y"}, {"failed": True, "msg": "x"}], "msg": "All"}, ["x"]),
        ({"results": [{"msg": "x", "exception": "(none)"}, {"msg": "y"}], "msg": "One or more items failed"}, ["x"]),
        (
            {"msg": "Module result deserialization failed: none found", "module_stderr": "sh: no python"},
            ["Module result deserialization failed: none found", "sh: no python"],
        ),
        ({"censored": "hidden", "msg": "password"}, ["what it answered is hidden, as it may hold a secret (no_log)"]),
        ({"msg": f"{ESCAPE}gone"}, [r"\x1b[2Jgone"]),
        ({}, ["it failed and says nothing: -v shows its whole answer"]),
    ],
)  # fmt: skip
def test_a_failure_is_its_sentence_and_nothing_else_of_the_answer(
    answer: dict[str, object], expected: list[str]
) -> None:
    assert sentences(answer) == expected


def test_what_has_to_be_typed_is_whole() -> None:
    long = (
        "ansible-playbook -i /home/somebody/a/folder/with/a/name/mine gaudi3.scale.site --limit '!gaudi-01,!gaudi-02'"
    )
    assert folded(long, 40, "  ") == [f"  {long}"]
    lines = folded(
        f"3 of 3 hosts do not answer: repair them, or leave them out with '{long.split(' --')[0]}' once more.", 40
    )
    assert f"'{long.split(' --')[0]}'" in lines and all(len(line) <= 40 for line in lines if "'" not in line)
    address = "https://" + "a" * 60
    assert address in " ".join(folded(f"Prometheus: {address} (user prometheus)", 30)).split()
    # A word with an apostrophe begins no quotation.
    assert folded("the node's driver and the host's name", 20) == ["the node's driver", "and the host's name"]
    assert folded("", 20, "  ") == ["  "]


def test_texts_do_not_act_on_a_terminal() -> None:
    assert list(shown_lines([f"a{ESCAPE}", "b\nc\td"])) == [r"a\x1b[2J", "b", "c   d"]
    line = "x" * 5000 + ESCAPE
    diff = [{"before": "", "after": f"{line}\n\tkey: 1\n", "after_header": "\r/etc/x"}]
    assert safe_diff(diff) == [
        {"before": "", "after": "x" * 5000 + "\\x1b[2J\n\tkey: 1\n", "after_header": "\\r/etc/x"}
    ]
    assert safe_diff({"after": {"mode": "0644"}}) == {"after": {"mode": "0644"}} and safe_diff(None) is None


def test_a_command_that_a_playbook_names_last_is_shown_last() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "Look", NODES, GROUPS)
    said = ["  It is odd.", "Next:", "export A=/b", "  ansible-playbook gaudi3.scale.site"]
    assert shown(run.said(said)) == ["  It is odd."]
    assert shown(run.end(5.0, [], None, None))[-4:] == ["Finished in 0:05: 8 hosts, no change.", *said[1:]]
    run = Run(0.0, 80)
    run.said(["One", "Next:", "  ssh one"])
    assert shown(run.said(["Two"])) == ["Next:", "  ssh one", "Two"]
    assert shown(run.said([f"    {'word ' * 30}"]))[1].startswith("      word")


def test_a_run_of_some_phases_leaves_out_the_others() -> None:
    """Only the checks that a phase begins with ran of them."""
    run = Run(0.0, 80, partial=True)
    lines = []
    for phase in ("tuning", "fabric", "verify"):
        lines += run.play(0.0, "", NODES, GROUPS)
        run.result(0.0, NODES[0], "Check the variables", False)
        lines += run.play(0.0, phase, NODES, GROUPS)
        if phase == "fabric":
            run.result(1.0, NODES[0], "Bring the ports up", False)
    lines += run.end(2.0, [], None, None)
    assert [line.split()[0] for line in shown(lines)] == ["fabric", "Finished"]


def test_a_run_of_which_nothing_was_chosen_says_so() -> None:
    nothing = ["Nothing was done: --tags nosuch leaves no task.", "Next:", "  ansible-playbook site.yml --list-tags"]
    for chosen, changed, last in ((False, False, nothing[-1]), (True, False, "Finished"), (False, True, "Finished")):
        run = Run(0.0, 80, partial=True, what="site")
        run.play(0.0, "tuning", NODES, GROUPS)
        assert run.task(0.0, chosen) == [] or chosen
        run.result(1.0, NODES[0], "Look", changed, chosen)
        ends = shown(run.end(2.0, [], "again", None, nothing=nothing))
        assert ends[-1].startswith(last) and (nothing[0] in ends) is (last == nothing[-1])
        assert (run.past is None) is not chosen
    whole = Run(0.0, 80)
    whole.play(0.0, "tuning", NODES, GROUPS)
    assert shown(whole.end(2.0, [], "again", None, nothing=nothing))[-1].startswith("Finished")


SILENT = Failure(NODES[0], "Ask", ("It is off.",), Cause("no route", "It is off", "ping it"))


def test_a_host_that_need_not_answer_is_no_failure() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "Look", NODES, GROUPS)
    run.passed(1.0, SILENT)
    run.passed(2.0, SILENT)
    run.result(2.0, NODES[1], "Write", True)
    lines = shown(run.end(3.0, [], "again", None))
    assert lines[0] == "Look        gaudi (8) 1 changed, 1 unreachable (ignored) 0:02"
    assert lines[-1] == "Finished in 0:03: 8 hosts, 1 change." and "FAILED" not in "".join(lines)


@pytest.mark.parametrize(
    ("failure", "is_shown"),
    [
        (Failure(NODES[0], "Demand", ("It is silent.",)), True),
        (Failure(NODES[1], "Demand", (f"1 of 8 hosts do not answer ({NODES[0]}).",)), True),
        (Failure(NODES[1], "Demand", (f"x{NODES[0]} and {NODES[0]}1 are others.",)), False),
    ],
)
def test_a_failure_over_a_silent_host_says_why_it_is_silent(failure: Failure, is_shown: bool) -> None:
    run = Run(0.0, 80)
    run.play(0.0, "Look", NODES, GROUPS)
    run.passed(1.0, SILENT)
    run.failed(1.0, failure)
    lines = shown(run.end(3.0, [failure.host], "again", None))
    assert "1 failed" in lines[0]
    assert ("  Look: does not answer: no route" in lines) is ("    ping it" in lines) is is_shown


def test_a_play_with_a_long_name_has_a_line_of_its_own() -> None:
    run = Run(0.0, 80)
    run.play(0.0, "Examine the Gaudi nodes", NODES, GROUPS)
    assert shown(run.end(1.0, [], None, None))[:2] == [
        "Examine the Gaudi nodes", "            gaudi (8)                  nothing to change",
    ]  # fmt: skip


def test_durations() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 245, 3845)] == ["0:00", "1:00", "4:05", "1:04:05"]
    assert [roughly(seconds) for seconds in (1, 43, 100, 3500, 7799)] == [
        "5 s",
        "45 s",
        "2 min",
        "58 min",
        "2 h 10 min",
    ]


def test_the_command_is_that_of_the_user_without_a_secret() -> None:
    given = [
        "/usr/bin/ansible-playbook",
        "-i",
        "mine",
        "gaudi3.scale.site",
        "--check",
        "--diff",
        "--limit",
        "!gaudi-01",
    ]
    assert command.again(given) == "ansible-playbook -i mine gaudi3.scale.site --check --diff --limit '!gaudi-01'"
    assert command.again(given, really=True) == "ansible-playbook -i mine gaudi3.scale.site --limit '!gaudi-01'"
    for secret in ("wandb_api_key=1", '{"grafana_password": "x"}', "a=hf_abcdefghijklmnopqrstuvwxyz", "password: x"):
        assert command.again([*given, "-e", secret]) is None
    assert command.again([]) is None
    assert command.again(["ansible-playbook", "site.yml", "-CD", "-vC"], really=True) == "ansible-playbook site.yml -v"
    for secret in ("passwords=x1", '{"gaudi_secrets": {"a": "x1"}}', "pw=x1", "db_creds=x1", "luks_passphrases=x1"):
        assert command.again(["ansible-playbook", "site.yml", "-e", secret]) is None


def prediction(*options: str) -> str | None:
    return command.again(["/v/ansible-playbook", *options, "site.yml"], really=True)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        # Ansible takes the beginning of an option for it, and short options in one argument.
        (["--ch"], []), (["--che", "--dif"], []), (["--check", "--d"], []), (["--conn", "local"], ["--conn", "local"]),
        (["-Ci", "mine"], ["-i", "mine"]), (["-vvCDimine"], ["-vvimine"]), (["-CDbKe", "a=C"], ["-bKe", "a=C"]),
        (["-DC"], []), (["-lCD", "-tDC", "-fC"], ["-lCD", "-tDC", "-fC"]), (["--inv", "mine", "-C"], ["--inv", "mine"]),
        (["--become", "-C", "--diff"], ["--become"]), (["-uDiCk"], ["-uDiCk"]), (["-CMx"], ["-Mx"]),
        (["-C", "--", "--check"], ["--", "--check"]), (["--limit=--check"], ["--limit=--check"]),
        (["-f", "-1"], ["-f", "-1"]),
    ],
)  # fmt: skip
def test_a_prediction_is_followed_by_the_same_command_without_it(options: list[str], left: list[str]) -> None:
    assert prediction(*options) == shlex.join(["ansible-playbook", *left, "site.yml"])


def test_the_options_that_only_predict_are_those_of_ansible_by_every_beginning() -> None:
    parser = PlaybookCLI(["ansible-playbook"])
    parser.init_parser()
    for option in ("--check", "--diff"):
        for end in range(3, len(option) + 1):
            meant = parser.parser._get_option_tuples(option[:end]) if option[:end] != option else [None]
            assert (prediction(option[:end]) == "ansible-playbook site.yml") is (len(meant) == 1), option[:end]
    flags = {
        option[1]
        for action in parser.parser._actions
        for option in action.option_strings
        if len(option) == 2 and action.nargs == 0
    }
    assert flags - {"h"} == set("vCDbkKJ")
    valued = {
        option[1]
        for action in parser.parser._actions
        for option in action.option_strings
        if len(option) == 2 and action.nargs != 0
    }
    assert valued == set("iletucTMf")


@pytest.mark.parametrize(
    ("arguments", "typed", "found", "begin"),
    [
        (["/v/bin/ansible-playbook", "a"], ["/v/python", "/v/bin/ansible-playbook", "a"], "/v/bin/ansible-playbook",
         ["ansible-playbook"]),
        (["ansible-playbook", "a"], ["python", "cheap.py", "a"], None, ["ansible-playbook"]),
        # A program that the shell does not find by its name, or of which it finds another.
        (["/v/bin/ansible-playbook"], ["/v/python", "/v/bin/ansible-playbook"], None, ["/v/bin/ansible-playbook"]),
        (["/v/bin/ansible-playbook"], ["/v/python", "/v/bin/ansible-playbook"], "/usr/bin/ansible-playbook",
         ["/v/bin/ansible-playbook"]),
        (["/l/ansible/__main__.py", "playbook", "a"], ["python3", "-m", "ansible", "playbook", "a"], None,
         ["python3", "-m", "ansible"]),
        (["/l/ansible/cli/playbook.py", "a"], ["python", "-m", "ansible.cli.playbook", "a"], None,
         ["python", "-m", "ansible.cli.playbook"]),
        (["./play.py"], ["python", "./play.py"], None, ["python", "./play.py"]),
    ],
)  # fmt: skip
def test_the_command_begins_as_it_was_typed(
    arguments: list[str], typed: list[str], found: str | None, begin: list[str]
) -> None:
    assert command.program(arguments, typed, lambda _name: found) == begin
    assert command.again(arguments, begin=begin) == shlex.join([*begin, *arguments[1:]])
    listed = command.listing(arguments, begin, ["a", "b"])
    entry = ["playbook"] if "playbook" in arguments else []
    assert listed == shlex.join([*begin, *entry, "a", "b", "--list-tags"])


FIRST = Past("site", (Phase("preflight", 20, False), Phase("drivers", 600, True), Phase("train", 1200, True)))
LATER = Past("site", (Phase("preflight", 20, False), Phase("drivers", 10, False), Phase("train", 60, False)))


def test_the_time_that_is_left_is_that_of_runs_that_went_alike() -> None:
    ended = [Phase("preflight", 20, False)]
    assert history.left([FIRST, LATER], "site", [], "preflight", 5.0) == history.Left(85.0, 1815.0)
    assert history.left([FIRST, LATER], "site", [*ended, Phase("drivers", 9, False)], "train", 0.0) == history.Left(
        60.0, 60.0
    )
    assert history.left([FIRST, LATER], "site", [*ended, Phase("drivers", 9, True)], "train", 1300.0) == history.Left(
        0.0, 0.0
    )
    assert (
        history.left([FIRST], "health", [], "preflight", 0.0) is None
        and history.left([FIRST], "site", [], "new", 0.0) is None
    )
    assert history.usual([FIRST, LATER], "site", ended, "drivers") == 10


def test_a_phase_that_takes_long_is_announced_with_the_time_that_is_left() -> None:
    run = Run(0.0, 80, what="site", past=[FIRST])
    run.play(0.0, "preflight", NODES, GROUPS)
    # It usually takes 20 seconds.
    assert shown(run.task(0.0)) == ["preflight ... (usually 20 s; about 30 min left)"]
    assert run.task(1.0) == []
    run.play(20.0, "drivers", NODES, GROUPS)
    assert shown(run.task(20.0)) == ["drivers ... (usually 10 min; about 30 min left)"]
    both = Run(0.0, 80, what="site", past=[FIRST, LATER])
    both.play(0.0, "drivers", NODES, GROUPS)
    assert both.task(0.0) == [], "the newest run took ten seconds"
    # A phase changes something that changed nothing in any run before: nothing is known of the rest.
    other = Run(0.0, 80, what="site", past=[FIRST, LATER])
    other.play(0.0, "preflight", NODES, GROUPS)
    other.result(1.0, NODES[0], "Write", True)
    other.play(2.0, "drivers", NODES, GROUPS)
    assert other.task(2.0) == []
    assert shown(Run(0.0, 80, what="site").task(0.0)) == []


def test_the_times_of_runs_are_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "state/mine/progress.json"
    assert history.read(str(path)) == []
    kept: list[Past] = []
    for number in range(8):
        kept = history.with_run(kept, Past("site", (Phase("drivers", float(number), True),)))
        kept = history.with_run(kept, Past("health", (Phase("Ask", 1.0, False),)))
    history.write(str(path), kept)
    found = history.read(str(path))
    assert found == kept
    assert [run.phases[0].seconds for run in found if run.what == "site"] == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert os.listdir(path.parent) == ["progress.json"]


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "null", "[1]", '{"form": 2, "runs": []}', '{"form": 1, "runs": {}}',
        json.dumps({"form": 1, "runs": [7, {"what": 1}, {"what": "x", "phases": []}, {"what": "x", "phases": [1]}]}),
        json.dumps({"form": 1, "runs": [{"what": "x", "phases": [["a", "1", True]]}]}),
        json.dumps({"form": 1, "runs": [{"what": "x", "phases": [["a", True, True]]}]}),
        json.dumps({"form": 1, "runs": [{"what": "x", "phases": [["a", -1, True]]}]}),
        '{"form": 1, "runs": [{"what": "x", "phases": [["a", NaN, true]]}]}',
    ],
)  # fmt: skip
def test_a_file_that_is_damaged_holds_no_runs(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress.json").write_text(text)
    assert history.read(str(tmp_path / "progress.json")) == []
