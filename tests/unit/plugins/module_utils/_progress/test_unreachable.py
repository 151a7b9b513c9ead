"""Causes of hosts that do not answer: the machine, port and user are those that ssh names, and no others."""

from __future__ import annotations

import shlex

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._progress import unreachable
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.failures import Failure, gathered, last_lines
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Login, cause

PLAIN = Login("10.0.0.5")
JUMP = Login("10.0.0.5", "root", 2222, "/keys/one", ("-o", "ProxyJump=admin@bastion"))
UNKNOWN = Login("")
CUT = "\r\nConnection closed by UNKNOWN port 65535"
BEHIND = "channel 0: open failed: connect failed: No route to host\r\nstdio forwarding failed" + CUT
TO = "Failed to connect to the host via ssh: "
REFUSED = TO + "ssh: connect to host {} port {}: Connection refused"


@pytest.mark.parametrize(
    ("message", "login", "kind", "said", "command"),
    [
        # The port, the machine and the user that ssh names, which the configuration of ssh may have chosen.
        (REFUSED.format("10.0.0.5", 2200), PLAIN, "no ssh server", "10.0.0.5 is there", "ssh -v 10.0.0.5"),
        (REFUSED.format("10.0.0.5", 2200), PLAIN, "no ssh server", "on its port 2200. Start", "ssh -v 10.0.0.5"),
        (REFUSED.format("fe80::1%eth0", 22), Login("fe80::1%eth0"), "no ssh server", "fe80::1%eth0 is there", None),
        (REFUSED.format("10.1.1.1", 22), PLAIN, "no ssh server", "10.1.1.1 (where ssh goes for 10.0.0.5) is", None),
        (REFUSED.format("10.1.1.1", 22), UNKNOWN, "no ssh server", "10.1.1.1 is there", ""),
        ("ubuntu@10.0.0.5: Permission denied (publickey).", PLAIN, "login refused", "login as ubuntu. Set", None),
        ("me@corp@10.0.0.5: Permission denied (publickey).", PLAIN, "login refused", "as me@corp. Set", None),
        ("Permission denied, please try again.", Login("a", "root"), "login refused", "login as root.", None),
        # A machine on the way.
        (REFUSED.format("bastion", 22) + CUT, JUMP, "no ssh server", "bastion (where ssh goes for 10.0.0.5) is", None),
        (REFUSED.format("bastion", 22) + CUT, JUMP, "no ssh server", "~/.ssh/config, which lead there", None),
        (
            "admin@bastion: Permission denied (publickey)." + CUT, JUMP, "login refused",
            "bastion (where ssh goes for 10.0.0.5) answers and refuses the login as admin. Look at",
            "ssh -v -o ProxyJump=admin@bastion -p 2222 -i /keys/one root@10.0.0.5",
        ),
        (
            "ssh: Could not resolve hostname bastion: Name or service not known" + CUT, JUMP, "no such name",
            "the name bastion (where", "getent hosts bastion",
        ),
        (
            "ssh: connect to host bastion port 22: Connection timed out" + CUT, JUMP, "no route",
            "nothing answers at bastion (where ssh goes for 10.0.0.5). Look", "ping -c 3 bastion",
        ),
        (BEHIND, JUMP, "no way behind the jump host", "does not reach 10.0.0.5 (connect failed: No route", None),
        ("Host key verification failed." + CUT, JUMP, "unknown host key", "10.0.0.5 (or a jump host before", None),
        (
            "kex_exchange_identification: Connection closed by remote host" + CUT, JUMP, "no way over the jump host",
            "to 10.0.0.5 ends at a jump host or behind it, and ssh does not say why",
            "ssh -v -o ProxyJump=admin@bastion -p 2222 -i /keys/one root@10.0.0.5",
        ),
        ("kex_exchange_identification: read: Connection reset by peer", PLAIN, "connection cut", "10.0.0.5 ends", None),
        ("Connection timed out during banner exchange", PLAIN, "connection cut", "10.0.0.5 ends", "ssh -v 10.0.0.5"),
        # Names of keys are those of ssh.
        (
            "No ED25519 host key is known for [10.0.0.5]:2222 and you have requested strict checking.", JUMP,
            "unknown host key", "host key of 10.0.0.5. Log in", None,
        ),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key for [bastion]:2022 has changed and you "
            "have requested strict checking.\r\nHost key verification failed.", JUMP,
            "changed host key", "bastion (where ssh goes for 10.0.0.5) shows another", "ssh-keygen -R '[bastion]:2022'",
        ),
        ("REMOTE HOST IDENTIFICATION HAS CHANGED!", JUMP, "changed host key", "(or a jump host before it) shows", ""),
        (
            "WARNING: UNPROTECTED PRIVATE KEY FILE!\nPermissions 0644 for '/keys/one' are too open.\n"
            "root@10.0.0.5: Permission denied (publickey).", JUMP, "key that others can read", "(/keys/one)",
            "chmod 600 /keys/one",
        ),
        # No word of the connection: the host was reached.
        (
            "Failed to create temporary directory. stderr output: mkdir: /x: Permission denied", PLAIN, "no answer",
            "why is not known. What was said is: Failed to create", None,
        ),
        ("Timeout (12s) waiting for privilege escalation prompt: ", PLAIN, "no answer", "why is not known", None),
        (TO + "Load key \"/k\": Permission denied\r\nBye.", PLAIN, "no answer", 'is: Load key "/k": Permission', None),
        ("debug1: connect to address 10.0.0.7 port 22: Connection refused\nodd", PLAIN, "no answer", "is: odd", None),
        # Another connection than ssh, to the socket of an engine of containers.
        ("dial unix /run/docker.sock: Connection refused", Login("", ssh=False), "no answer", "is: dial unix", ""),
        (TO, PLAIN, "no answer", "it gave no answer", None),
    ],
)  # fmt: skip
def test_a_cause_names_what_ssh_names(message: str, login: Login, kind: str, said: str, command: str | None) -> None:
    found = cause(message, login)
    assert found.kind == kind and said in found.sentence
    assert command is None or found.command == command


