"""The drop-in by which the distribution's nftables.service keeps the collection's table."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.nftables_service import DROP_IN, commands, drop_in
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

DEBIAN = """[Unit]
Description=nftables
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f /etc/nftables.conf
ExecReload=/usr/sbin/nft -f /etc/nftables.conf
ExecStop=/usr/sbin/nft flush ruleset
"""
REDHAT = """[Service]
Type=oneshot
ExecStart=/sbin/nft -f /etc/sysconfig/nftables.conf
ExecReload=/sbin/nft 'flush ruleset; include "/etc/sysconfig/nftables.conf";'
ExecStop=/sbin/nft flush ruleset
"""
NFT, OURS = "/usr/sbin/nft", "/etc/gaudi3-scale/firewall.nft"
INCLUDE = 'include "/etc/gaudi3-scale/firewall.nf[t]"'


def lines(unit: str) -> list[str]:
    return drop_in(unit, NFT, OURS).splitlines()


@pytest.mark.parametrize(
    ("unit", "start", "reload"),
    [
        (DEBIAN, 'include "/etc/nftables.conf"', 'include "/etc/nftables.conf"'),
        (REDHAT, 'include "/etc/sysconfig/nftables.conf"', 'flush ruleset; include "/etc/sysconfig/nftables.conf"'),
    ],
    ids=["Debian", "RHEL"],
)
def test_each_command_empties_and_loads_in_one_step(unit: str, start: str, reload: str) -> None:
    assert lines(unit)[2:8] == [
        "ExecStart=", f"ExecStart={NFT} '{start}; {INCLUDE}'",
        "ExecReload=", f"ExecReload={NFT} '{reload}; {INCLUDE}'",
        "ExecStop=", f"ExecStop={NFT} 'flush ruleset; {INCLUDE}'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "/usr/local/sbin/load-rules", "-/usr/sbin/nft -f /etc/nftables.conf", "/usr/sbin/nft -I /etc -f a.conf",
        "/usr/sbin/nft", "/usr/sbin/nft -f %h/rules", "/usr/sbin/nft -f $RULES", "/usr/sbin/nft 'unclosed",
        "/usr/sbin/nft flush ruleset\nExecStart=/usr/sbin/nft -f /etc/nftables.conf",
    ],
)  # fmt: skip
def test_a_command_of_another_form_stays_and_the_table_is_loaded_after_it(command: str) -> None:
    found = lines(f"[Service]\nExecStart={command}\n")
    assert not [line for line in found if line.startswith("ExecStart=")]
    assert found[-2:] == [f"ExecStartPost=-{NFT} -f {OURS}", f"ExecStopPost=-{NFT} -f {OURS}"]


def test_a_unit_is_read_as_systemd_reads_it() -> None:
    unit = "[Install]\nExecStart=/a\n[Service]\nExecStart=/b\nExecStart=\n# ExecStart=/c\n ExecStart = /d \\\n  e\n"
    assert commands(unit) == {"ExecStart": ["/d    e"]} and commands("") == {}


def test_a_drop_in_of_the_site_has_the_last_word() -> None:
    assert sorted(["override.conf", "10-site.conf", DROP_IN.rpartition("/")[2]])[0] == DROP_IN.rpartition("/")[2]


@pytest.mark.parametrize("path", ["/etc/a b.nft", "relative.nft", "/etc/a'b.nft", "/etc/%h.nft"])
def test_a_path_that_a_unit_cannot_have_is_refused(path: str) -> None:
    with pytest.raises(Refusal, match="cannot be written into a unit"):
        drop_in(DEBIAN, NFT, path)
