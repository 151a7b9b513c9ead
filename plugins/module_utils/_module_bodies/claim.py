# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_claim does: a service's files are the collection's, or somebody else's with consent, or left alone."""

from __future__ import annotations

import copy
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

from .._host import arguments, claims
from .._printable import few, printable
from .._refusal import Refusal
from . import listener

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


_CLUSTER = {"authority": {"type": "str", "default": ""}, "nodes": {"type": "dict", "default": {}}}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "service": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["claimed", "recorded", "absent"], "default": "claimed"},
    "files": {"type": "list", "elements": "path", "default": []},
    "package": {"type": "str", "default": ""},
    "unit": {"type": "str", "default": ""},
    "listens": {"type": "dict", "options": listener.LISTENS},
    "take_over": {"type": "bool", "default": False},
    "variable": {"type": "str", "required": True},
    "cluster": {"type": "dict", "options": _CLUSTER},
    "keep": {"type": "dict", "default": {}},
    "arguments_file": {"type": "path", "default": ""},
    "data": {"type": "path", "default": ""},
    "records": {"type": "path", "default": "/etc/gaudi3-scale/written"},
    "unit_folders": {"type": "list", "elements": "path", "default": list(claims.UNIT_FOLDERS)},
    "dpkg_query_executable": {"type": "str", "default": "dpkg-query"},
    "rpm_executable": {"type": "str", "default": "rpm"},
}
#: As an option of gaudi_service, which has the unit and its port itself.
OPTION = {name: spec for name, spec in ARGUMENT_SPEC.items() if name not in ("state", "listens", "unit", "keep")}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Claim the files, record what was written, or remove what was."""
    result: dict[str, Any] = {}
    try:
        result = act(module, module.params)
    except Refusal as refusal:
        module.fail_json(msg=str(refusal))
    return result


def act(module: AnsibleModule, options: dict[str, Any]) -> dict[str, Any]:
    """The same with these options, for another module; Refusal where it will not do it."""
    path = os.path.join(options["records"], f"{options['service']}.json")
    record = claims.read(path)
    _refuse_other_cluster(options, record)
    if options["state"] == "absent":
        return _remove(module, options, path, record)
    if options["state"] == "recorded":
        return _record(module, options, path, record or claims.Record())
    return _claim(module, options, path, record)


def _refuse_other_cluster(options: dict[str, Any], record: claims.Record | None) -> None:
    cluster = options["cluster"] or {"authority": "", "nodes": {}}
    others = claims.other_cluster(record, cluster["authority"], cluster["nodes"])
    if others:
        place = os.path.join(options["records"], f"{options['service']}.json")
        raise Refusal(
            f"This host's {options['service']} watches {printable(few(others, 4))} of another inventory, and none of "
            f"{printable(', '.join(list(cluster['nodes'])[:4]))}: give this cluster a monitoring host of its "
            f"own. If the other cluster is gone, remove it with its inventory and remove.yml, or delete {place} there."
        )


def _claim(module: AnsibleModule, options: dict[str, Any], path: str, record: claims.Record | None) -> dict[str, Any]:
    """Refuse what somebody else wrote, or keep a backup of each such file and take it over."""
    installed, packaged = _packaged(module, options)
    found = claims.foreign(options["files"], record, packaged)
    known = claims.foreign_units(options["unit"], options["unit_folders"]) if options["unit"] else []
    # A unit that the role writes is one of its files.
    units = [name for name in known if name not in options["files"]]
    if (found or units) and not options["take_over"]:
        names = printable(", ".join([*found, *units]))
        raise Refusal(
            f"{names} on this host {'was' if len(found + units) == 1 else 'were'} not written by this collection, or "
            f"changed since: set {options['variable']}_take_over=true to have it replaced, which keeps a dated backup "
            "beside each file, move it away, or take this host out of its group."
        )
    if options["listens"] and options["unit"]:
        listener.refuse_foreign(module, options["unit"], options["listens"])
    new = record or claims.Record(installed_before=_in_use(options, installed, [*found, *units]))
    running = _arguments(options, units)
    if units or options["arguments_file"] in found or any(kept in found for kept in options["keep"]):
        new.arguments = running or new.arguments
    taken = [*found, *units]
    changed = bool(taken)
    result = {
        "taken_over": taken,
        "arguments": new.arguments,
        "running": running,
        "in_use": new.installed_before,
        "kept": _kept(options, found),
    }
    if not module.check_mode:
        backups = {name: _back_up(name) for name in taken}
        for source, place in options["keep"].items():
            if source in found:
                shutil.copy2(source, place)
        for name in units:
            os.unlink(name)
        new.backups = {**backups, **new.backups}
        new.files.update({name: claims.digest(name) for name in options["files"]})
        new.pending = sorted({*new.pending, *options["files"]})
        claims.write(path, new)
    result["backups"] = new.backups
    return {"changed": changed, **result}


def _in_use(options: dict[str, Any], installed: bool, found: list[str]) -> bool:
    """Whether the service was there, with something of the site's, before the collection came."""
    data = options["data"]
    return installed and (bool(found) or bool(data and os.path.isdir(data) and os.listdir(data)))


