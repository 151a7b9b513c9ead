"""A cluster some of whose nodes are hostile, and what its other nodes had of a run."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ansible_run import PlaybookRun
from . import answers
from .answers import TOKEN
from .cluster import Cluster
from .host import CHECKOUT, Host

GOOD = ("good-1", "good-2")
#: Playbooks that are stopped for all by one node which cannot be asked: nothing has changed by then.
STOPPED_BY_ANY = ("preflight.yml",)
LAST = "Every variable of a node that is none of the hostile ones"
#: What differs from run to run by itself.
_TIMES = re.compile(
    r"(_at|_seconds|_time|elapsed|start|end|delta|now|seconds|cpu|invocation|at|since|until|ansible_date_time|tmpdir|atime|mtime|ctime|inode|boot_id|id|signature|given|valid_until|src|checksum|md5sum|invocation_id|epoch)$|^ansible_(limit|run_tags|skip_tags)$|^ansible_python_interpreter$"
)
_NUMBERS = re.compile(r"\b\d{9,}(\.\d+)?\b|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|/[^ \"']*ansible-tmp[^ \"']*|[0-9a-f]{32,}")
#: The time of a line of the kernel's log.
_KERNEL = re.compile(r"(?m)^\d+,\d+,\d+,(?=-;)")
#: The first line of a paragraph of a letter about all nodes.
_OF_NODES = re.compile(r"(?:(?:good|bad)-\d+(?:, |: ))+")
#: What Ansible says against an answer, not a playbook: of a fact named omit, of keys of its own, whose values it drops,
#: and of bytes that are no text.
_WARNED = re.compile(
    r"\[WARNING\]:\s+Found\s+variable\s+using\s+reserved\s+name\s+['\"]?omit\b"
    r"|\[WARNING\]:\s+Removed\s+unexpected\s+internal\s+key\s+in\s+module\s+return\b"
    r"|\[DEPRECATION\s+WARNING\]:\s+Module\s+\"[\w.]+\"\s+returned\s+non\s+UTF-8\b"
)
_GOOD = """#!/bin/sh
# Puts down what each module prints; once that is known, those that only look print it again.
records={records} asked={asked}
case "$1" in
  */AnsiballZ_*)
    name=${{1##*AnsiballZ_}}; name=${{name%.py}}
    number=0; while ! mkdir "$asked/$name-$number" 2>/dev/null; do number=$((number + 1)); done
    said="$records/$name-$number"
    if [ -e "$records/whole" ]; then
      case " {looks} " in *" $name "*) [ -e "$said" ] && cat "$said" && exit "$(cat "$said.code")" ;; esac
    else
      if {program} "$@" > "$said"; then code=0; else code=$?; fi
      echo $code > "$said.code"
      cat "$said"; exit $code
    fi ;;
esac
exec {program} "$@"
"""
#: Modules that change nothing, and whose answers differ from run to run by what they measure.
LOOKS = "gaudi_doctor_info gaudi_health_info hl_smi_facts gaudi_pci_facts setup gaudi_train_node_info gaudi_node_look"
_HOSTILE = """#!/bin/sh
# Prints the answers that were made for this host, each module's in turn, and the last again and again.
folder={folder}
case "$1" in */AnsiballZ_*) name=${{1##*AnsiballZ_}}; name=${{name%.py}} ;; *) exit 1 ;; esac
number=0; while ! mkdir "$folder/asked-$name-$number" 2>/dev/null; do number=$((number + 1)); done
while [ ! -e "$folder/$name-$number" ]; do
  [ "$number" = 0 ] && echo '{{"failed": true, "msg": "this node does not answer"}}' && exit 1
  number=$((number - 1))
done
cat "$folder/$name-$number"
exit "$(cat "$folder/$name-$number.code")"
"""


@dataclass
class Seen:
    """What the good nodes had of a run, without what is the hostile ones' alone."""

    ended: bool
    results: dict[str, dict[str, list[Any]]]
    variables: dict[str, Any]
    files: dict[str, Any]
    controller: dict[str, Any]
    run: PlaybookRun


def is_foreign(value: Any) -> bool:
    """Whether something speaks of a hostile node."""
    return "bad-" in (value if isinstance(value, str) else json.dumps(value))


def own_part(value: dict[str, Any]) -> dict[str, Any]:
    """A result without what a task for all nodes says of the hostile ones in a text, or in one word for all."""
    kept = dict(value)
    if isinstance(value.get("diff"), (dict, list)):
        kept["diff"] = _own_lines(value["diff"])
    said = value.get("msg")
    if isinstance(said, list) and any(_OF_NODES.match(str(line)) for line in said):
        kept["msg"] = own_letter(said)
    if "due" in value and "decisions" in value:  # of gaudi_healing: whether a round has anything to do
        parts = ("work", "testing", "give_back", "decisions")
        kept["due"] = any(name in json.dumps(value.get(part)) for part in parts for name in GOOD)
        kept["changed"] = any(name in json.dumps(value["decisions"]) for name in GOOD)
    return kept


def own_letter(lines: list[str]) -> list[str]:
    """A letter about all nodes without the paragraphs about hostile ones alone, and without what to do next for all.

    Good nodes may share a paragraph with hostile ones; only they are then named in its first line.
    """
    kept: list[str] = []
    mine = True
    for line in lines:
        if not line.startswith(" "):
            mine = not line.startswith("Next")
        if nodes := _OF_NODES.match(line):
            names = [name for name in GOOD if name in re.findall(r"\w+-\d+", nodes[0])]
            mine = bool(names)
            line = f"{', '.join(names)}: {line[nodes.end() :]}"
        kept += [line] if mine else []
    return kept


def own_rounds(results: list[Any]) -> list[Any]:
    """A task's results on a good node without the rounds in which only hostile ones have something to do.

    There the node's tasks are skipped, and what the controller decides for all names no good node, or is as it was.
    """
    found: list[Any] = []
    for each in results:
        passed = each.get("skipped") is True or "include" in each
        for_all = "_ansible_delegated_vars" in each and not any(name in json.dumps(each) for name in GOOD)
        if not passed and not for_all and (not found or found[-1] != each):
            found.append(each)
    return found


def _own_lines(value: Any) -> Any:
    """The lines of each text that do not speak of a hostile node."""
    if isinstance(value, dict):
        return {key: _own_lines(each) for key, each in value.items()}
    if isinstance(value, list):
        # A diff of several files has its node in the path of each.
        paths = [
            each.get("after_header") or each.get("before_header") if isinstance(each, dict) else "" for each in value
        ]
        return [_own_lines(each) for each, path in zip(value, paths, strict=True) if not is_foreign(str(path))]
    if isinstance(value, str):
        return "".join(line for line in value.splitlines(keepends=True) if not is_foreign(line))
    return value


def own(value: Any, folder: str) -> Any:
    """A value without times and folders, and without the parts that speak of hostile nodes."""
    if isinstance(value, dict):
        value = own_part(value)
        return {
            key: own(each, folder)
            for key, each in sorted(value.items())
            if not _TIMES.search(str(key)) and not is_foreign(key) and not (isinstance(each, str) and is_foreign(each))
            and not (isinstance(each, dict) and is_foreign(str(each.get("node", ""))))
        }  # fmt: skip
    if isinstance(value, list):
        kept = [
            each
            for each in value
            if not (is_foreign(each) if not isinstance(each, dict) else is_foreign(str(each.get("node", ""))))
        ]
        return [own(each, folder) for each in kept]
    if isinstance(value, str):
        return _NUMBERS.sub("N", value.replace(folder, "FOLDER") if folder else value)
    if isinstance(value, float):
        return round(value, 2) if abs(value) < 1e8 else "N"
    return value


class Site:
    """Two good nodes, of which one is faulty, and a number of hostile ones on both sides of them in the inventory."""

    def __init__(self, cluster: Cluster, hostile: int) -> None:
        self.cluster = cluster
        self.marker = cluster.folder / "marker"
        self.kept = cluster.folder.parent / "kept"
        self.records = cluster.folder.parent / "records"
        cluster.allowed = _WARNED
        self.bad = [f"bad-{number}" for number in range(1, hostile + 1)]
        for name in self.bad[: hostile // 2]:
            self._hostile(name)
        for name in GOOD:
            cluster.add(name, *(["gaudi", "gaudi_head"] if name == GOOD[0] else ["gaudi"]), cards=1, trainer=True)
        for name in self.bad[hostile // 2 :]:
            self._hostile(name)

    def _hostile(self, name: str) -> None:
        number = len(self.cluster.variables) + 1
        folder = self.cluster.folder / name
        (folder / "answers").mkdir(parents=True)
        interpreter = folder / "python"
        interpreter.write_text(_HOSTILE.format(folder=shlex.quote(str(folder / "answers"))))
        interpreter.chmod(0o755)
        self.cluster.variables[name] = {
            "ansible_connection": "local",
            "ansible_host": f"10.0.1.{number}",
            "ansible_python_interpreter": str(interpreter),
            "ansible_remote_tmp": str(folder / "tmp"),
        }
        self.cluster.groups.setdefault("gaudi", []).append(name)

    @property
    def good(self) -> dict[str, Host]:
        return {name: self.cluster[name] for name in GOOD}

    def keep(self) -> None:
        """Keep the good nodes and the controller's folder as they are, for :meth:`restore`."""
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.cluster.folder, self.kept, symlinks=True, ignore=shutil.ignore_patterns("modules-*"))

    def restore(self) -> None:
        """Bring both back to what was kept."""
        for path in self.cluster.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(self.kept, self.cluster.folder, symlinks=True, dirs_exist_ok=True)

    def record(self) -> None:
        """From now on what the good nodes' modules print is put down, until :meth:`recorded` is asked."""
        for name, host in self.good.items():
            records, asked, real = self.records / name, host.folder / "asked", host.folder / "python-real"
            records.mkdir(parents=True)
            asked.mkdir()
            host.interpreter.rename(real)
            values = {"records": records, "asked": asked, "program": real}
            host.interpreter.write_text(
                _GOOD.format(looks=LOOKS, **{key: shlex.quote(str(value)) for key, value in values.items()})
            )
            host.interpreter.chmod(0o755)

    def recorded(self, name: str) -> dict[str, dict[str, Any]]:
        """The true answers of a good node: those of each module in their order."""
        (self.records / name / "whole").touch()
        found = {}
        for path in sorted((self.records / name).iterdir()):
            if path.suffix != ".code" and path.name != "whole":
                found[path.name] = json.loads(path.read_text())
        return found

    def arm(self, seed: str, victims: Sequence[str] = (), harmless: Iterable[str] = ()) -> dict[str, list[str]]:
        """Give each hostile node its answers; which changes each of them has.

        ``victims`` are the modules whose answers are changed, all unless given. ``harmless`` nodes answer truly.
        """
        made: dict[str, list[str]] = {}
        recorded = {name: self.recorded(name) for name in GOOD}
        for name in self.bad:
            rng = random.Random(f"{seed}-{name}")
            true = recorded[rng.choice(GOOD)]
            calls = [call for call in true if not victims or call.rsplit("-", 1)[0] in victims]
            chosen = rng.choice(calls)
            folder = self.cluster.folder / name / "answers"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            made[name] = []
            for call, answer in true.items():
                own_name = json.loads(re.sub(r"good-\d", name, json.dumps(answers.shrunk(answer))))
                told = answers.Answer(answers.written(own_name).encode(), int(bool(answer.get("failed"))), ())
                if name not in harmless and (call == chosen or (call in calls and rng.random() < 0.15)):
                    told = answers.answer(own_name, f"{seed}-{name}-{call}", f"{self.marker}-{name}", GOOD)
                    made[name].append(f"{call}: {', '.join(told.changes)}")
                (folder / call).write_bytes(told.text)
                (folder / f"{call}.code").write_text(str(told.code))
        return made

    def play(
        self,
        playbook: str,
        arguments: Sequence[str] = (),
        alone: bool = False,
        without: Iterable[str] = (),
        **more: Any,
    ) -> Seen:
        """Run a playbook, ``alone`` on the good nodes, and see what these had of it."""
        wrapper = self.cluster.folder / "wrapper.yml"
        said = {"own": "hostvars[inventory_hostname]", "groups": "groups", "hosts": "hostvars.keys() | list"}
        shown = {key: f"{{{{ {value} }}}}" for key, value in said.items()}
        last = {"name": LAST, "ansible.builtin.debug": {"var": "_seen"}, "vars": {"_seen": shown}}
        end = {"hosts": ":".join(GOOD), "gather_facts": False, "tasks": [last]}
        wrapper.write_text(json.dumps([{"import_playbook": str(CHECKOUT / "playbooks" / playbook)}, end]))
        limit = (
            f"{':'.join(GOOD)}:localhost"
            if alone
            else ":".join(["all", "localhost", *(f"!{each}" for each in without)])
        )
        environment = {"ANSIBLE_INJECT_FACT_VARS": "False", **more.pop("environment", {})}
        try:
            run = self.cluster.play(
                str(wrapper), "--limit", limit, *arguments, forks=10, environment=environment, **more
            )
        except subprocess.TimeoutExpired as error:
            run = PlaybookRun.read(
                -1,
                (error.stdout or b"").decode(errors="replace"),
                f"no end in {error.timeout} seconds; asked last: {', '.join(self.asked_last())}",
            )
        return self.seen(run)

    def asked_last(self) -> list[str]:
        """The modules that were asked last, each behind its host: one of them is what is waited for."""
        known = [*self.cluster.folder.glob("*/asked/*"), *self.cluster.folder.glob("*/answers/asked-*")]
        newest = sorted(known, key=lambda path: path.stat().st_mtime)[-5:]
        return [f"{path.relative_to(self.cluster.folder).parts[0]} {path.name}" for path in reversed(newest)]

    def played(self, playbook: str, seed: str, **more: Any) -> tuple[Seen, list[str]]:
        """What the good nodes had of a run beside hostile ones, and what no run may do.

        Before the first change, a node that cannot be asked stops a site as a whole. So that the others' answers are
        read as well, such nodes are left out of the next run, as the message demands.
        """
        left: list[str] = []
        told: list[str] = []
        while True:
            self.restore()
            self.arm(seed)
            beside = self.play(playbook, without=left, **more)
            told += self.complaints(beside)
            if beside.ended or playbook not in STOPPED_BY_ANY:
                return beside, told
            bad = {
                host
                for host, _task, result in beside.run.results()
                if is_foreign(host) and (result.get("failed") or result.get("unreachable"))
            }
            bad |= {name for line in beside.run.messages() for name in re.findall(r"bad-\d+", line)}
            if not bad - set(left):
                return beside, told
            left += sorted(bad - set(left))

    def seen(self, run: PlaybookRun) -> Seen:
        """What the good nodes had of a run."""
        folder = str(self.cluster.folder)
        results: dict[str, dict[str, list[Any]]] = {}
        variables: dict[str, Any] = {}
        for host, task, result in run.results():
            if task == LAST:
                variables[host] = own(result.get("_seen", result), folder)
            else:
                results.setdefault(task, {}).setdefault(host, []).append(own(result, folder))
        calls = {name: host.acts() for name, host in self.good.items()}
        files: dict[str, Any] = {
            f"{name}/{path}": f"{mode:o} "
            + _NUMBERS.sub("N", _KERNEL.sub("", content.decode(errors="replace")).replace(folder, "FOLDER"))
            for name, host in self.good.items()
            for path, (mode, content) in host.files().items()
            if not path.startswith("sys/")
        }
        files |= {f"{name}: what was changed through its programs": own(each, folder) for name, each in calls.items()}
        return Seen(set(variables) == set(GOOD), results, variables, files, self.controller(), run)

    def controller(self) -> dict[str, Any]:
        """What lies on the controller, besides the hosts, the tests' own files and files of hostile nodes."""
        passed = {"calls", "inventory", "wrapper.yml", "ansible.cfg", "bin", "home", *self.cluster.variables}
        found: dict[str, Any] = {}
        for path in sorted(self.cluster.folder.rglob("*")):
            name = str(path.relative_to(self.cluster.folder))
            if name.split("/")[0] in passed or name.startswith("modules-") or not path.is_file() or is_foreign(name):
                continue
            found[name] = "" if name.endswith(".key") else _content(path)
        return found

    def differences(self, alone: Seen, beside: Seen) -> list[str]:
        """What the good nodes had otherwise beside hostile ones than alone; empty where all is well."""
        told = [] if beside.ended else ["the play does not end for the others"]
        for task, hosts in alone.results.items():
            there = beside.results.get(task, {})
            for host, result in hosts.items():
                # What is done once is done by the first node, which may be a hostile one.
                found = [there[host]] if host in there else [each for name, each in there.items() if is_foreign(name)]
                expected, found = own_rounds(result), [own_rounds(each) for each in found]
                if expected not in found and (expected or found):
                    told += [f"{host}: {task}: {line}" for line in differing(expected, found[0] if found else None)]
        for what in ("variables", "files", "controller"):
            told += [f"{what}: {line}" for line in differing(getattr(alone, what), getattr(beside, what))]
        return told

    def complaints(self, beside: Seen) -> list[str]:
        """What no run may do, whatever it is compared with."""
        told = [f"a template or a command was evaluated: {path.name}" for path in self.cluster.folder.glob("marker*")]
        everything, output = (_OF_CORE.sub("", text) for text in (beside.run.everything, beside.run.output))
        told += [
            f"a raw character {match!r} reached the terminal: {everything[max(0, at - 80) : at + 80]!r}"
            for match, at in [(m[0], m.start()) for m in _RAW.finditer(everything)][:1]
        ]
        told += [
            f"{word}: {output[max(0, at - 300) : at + 900]!r}" for word in _CRASHES if (at := output.find(word)) >= 0
        ]
        told += [
            f"{TOKEN} is in the variables of {name}"
            for name, each in beside.variables.items()
            if TOKEN in json.dumps(each)
        ]
        told += [
            f"{TOKEN} is in {name}"
            for name, text in {**beside.files, **beside.controller}.items()
            if TOKEN in json.dumps(text)
        ]
        return told


#: Characters that a terminal acts on.
_RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]")
#: What is of ansible-core 2.17 itself: it writes what stands behind a module's JSON, and keys of its own, into warnings
#: as they are. Where a `meta` task is the play's first, the tests' callback has no place for the task that is skipped.
_OF_CORE = re.compile(
    r"\[WARNING\]: Module invocation had junk after the JSON data:(?:\s*\x1b\[2J\w*)+"
    r"|\[WARNING\]: Removed unexpected internal key in module return:.*?(?=\n\[|\Z)"
    r"|\[WARNING\]: Failure using method \(v2_runner_on_skipped\) in callback plugin\s+"
    r"\(<ansible_collections\.ansible\.posix\.plugins\.callback\.json\.CallbackModule object\s+at 0x\w+>\):",
    re.DOTALL,
)
#: Words of a run that broke as a whole.
_CRASHES = (
    "Traceback (most recent call last)",
    "Unexpected Exception",
    "unexpected exception",
    "A worker was found in a dead state",
    "Failure using method",
    "failed with an unhandled",
)


def _content(path: Path) -> Any:
    text = path.read_text(errors="replace")
    try:
        return own(json.loads(text), "")
    except ValueError:
        return _NUMBERS.sub("N", text)


def differing(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two values differ, and how."""
    if type(one) is type(other) and isinstance(one, dict):
        keys = sorted({*one, *other}, key=str)
        missing = object()
        return [
            line for key in keys for line in differing(one.get(key, missing), other.get(key, missing), f"{where}.{key}")
        ]
    if type(one) is type(other) and isinstance(one, list) and len(one) == len(other):
        return [
            line
            for number, pair in enumerate(zip(one, other, strict=True))
            for line in differing(*pair, f"{where}[{number}]")
        ]
    return [] if one == other else [f"{where}: {str(one)[:300]!r} became {str(other)[:300]!r}"]