@pytest.mark.parametrize("message", ["", "Connection refused", "No route to host", "Host key verification failed."])
def test_a_name_that_begins_with_a_dash_is_part_of_no_command(message: str) -> None:
    found = cause(message, Login("-oProxyCommand=x", "root"))
    assert found.kind == "no name of a host" and "begins with a dash" in found.sentence and not found.command
    assert Login("host", "-x").command() == "ssh -- -x@host"
    # Nor is one that ssh is said to have named.
    odd = cause("ssh: connect to host -oProxyCommand=x port 22: No route to host", Login("host"))
    assert odd.command == "ping -c 3 host"


def test_arguments_that_may_hold_a_secret_are_not_shown() -> None:
    login = Login("a", options=("-o", "ProxyCommand=sshpass -p x ssh -W %h:%p b"))
    assert login.jumps and login.command("-v") == ""
    found = cause("Host key verification failed.", login)
    assert "sshpass" not in found.sentence and not found.command
    assert [line.strip() for line in last_lines([Failure("a", "T", (found.sentence,), found)], 200)][-1:] != [""]


def test_one_machine_on_the_way_is_one_failure_and_two_are_two() -> None:
    failures = []
    for host, bastion in (("a", "one"), ("b", "one"), ("c", "two")):
        why = cause(REFUSED.format(bastion, 22), Login(host, options=("-J", bastion)))
        failures.append(Failure(host, "Gather", (why.sentence,), why))
    groups = gathered(failures)
    assert [[each.host for each in group] for group in groups] == [["a", "b"], ["c"]]
    # A sentence that names one of several hosts says which.
    assert last_lines(groups[0], 200)[2].startswith("    a: one (where ssh goes for a) is there")
    assert last_lines(groups[1], 200)[2].startswith("    two (where ssh goes for c) is there")


def test_every_cause_of_the_table_can_be_told() -> None:
    """No row is hidden by one before it, and none names what it does not say."""
    seen = {
        "changed host key": "Host key for x has changed", "unknown host key": "Host key verification failed",
        "key that others can read": "UNPROTECTED PRIVATE KEY", "login refused": "x@y: Permission denied (",
        "no way behind the jump host": "open failed: x", "no such name": "Name or service not known",
        "no ssh server": "Connection refused", "no route": "No route to host",
        "no way over the jump host": "Connection closed by UNKNOWN port 65535", "connection cut": "Connection closed",
    }  # fmt: skip
    assert [row.kind for row in unreachable._ROWS] == list(seen)
    for kind, message in seen.items():
        for login in (PLAIN, JUMP, UNKNOWN):
            found = cause(message, login)
            assert found.kind == kind and "{" not in found.sentence and shlex.split(found.command) is not None