def _back_up(path: str) -> str:
    """Keep a file, or a link, beside itself under a dated name."""
    place = f"{path}.{time.strftime('%Y-%m-%d@%H:%M:%S')}~"
    shutil.copy2(path, place, follow_symlinks=False)
    return place


def _kept(options: dict[str, Any], found: list[str]) -> dict[str, str]:
    """The texts of what the site goes on with: out of its own file, or out of where that was kept."""
    texts = {}
    for source, place in options["keep"].items():
        chosen = source if source in found else place
        if os.path.exists(chosen):
            with open(chosen, encoding="utf-8", errors="replace") as file:
                texts[source] = file.read()
    return texts


def _arguments(options: dict[str, Any], units: list[str]) -> list[str]:
    """The arguments that the service is started with now: those of the site's own unit, or of the file."""
    if not options["arguments_file"]:
        return []
    try:
        with open(options["arguments_file"], encoding="utf-8", errors="replace") as file:
            given = arguments.variables(file.read())
    except OSError:
        given = {}
    command = arguments.command_of(units, given)
    if not command:
        return arguments.words_of(given.get(arguments.VARIABLE, ""))
    program, words = command[0], command[1:]
    if words and not words[0].startswith("--"):
        raise Refusal(
            f"{printable(', '.join(units))} on this host starts {printable(program)} with {printable(words[0], 60)!r} "
            f"as its first argument, so the arguments of {options['service']} cannot be known: write them into "
            f'{options["arguments_file"]} as {arguments.VARIABLE}="...", move the unit away, and run again.'
        )
    return words


def _packaged(module: AnsibleModule, options: dict[str, Any]) -> tuple[bool, dict[str, str]]:
    """Whether the package is installed, and the MD5 sums of its files of configuration as it brought them."""
    if not options["package"]:
        return False, {}
    name = options["package"].partition("=")[0]
    dpkg = module.get_bin_path(options["dpkg_query_executable"])
    if dpkg:
        form = "${db:Status-Status}\n${Conffiles}\n"
        code, output, _errors = module.run_command([dpkg, "--show", "--showformat", form, name])
        status, *rest = output.splitlines() or [""]
        cells = [line.split() for line in rest]
        return code == 0 and status == "installed", {line[0]: line[1] for line in cells if len(line) >= 2}
    rpm = module.get_bin_path(options["rpm_executable"])
    if rpm is None or module.run_command([rpm, "--query", name])[0] != 0:
        return False, {}
    listed = module.run_command([rpm, "--query", "--configfiles", name])[1].split()
    verified = module.run_command([rpm, "--verify", "--nodeps", "--noscripts", name])[1]
    changed = {line.split()[-1] for line in verified.splitlines() if line[2:3] == "5"}
    return True, {path: claims._md5(path) for path in listed if path not in changed}


def _record(module: AnsibleModule, options: dict[str, Any], path: str, record: claims.Record) -> dict[str, Any]:
    """Say in the record what has been written, and whether it says that already."""
    before = copy.deepcopy(vars(record))
    cluster = options["cluster"] or {"authority": record.authority, "nodes": record.nodes}
    record.files.update({name: claims.digest(name) for name in options["files"]})
    # Where a part of the files was written, the others are still to come.
    record.pending = [name for name in record.pending if name not in options["files"]]
    record.files = {name: known for name, known in record.files.items() if known or name in record.pending}
    record.authority = cluster["authority"] or record.authority
    record.nodes = dict(cluster["nodes"]) or record.nodes
    same = os.path.exists(path) and before == vars(record)
    if not module.check_mode:
        claims.write(path, record)
    return {"changed": False, "backups": record.backups, "recorded": same}


def _remove(module: AnsibleModule, options: dict[str, Any], path: str, record: claims.Record | None) -> dict[str, Any]:
    """Remove what was written, leave what somebody changed since, and put back what was taken over."""
    if record is None:
        # Nothing was written here, so that a package which is there is the site's.
        installed, _files = _packaged(module, options)
        if installed:
            module.warn(
                f"{path} is not there, so the package {options['package'].partition('=')[0]} was not installed by this "
                "collection and stays: remove it by hand if it is to go."
            )
        return {"changed": False, "removed": [], "left": [], "restored": [], "in_use": installed}
    own = [*options["keep"].values()]
    ours, left = claims.absent(record)
    removed = [*ours, *(name for name in own if os.path.exists(name)), path]
    back = [name for name, kept in record.backups.items() if os.path.lexists(kept) and name not in left]
    if not module.check_mode:
        for name in removed:
            os.unlink(name)
        claims.restored({name: record.backups[name] for name in back})
    if left:
        module.warn(f"{', '.join(left)} stayed: somebody changed it after it was written.")
    return {
        "changed": True,
        "removed": [name for name in removed if name not in back],
        "left": left,
        "restored": back,
        "in_use": record.installed_before,
    }
