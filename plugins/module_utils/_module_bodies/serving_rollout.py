# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A release brought to the replicas of a node, one after another; with the one before it where it does not start."""

from __future__ import annotations

import grp
import hashlib
import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from .._files import make_folder, write_file
from .._host import service_state
from .._printable import printable
from .._refusal import Refusal
from .._serving import balancer, reach, releases, request, unit
from .._serving.folder import Model
from .._serving.releases import CANARY, CURRENT, PREVIOUS, Releases
from . import serving_recipes, serving_registry, written
from .serving_services import Systemd, record, remove_replica, replicas_there

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class Rollout:
    """One run on one node."""

    def __init__(
        self,
        module: AnsibleModule,
        wanted: request.Request,
        model: Optional[Model],
        origin: Optional[serving_registry.Registered],
        plan: Callable[[bool], balancer.Balancer],
    ) -> None:
        self._module, self._wanted, self._model, self._origin, self._plan = module, wanted, model, origin, plan
        self._options = module.params
        self._releases = Releases(self._options["root"])
        self._systemd = Systemd(module)
        self._diffs: list[dict[str, Any]] = []
        self._units: dict[int, str] = {}

    def run(self) -> dict[str, Any]:
        """Files, release, balancer, replicas, in this order."""
        numbers = [*range(1, len(self._options["ports"]) + 1)]
        self._folders(numbers)
        before = self._releases.before()
        target = releases.refuse_rollback(self._releases) if self._options["rollback"] else self._release()
        links = self._links(before, target)
        canary = bool(links[CANARY])
        fresh = self._files(numbers, canary)
        if self._model is not None:
            key = request.recipe_key(self._wanted, self._model)
            serving_recipes.prepare(self._module, key, len(numbers), self._account())
        self._show_links(before, links)
        self._move(before, links)
        if canary:
            self._balancer(fresh)
        said = self._replicas(numbers, before, links)
        if not canary:
            # After the replicas: until all serve the same, the canary keeps its share.
            self._balancer(fresh)
        if not self._module.check_mode:
            self._releases.end()
        removed = self._tidy(len(numbers), links)
        changed = bool(self._diffs or self._systemd.done or links != before or removed)
        return {
            "changed": changed,
            "diff": self._diffs,
            "done": self._systemd.done,
            "release": links[CANARY] or links[CURRENT],
            "current": links[CURRENT],
            "previous": links[PREVIOUS],
            "canary": links[CANARY],
            "removed": removed,
            "said": said,
        }

    # The release

    def _release(self) -> str:
        """The release of what is asked for, made where it is not there."""
        if self._model is None:
            raise Refusal("No model is given.")
        digest = request.digest_of(self._wanted, self._model)
        # The one that runs, where it is the same; so that a run after a rollback changes nothing twice.
        for link in (CURRENT, CANARY):
            known = self._releases.behind(link)
            if self._releases.facts(known).get("digest") == digest:
                return known
        found = self._releases.with_digest(digest)
        if found:
            return found
        name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{digest[:8]}"
        source = self._origin.reference if self._origin else self._model.path
        shown = f"model: {source}\nreplicas: {len(self._options['ports'])}\n"
        self._diffs.append(
            {
                "before": "",
                "after": shown,
                "before_header": "no release",
                "after_header": self._releases.folder_of(name),
            }
        )
        if not self._module.check_mode:
            key = request.recipe_key(self._wanted, self._model)
            facts = {
                "digest": digest,
                "model": source,
                "identity": self._model.identity,
                "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "engine": self._wanted.engine,
                "replicas": request.replicas_of(self._wanted, key),
                "recipes": key.name if key else "",
                **(self._origin.facts() if self._origin else {}),
            }
            make_folder(os.path.join(self._options["root"], "releases"), 0o755)
            copy = self._copy if self._wanted.copy else None
            self._releases.make(name, self._model, facts, self._group(), copy)
        return name

    def _copy(self, source: str, target: str) -> None:
        """One file; a file system that can shares its blocks."""
        with reach.opened(*os.path.split(source)) as handle:
            argv = ["cp", "--reflink=auto", "--no-preserve=all", "--", f"/proc/self/fd/{handle}", target]
            code, output, errors = self._module.run_command(argv, pass_fds=[handle])
        if code != 0:
            said = printable((errors.strip() or output.strip() or "nothing was said").splitlines()[-1], 300)
            raise Refusal(f"{printable(source)} cannot be copied to {target} ({said}): see to it, and run again.")

    def _links(self, before: dict[str, str], target: str) -> dict[str, str]:
        """Where the links are to lead."""
        current = before[CURRENT]
        if self._options["canary"] and current and target != current:
            return {CURRENT: current, PREVIOUS: before[PREVIOUS], CANARY: target}
        if target == current:
            return {CURRENT: current, PREVIOUS: before[PREVIOUS], CANARY: ""}
        # A rollback leaves nothing to go back to: a second one would be the way forward.
        return {CURRENT: target, PREVIOUS: "" if self._options["rollback"] else current, CANARY: ""}

    def _show_links(self, before: dict[str, str], links: dict[str, str]) -> None:
        """What is served instead of what."""
        if links == before:
            return
        texts = [
            "".join(f"{name}: {each[name]}\n" for name in releases.LINKS if each[name]) for each in (before, links)
        ]
        root = self._options["root"]
        self._diffs.append({"before": texts[0], "after": texts[1], "before_header": root, "after_header": root})

    def _move(self, before: dict[str, str], links: dict[str, str]) -> None:
        if self._module.check_mode:
            return
        now = self._releases.links()
        if links not in (now, before):
            self._releases.begin(before)
        for name, release in links.items():
            if now[name] != release or (not release and os.path.islink(self._releases.link(name))):
                self._releases.point(name, release)

    # Files

    def _folders(self, numbers: list[int]) -> None:
        """Folders that replicas may write, and those above them, which they may not."""
        if self._module.check_mode:
            return
        root, (uid, group) = self._options["root"], self._account()
        make_folder(root, 0o755)
        for number in numbers:
            place = os.path.join(root, f"replica-{number}")
            make_folder(place, 0o750)
            os.chown(place, uid, group)

    def _files(self, numbers: list[int], canary: bool) -> written.Written:
        """All files; what is other than it was is returned."""
        options = self._options
        settings = options["folder"]
        contained = options["engine"] == "vllm-gaudi"
        files = [
            _file(os.path.join(options["program_folder"], name), content)
            for name, content in sorted(options["programs"].items())
        ]
        for number in numbers:
            place = f"{settings}/replica-{number}.json"
            files.append(_file(place, json.dumps(self._settings(number, number == len(numbers)), indent=1) + "\n"))
            shown = unit.Replica(
                number,
                place,
                options["start_seconds"],
                options["drain_seconds"],
                options["python"],
                contained,
                options["user"],
                options["program_folder"],
                os.path.join(options["root"], f"replica-{number}"),
            )
            path = os.path.join(options["unit_folder"], unit.unit_of(number))
            self._units[number] = unit.replica_unit(options["head"], shown)
            files.append(_file(path, self._units[number]))
        result = written.write(self._module, files, [settings])
        own = [
            _file(
                os.path.join(options["unit_folder"], unit.BALANCER), unit.balancer_unit(options["head"], self._proxy())
            ),
            _file(f"{settings}/keys", f"{options['key_sha256']}\n", options["balancer_user"], "0640", secret=True),
            _file(
                f"{settings}/haproxy.cfg",
                options["head"] + balancer.configuration(self._plan(canary)),
                validate=f"{options['haproxy_executable']} -c -q -f %s",
            ),
        ]
        fresh = written.write(self._module, own, [])
        self._diffs += result.diffs + fresh.diffs
        if result.diffs or fresh.diffs:
            self._systemd.do("daemon-reload")
        return fresh

    def _proxy(self) -> unit.Proxy:
        options = self._options
        paths = (options["haproxy_executable"], options["folder"], options["runtime_folder"])
        return unit.Proxy(*paths, options["balancer_user"], options["user"])

    def _account(self) -> tuple[int, int]:
        """Numbers of the service's user and group, for whom folders are made; -1 in a dry run before they are there."""
        uid = request.account(self._options["user"])[0]
        return uid, -1 if self._module.check_mode else self._group()

    def _group(self) -> int:
        try:
            return grp.getgrnam(self._options["user"]).gr_gid
        except KeyError:
            raise Refusal(
                f"There is no group {self._options['user']} on this host: run the whole role again."
            ) from None

    def _settings(self, number: int, last: bool) -> dict[str, Any]:
        """What the replica's program reads; the rest is its release's."""
        link = self._releases.link
        return {
            "name": f"replica-{number}",
            "links": [*([link(CANARY)] if last else []), link(CURRENT)],
            "state": os.path.join(self._options["root"], f"replica-{number}", "state.json"),
            "balancer": {
                "socket": f"{self._options['runtime_folder']}/admin.sock",
                "server": f"{balancer.BACKEND}/replica-{number}",
            },
            "start_seconds": self._options["start_seconds"],
            "drain_seconds": self._options["drain_seconds"],
        }

    # Services

    def _balancer(self, fresh: written.Written) -> None:
        """Run it with its files: it is read again without losing a connection."""
        found = self._systemd.look(unit.BALANCER)
        if not found.enabled:
            self._systemd.do("enable", unit.BALANCER)
        if not found.running:
            verb = "start"
        elif any(unit.BALANCER in diff["after_header"] for diff in fresh.diffs):
            verb = "restart"
        else:
            newest = service_state.youngest(unit.read_by_balancer(self._options["folder"]), time.time())
            since = found.changed + time.time() - time.monotonic()
            verb = "reload" if fresh.diffs or since < newest else ""
        if verb and not self._systemd.do(verb, unit.BALANCER):
            raise Refusal(
                f"systemd could not {verb} {unit.BALANCER}: see 'journalctl -u {unit.BALANCER}', and run again."
            )

    def _replicas(self, numbers: list[int], before: dict[str, str], links: dict[str, str]) -> str:
        """Start again, one after another, what does not run with its release and its files."""
        started = self._started()
        for number in numbers:
            name = unit.unit_of(number)
            follows = links[CANARY] if number == len(numbers) and links[CANARY] else links[CURRENT]
            wanted = self._fingerprint(number, follows)
            found = self._systemd.look(name)
            if not found.enabled:
                self._systemd.do("enable", name)
            if found.running and started.get(name) == wanted:
                continue
            if not self._systemd.do("restart", name):
                raise Refusal(self._back(number, before, links))
            started[name] = wanted
            self._put(started)
        count = "1 replica" if len(numbers) == 1 else f"{len(numbers)} replicas"
        name = self._releases.name_of(links[CURRENT]) or self._wanted.served_name
        would = self._module.check_mode and bool(self._systemd.done or links != before)
        served, has = ("would be served", "would have") if would else ("is served", "has")
        return f"{name} {served} by {count} with {self._known(links[CURRENT])}." + (
            f" {unit.unit_of(len(numbers))} {has} the canary {self._known(links[CANARY])}." if links[CANARY] else ""
        )

    def _known(self, release: str) -> str:
        """A release, with the version of the registry and the checkpoint that it is of."""
        facts = self._releases.facts(release)
        source, checkpoint = (printable(facts.get(each) or "") for each in ("source", "checkpoint_sha256"))
        return f"{release} ({source}{f', checkpoint {checkpoint[:12]}' if checkpoint else ''})" if source else release

    def _back(self, number: int, before: dict[str, str], links: dict[str, str]) -> str:
        """Serve the version before again; why the new one does not start, in one sentence."""
        name = unit.unit_of(number)
        why = self._why(number) or f"see 'journalctl -u {name}'"
        wrong = links[CANARY] or links[CURRENT]
        first = f"{name} did not start with {wrong}: {printable(why, 600).rstrip('.')}."
        if not before[CURRENT]:
            # A version that never ran is none to go back to, and none to start at boot.
            self._move(before, before)
            self._releases.end()
            self._systemd.do("stop", name)
            self._systemd.do("disable", name)
            return f"{first} There was no version before: correct the model or its settings, and run again."
        self._move(before, before)
        started = self._started()
        for each in range(1, number + 1):
            follows = before[CANARY] if each == len(self._options["ports"]) and before[CANARY] else before[CURRENT]
            fingerprint = self._fingerprint(each, follows)
            if each != number and started.get(unit.unit_of(each)) == fingerprint:
                continue
            if not self._systemd.do("restart", unit.unit_of(each)):
                return f"{first} {unit.unit_of(each)} does not start with {before[CURRENT]} either: see its journal."
            started[unit.unit_of(each)] = fingerprint
        self._put(started)
        self._releases.end()
        if bool(before[CANARY]) != bool(links[CANARY]):
            self._balancer(self._files([*range(1, len(self._options["ports"]) + 1)], bool(before[CANARY])))
        return f"{first} {before[CURRENT]} is served as before: correct the model or its settings, and run again."

    def _why(self, number: int) -> str:
        try:  # what the service has written: a pipe in its place is not waited for
            handle = os.open(self._settings(number, False)["state"], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with open(handle, encoding="utf-8") as stream:
                return str(json.load(stream).get("ended", ""))
        except (OSError, ValueError, AttributeError):
            return ""

    def _started(self) -> dict[str, str]:
        try:
            with open(record(self._options), encoding="utf-8") as stream:
                found = json.load(stream)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _put(self, started: dict[str, str]) -> None:
        if not self._module.check_mode:
            write_file(record(self._options), json.dumps(started, indent=1) + "\n")

    def _fingerprint(self, number: int, release: str) -> str:
        """Of what a replica runs with: its release, its unit, its settings and its programs."""
        digest = hashlib.sha256(release.encode())
        digest.update(json.dumps([self._settings(number, False), sorted(self._options["programs"].items())]).encode())
        digest.update(self._units[number].encode())
        return digest.hexdigest()

    # What is left over

    def _tidy(self, replicas: int, links: dict[str, str]) -> list[str]:
        """Remove replicas beyond their number, and releases beyond those that are kept."""
        removed = []
        for number in replicas_there(self._options):
            if number > replicas:
                removed += remove_replica(self._module, self._systemd, number)
        gone = self._releases.superfluous(self._options["keep"], {*links.values()})
        removed += serving_recipes.prune(self._module, self._releases, gone, replicas)
        for name in gone:
            removed.append(self._releases.folder_of(name))
            if not self._module.check_mode:
                self._releases.remove(name)
        return removed


def _file(path: str, content: str, group: str = "", mode: str = "0644", **more: Any) -> dict[str, Any]:
    usual = {"restart": True, "reload": False, "secret": False, "validate": "", "complaint": ""}
    return {**usual, "path": path, "content": content, "group": group, "mode": mode, **more}
