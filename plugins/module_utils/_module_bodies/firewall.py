# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_firewall does: the table that closes ports, its file, and nftables.service, which is not to empty it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Optional

from .._files import ensure_file
from .._host import firewall, firewall_table, nftables_service
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "groups": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "ports": {"type": "list", "elements": "str", "required": True},
            "sources": {"type": "list", "elements": "str", "required": True},
        },
    },
    "open_ports": {"type": "list", "elements": "str", "default": []},
    "path": {"type": "path", "default": "/etc/gaudi3-scale/firewall.nft"},
    "nft_executable": {"type": "path", "default": "/usr/sbin/nft"},
    "unit_folders": {
        "type": "list",
        "elements": "path",
        "default": [
            "/etc/systemd/system",
            "/run/systemd/system",
            "/usr/local/lib/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
        ],
    },
    "systemctl_executable": {"type": "path", "default": "systemctl"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Have the table and its file, or neither."""
    return _present(module) if module.params["state"] == "present" else _absent(module)


def _nft(module: AnsibleModule, *arguments: str, data: Optional[str] = None) -> tuple[int, str, str]:
    """Run nft; without the program, a failure."""
    program = module.params["nft_executable"]
    if not os.path.exists(program):
        return 1, "", f"{program} does not exist"
    code, output, errors = module.run_command([program, *arguments], data=data)
    return code, output, errors


def _listing(module: AnsibleModule) -> Optional[firewall_table.Listing]:
    """The table as it is now; None where there is none."""
    code, output, _errors = _nft(module, *firewall_table.list_argv("")[1:])
    return firewall_table.parse(output) if code == 0 else None


def _load(module: AnsibleModule, text: str, *, check: bool = False) -> None:
    """Load a ruleset, or only ask nft whether it could."""
    code, output, errors = _nft(module, *(["-c"] if check else []), "-f", "-", data=text)
    if code != 0:
        said = " ".join((errors or output).split())[:300]
        module.fail_json(
            msg=f"nft does not take the ruleset ({said}): install nftables, and look whether this kernel has nf_tables."
        )


def _present(module: AnsibleModule) -> dict[str, Any]:
    """Have the file, the table, and the drop-in that keeps it."""
    options = module.params
    nft, path = options["nft_executable"], options["path"]
    groups = [firewall.Group(each["name"], each["ports"], each["sources"]) for each in options["groups"]]
    unit = _unit(options["unit_folders"])
    try:
        text = firewall.ruleset(options["open_ports"], groups)
        drop_in = None if unit is None else nftables_service.drop_in(unit, nft, path)
    except Refusal as error:
        module.fail_json(msg=str(error))
    digest, live = firewall.digest(text), _listing(module)
    record = firewall_table.read_record(firewall_table.record_path(path))
    known = record if record is not None and record.ruleset == digest else None
    missing = live is None or known != firewall_table.Record(nft, digest, live)
    if missing and (not module.check_mode or os.path.exists(nft)):
        _load(module, text, check=True)
    file = ensure_file(module, path, text)
    if missing and not module.check_mode:
        _load(module, text)
        _keep(module, digest)
    service = _keep_service(module, drop_in)
    done = [*(["file"] if file else []), *(["table"] if missing else []), *(["service"] if service is not None else [])]
    table = _table_diff(live, known.listing) if missing and not file and known else None
    diffs = [diff for diff in (file, table, service) if diff]
    return {"changed": bool(done), "done": done, "loaded": missing, "diff": diffs}


def _keep(module: AnsibleModule, digest: str) -> None:
    """Note what nft lists now that the ruleset was loaded."""
    options = module.params
    listing = _listing(module)
    if listing is None:
        module.fail_json(
            msg=f"{options['nft_executable']} has loaded the table {firewall_table.TABLE} and does not list it as JSON "
            "('nft -j list table'): install the distribution's nftables."
        )
    else:
        record = firewall_table.Record(options["nft_executable"], digest, listing)
        ensure_file(module, firewall_table.record_path(options["path"]), firewall_table.record_text(record))


def _table_diff(live: Optional[firewall_table.Listing], wanted: firewall_table.Listing) -> dict[str, str]:
    """What somebody has changed in the table."""
    sides = {"before": live.lines if live else (), "after": wanted.lines}
    name = f"table inet {firewall_table.TABLE}"
    return {"before_header": name, "after_header": name, **{key: "\n".join([*each, ""]) for key, each in sides.items()}}


def _unit(folders: list[str]) -> Optional[str]:
    """The text of the distribution's unit; None where it is not installed."""
    for folder in folders:
        try:
            with open(os.path.join(folder, nftables_service.SERVICE), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            continue
    return None


def _keep_service(module: AnsibleModule, text: Optional[str]) -> Optional[dict[str, Any]]:
    """Have the drop-in (None: have none) and systemd know it; the difference, None where nothing was to do."""
    path = os.path.join(module.params["unit_folders"][0], nftables_service.DROP_IN)
    systemctl = module.get_bin_path(module.params["systemctl_executable"])
    diff = ensure_file(module, path, text)
    stale = False
    if diff is None and text is not None and systemctl:
        show = [systemctl, "show", nftables_service.SERVICE, "--property=NeedDaemonReload"]
        stale = module.run_command(show)[1].strip() == "NeedDaemonReload=yes"
    if diff is None and not stale:
        return None
    if not module.check_mode:
        if text is None:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(path))
        if systemctl:
            module.run_command([systemctl, "daemon-reload"], check_rc=True)
    return diff or {}


def _absent(module: AnsibleModule) -> dict[str, Any]:
    """Have none of them."""
    service = _keep_service(module, None)
    live = _listing(module) is not None
    if live and not module.check_mode:
        _nft(module, "delete", "table", "inet", firewall_table.TABLE)
        if _listing(module) is not None:
            module.fail_json(
                msg=f"nft does not delete the table {firewall_table.TABLE}: delete it by hand and run again."
            )
    path = module.params["path"]
    removed = [ensure_file(module, each, None) for each in (path, firewall_table.record_path(path))]
    diffs = [diff for diff in (*removed, service) if diff]
    return {"changed": bool(diffs) or live, "diff": diffs}
