"""gaudi_firewall: the file, the table, and what is done where nft refuses or is missing."""

from __future__ import annotations

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
list*) cat {tmp_path}/table ;;
delete*) rm {tmp_path}/table ;;
esac
"""
    )
    program.chmod(0o755)
    return {"path": str(tmp_path / "etc/firewall.nft"), "nft_executable": str(program), "groups": [CLUSTER]}


def test_it_comes_and_goes(options: dict[str, Any], run_module: Any, tmp_path: Path) -> None:
    foretold = run_module(gaudi_firewall, check=True, **options)
    assert foretold["changed"] and not Path(options["path"]).exists() and not (tmp_path / "table").exists()
    assert run_module(gaudi_firewall, **options)["diff"] == foretold["diff"]
    assert Path(options["path"]).read_text() == (tmp_path / "table").read_text()[:-1]
    assert run_module(gaudi_firewall, **options)["changed"] is False
    assert run_module(gaudi_firewall, state="absent", **options)["changed"] is True
    assert not Path(options["path"]).exists() and not (tmp_path / "table").exists()
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
