"""Clusters out of outputs: values in the form that they must have, and the way of ssh that follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.cluster import (
    Cluster,
    cluster_from_outputs,
    ssh_options,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import values_of

from ...clusters import outputs

SESSION = "--document-name AWS-StartSSHSession --parameters portNumber=%p"
DIRECTLY = {"ProxyJump": "none"}


def cluster(host: dict[str, Any] | None = None, **about: Any) -> Cluster:
    """Two nodes and a monitor; ``host`` is laid over the first node."""
    said = values_of(outputs(**about))
    said["cluster_endpoints"]["big-01"].update(host or {})
    return cluster_from_outputs(said, "here", "'terraform apply'")


def way(read: Cluster) -> dict[str, str]:
    """Of the first node."""
    return ssh_options(read, read.nodes[0])


def test_a_machine_with_all_that_can_be_said_of_it() -> None:
    said = {
        "public_ip": "2001:db8::1", "ssh_port": 2222, "jump_host": "ops@gate.example.com:22", "bmc": "10.9.0.1",
        "host_key": "ssh-ed25519 AAAAC3+/==", "connect_to": "0717_5c3-f", "cards": 8,
    }  # fmt: skip
    head = cluster(said).nodes[0]
    assert {name: getattr(head, name) for name in said} == said
    assert (head.name, head.role, head.private_ip, head.is_monitor) == ("big-01", "head", "10.42.16.5", False)


@pytest.mark.parametrize(
    ("host", "about", "options"),
    [
        ({}, {}, {}),
        ({}, {"jump_host": "ops@gate:2222"}, {"ProxyJump": "ops@gate:2222"}),
        ({"jump_host": "me@other"}, {"jump_host": "ops@gate"}, {"ProxyJump": "me@other"}),
        ({"jump_host": "none"}, {"jump_host": "ops@gate"}, DIRECTLY),
        # Who is the jump host of the others is reached without one, whichever address of it is named.
        ({}, {"jump_host": "ops@10.42.16.5:2222"}, DIRECTLY),
        ({"public_ip": "203.0.113.9"}, {"jump_host": "203.0.113.9"}, DIRECTLY),
        ({"connect_to": "2001:db8::1"}, {"jump_host": "ops@2001:db8::1"}, DIRECTLY),
        (
            {},
            {"connection": "ssm"},
            {"ProxyCommand": f"aws ssm start-session --region us-west-2 --target %h {SESSION}"},
        ),
        (
            {"host_key": "ssh-ed25519 AAAA"},
            {"jump_host": "ops@gate"},
            {
                "ProxyJump": "ops@gate", "StrictHostKeyChecking": "yes", "UserKnownHostsFile": "/dev/null",
                "GlobalKnownHostsFile": "/dev/null", "KnownHostsCommand": "/bin/echo %H ssh-ed25519 AAAA",
            },
        ),
    ],
)  # fmt: skip
def test_what_leads_ssh_to_a_machine(host: dict[str, Any], about: dict[str, Any], options: dict[str, str]) -> None:
    assert way(cluster(host, **about)) == options


RUN = "-oProxyCommand=touch x"


@pytest.mark.parametrize(
    ("host", "about", "what"),
    [
        *(({name: RUN}, {}, f"big-01 that its {name}") for name in ("private_ip", "public_ip", "connect_to", "bmc")),
        *(({name: "a b"}, {}, f"big-01 that its {name}") for name in ("private_ip", "ssh_user", "jump_host")),
        ({"connect_to": ["10.0.0.1"]}, {}, "big-01 that its connect_to"),
        ({"connect_to": "10.0.0.1\nProxyCommand x"}, {}, "big-01 that its connect_to"),
        ({"ssh_user": "-x"}, {}, "big-01 that its ssh_user"),
        ({"jump_host": "a -W b"}, {}, "big-01 that its jump_host"),
        ({"instance_id": "i-1 x"}, {}, "big-01 that its instance_id"),
        *(({"ssh_port": port}, {}, "big-01 that its ssh_port") for port in ("22 -x", 70000, 2.5)),
        *(({"host_key": key}, {}, "big-01 that its host_key") for key in ("ssh-rsa AAAA; x", "ssh-rsa AAAA\n* x y")),
        ({}, {"jump_host": RUN}, "cluster that its jump_host"),
        ({}, {"jump_host": "a,b"}, "cluster that its jump_host"),
        ({}, {"connection": RUN}, "cluster that its connection"),
        ({}, {"connection": "ssm", "region": "x; y"}, "cluster that its region"),
        ({}, {"variables": {"ansible_ssh_executable": "x"}}, "cluster that its variable ansible_ssh_executable"),
        ({}, {"variables": {"a b": "x"}}, "cluster that its variable a b"),
        # Once they are exported to a file, nothing marks them as no templates any more.
        *(({name: "a {{ b }}"}, {}, f"big-01 that its {name}") for name in ("zone", "market", "instance_type")),
        *(({}, {name: "{% b %}"}, f"cluster that its {name}") for name in ("cloud", "region")),
        ({}, {"checkpoint_target": "s3://{# b #}"}, "cluster that its checkpoint_target"),
        ({}, {"variables": {"gaudi_note": "{{ b }}"}}, "cluster that its gaudi_note"),
        ({"zone": "a\nb"}, {}, "big-01 that its zone"),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused(host: dict[str, Any], about: dict[str, Any], what: str) -> None:
    with pytest.raises(Refusal) as told:
        cluster(host, **about)
    assert str(told.value).startswith(f"here says of {what} is '")
    assert str(told.value).endswith("', which cannot be: look who writes Terraform's state, and correct it there.")
    assert str(told.value).isprintable()


def test_a_name_that_is_none_is_refused() -> None:
    said = values_of(outputs())
    said["cluster_endpoints"]["-x\x1b"] = said["cluster_endpoints"].pop("big-01")
    with pytest.raises(Refusal, match=r"^here says of -x\\x1b that its name is '-x\\x1b', which cannot be: "):
        cluster_from_outputs(said, "here", "again")


@pytest.mark.parametrize(
    ("host", "about"),
    [({}, {"ssh_arguments": "-o ProxyJump=ops@gate"}), ({"ssh_arguments": "-o ProxyJump=none"}, {})],
    ids=["cluster", "host"],
)
def test_arguments_of_an_earlier_release_lead_nowhere(host: dict[str, Any], about: dict[str, Any]) -> None:
    """Machines can still be listed, as a command has to that brings the outputs up to date."""
    read = cluster(host, **about)
    with pytest.raises(Refusal) as told:
        way(read)
    assert str(told.value) == (
        "here gives ssh_arguments, as an earlier release of the modules did, in place of jump_host and connection in "
        "the output cluster: bring the outputs up to date with 'terraform apply', which changes no machine."
    )
    assert way(cluster({"ssh_arguments": None}, ssh_arguments="")) == {}
