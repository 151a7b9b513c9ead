"""gaudi_firewall: the file, the table, and what is done where nft refuses or is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_firewall

CLUSTER = {"name": "cluster", "ports": ["29400"], "sources": ["10.0.0.1"]}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """An nft that keeps its table in a file, and logs what it was asked."""
    program = tmp_path / "nft"
    program.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/calls
[ -e {tmp_path}/refuses ] && {{ cat > /dev/null; echo 'Error: Could not process rule' >&2; exit 1; }}
case "$*" in
"-c -f -") cat > /dev/null ;;
"-f -") cat > {tmp_path}/table ;;
"-j list table inet gaudi3_scale")
    [ -e {tmp_path}/table ] || {{ echo 'Error: No such file or directory' >&2; exit 1; }}
    {sys.executable} -c 'import json, sys; print(json.dumps({{"nftables": [{{"metainfo": {{"version": "1"}}}}, *[
        {{"rule": {{"chain": "input", "handle": number, "expr": line}}}} for number, line in enumerate(sys.stdin)]]}}))
        ' < {tmp_path}/table ;;
delete*) rm {tmp_path}/table ;;
esac
"""
    )
    program.chmod(0o755)
    return {
        "path": str(tmp_path / "etc/firewall.nft"),
        "nft_executable": str(program),
        "groups": [CLUSTER],
        "unit_folders": [str(tmp_path / "units"), str(tmp_path / "lib")],
        "systemctl_executable": "true",
    }


def test_it_comes_and_goes(options: dict[str, Any], run_module: Any, tmp_path: Path) -> None:
    foretold = run_module(gaudi_firewall, check=True, **options)
    assert foretold["changed"] and not Path(options["path"]).exists() and not (tmp_path / "table").exists()
    done = run_module(gaudi_firewall, **options)
    assert done.get("diff") == foretold["diff"], done
    assert Path(options["path"]).read_text() == (tmp_path / "table").read_text()[:-1]
    assert run_module(gaudi_firewall, **options)["changed"] is False
    assert run_module(gaudi_firewall, state="absent", **options)["changed"] is True
    assert not Path(options["path"]).exists() and not (tmp_path / "table").exists()
    assert run_module(gaudi_firewall, state="absent", **options)["changed"] is False


def test_a_table_that_somebody_has_changed_is_told_and_mended(
    options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    run_module(gaudi_firewall, **options)
    table, record = tmp_path / "table", tmp_path / "etc/firewall.loaded.json"
    good = table.read_text()
    for live in (good.replace("10.0.0.1,", "0.0.0.0/0,"), good + "accept\n", good.replace('"lo"', '"eth0"'), ""):
        table.write_text(live)
        foretold = run_module(gaudi_firewall, check=True, **options)
        assert table.read_text() == live and foretold["done"] == ["table"]
        (diff,) = foretold["diff"]
        assert diff["before_header"] == "table inet gaudi3_scale" and diff["before"] != diff["after"]
        done = run_module(gaudi_firewall, **options)
        assert (done["changed"], done["diff"], table.read_text()) == (True, foretold["diff"], good)
    for text in (None, "no record", record.read_text().replace('"version": "1"', '"version": "0.9"')):
        record.unlink()
        if text is not None:
            record.write_text(text)
        assert run_module(gaudi_firewall, **options)["done"] == ["table"], "what cannot be compared is loaded again"
    assert run_module(gaudi_firewall, **options)["changed"] is False


def test_nftables_service_gets_its_drop_in_and_loses_it(
    options: dict[str, Any], run_module: Any, tmp_path: Path
) -> None:
    calls, systemctl = tmp_path / "systemctl.log", tmp_path / "systemctl"
    systemctl.write_text(
        f"#!/bin/sh\necho $1 >> {calls}\n[ -e {tmp_path}/stale ] && echo NeedDaemonReload=yes || true\n"
    )
    systemctl.chmod(0o755)
    options["systemctl_executable"] = str(systemctl)
    drop_in = tmp_path / "units/nftables.service.d/00-gaudi3-scale.conf"
    run_module(gaudi_firewall, **options)
    assert not drop_in.exists() and not calls.exists(), "without nftables.service there is nothing to keep"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/nftables.service").write_text("[Service]\nExecStart=/sbin/nft -f /etc/nftables.conf\n")
    assert run_module(gaudi_firewall, check=True, **options)["done"] == ["service"]
    assert not drop_in.exists() and not calls.exists()
    assert run_module(gaudi_firewall, **options)["done"] == ["service"]
    assert "ExecStart=" in drop_in.read_text() and calls.read_text() == "daemon-reload\n"
    assert run_module(gaudi_firewall, **options)["changed"] is False
    (tmp_path / "stale").touch()  # as after a run that ended before systemd had read it
    assert run_module(gaudi_firewall, **options)["done"] == ["service"]
    (tmp_path / "stale").unlink()
    assert calls.read_text().split() == ["daemon-reload", "show", "show", "daemon-reload"]
    removed = run_module(gaudi_firewall, state="absent", **options)
    assert removed["changed"] and not drop_in.parent.exists() and calls.read_text().endswith("daemon-reload\n")
    assert not list((tmp_path / "etc").iterdir()), "the record goes, too"
    assert run_module(gaudi_firewall, state="absent", **options)["changed"] is False


def test_what_nft_refuses_is_not_written(options: dict[str, Any], run_module: Any, tmp_path: Path) -> None:
    (tmp_path / "refuses").touch()
    for check in (True, False):
        assert run_module(gaudi_firewall, check=check, **options)["msg"] == (
            "nft does not take the ruleset (Error: Could not process rule): install nftables, and look whether this "
            "kernel has nf_tables."
        )
    assert not Path(options["path"]).exists()


def test_nft_may_be_missing_in_check_mode_alone(options: dict[str, Any], run_module: Any, tmp_path: Path) -> None:
    options["nft_executable"] = str(tmp_path / "none")
    assert run_module(gaudi_firewall, check=True, **options)["loaded"] is True
    assert "none does not exist): install nftables" in run_module(gaudi_firewall, **options)["msg"]
    assert run_module(gaudi_firewall, state="absent", **options)["changed"] is False
