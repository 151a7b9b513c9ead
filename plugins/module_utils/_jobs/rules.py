# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Rules of a training job: what is refused, why, and what to do about it, in one table for module and role.

A rule looks at options of module gaudi_train. Its sentence takes the names of options from ``MODULE`` or ``ROLE``, so
that a user reads the names that were written: ``chdir`` in a task of the module, ``trainer_chdir`` in an inventory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional

NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:_-]*[A-Za-z0-9])?")
USER = re.compile(r"[a-z_][a-z0-9_-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What systemd may take for the end of a line, and what cannot be written to a file as text.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
#: Folders that a job has for itself, empty at its start (PrivateTmp= of its unit).
PRIVATE_FOLDERS = ("/tmp", "/var/tmp")

#: Options by their names in the module.
Job = Mapping[str, Any]
#: Values for a rule's sentence, where the rule objects.
Objection = Optional[Mapping[str, Any]]

MODULE = {
    name: name
    for name in (
        "cards", "chdir", "command", "config", "environment_files", "head_address", "jobs_dir", "max_restarts",
        "min_nodes", "name", "nodes", "processes_per_node", "rdzv_port", "spares", "stop_timeout", "threads",
        "venv",
    )
}  # fmt: skip
#: The variables of role trainer that the module's options come from.
ROLE = {
    **{name: f"trainer_{name}" for name in MODULE},
    "head_address": "gaudi_cluster_address",
    "name": "trainer_job_name",
    "venv": "trainer_root",
}

_NAME_CHARACTERS = "lower-case letters, digits, '-' and '_'"


def number(value: object) -> int:
    """The whole number that a value stands for; 0 for what is none."""
    try:
        return int(str(value))
    except ValueError:
        return 0


def outlives_a_node(nodes: int, spares: int, min_nodes: Optional[int]) -> bool:
    """Whether a job that is given ``nodes`` goes on when it loses one, with a spare or with fewer."""
    return spares > 0 or min_nodes not in (None, nodes)


def script_of(job: Job) -> str:
    """The path of the user's script; empty for a job of the trainer's own."""
    return os.path.join(job.get("chdir") or "", job["command"][0]) if job.get("command") else ""


def one_line(text: str) -> bool:
    """Whether systemd reads a text as one value."""
    return not UNPRINTABLE.search(text.replace("\t", " "))


def _unwritable(path: str) -> bool:
    # Lines of paths know no quotes: a backslash at the end joins the next line, spaces at the end are dropped.
    return not path.startswith("/") or bool(UNPRINTABLE.search(path)) or "\\" in path or path != path.strip()


def _private(path: str) -> Objection:
    # A path that is not absolute is refused by another rule.
    place = os.path.normpath(path) if path.startswith("/") else "/"
    folder = next((each for each in PRIVATE_FOLDERS if os.path.commonpath([each, place]) == each), None)
    return _unless(folder is None, path=path, folder=folder)


def _unless(fine: object, **values: Any) -> Objection:
    return None if fine else values


@dataclass(frozen=True)
class Rule:
    """One rule. It applies to jobs that have its option; ``check`` finds what the sentence needs to say."""

    option: str
    check: Callable[[Job], Objection]
    reason: str
    remedy: str = ""
    role_remedy: str = ""
    """The remedy where it is another thing to do in an inventory than in a task of the module."""

    def problem(self, job: Job, names: Mapping[str, str] = MODULE) -> Optional[str]:
        """The refusal of this job, in one sentence; None where the rule has nothing against it."""
        found = None if job.get(self.option) is None else self.check(job)
        if found is None:
            return None
        values = {"job": job.get("name"), "place": job.get("host", "This node"), "value": job[self.option], **found}
        return self.template(names).format(**names, **values)

    def template(self, names: Mapping[str, str] = MODULE) -> str:
        """The sentence with its fields."""
        remedy = self.role_remedy or self.remedy if names is ROLE else self.remedy
        return f"{self.reason}: {remedy}." if remedy else f"{self.reason}."


def _range(option: str, least: int, most: int) -> Rule:
    return Rule(
        option,
        lambda job: _unless(least <= number(job[option]) <= most),
        f"{{{option}}} is {{value}}, but must be from {least} to {most}",
    )


UNWRITABLE = "which cannot be written into a unit"
PATH_REMEDY = "give an absolute path without control characters, backslashes and spaces at its end"
NO_ADDRESS = "is not a host name or an address"


def _path(option: str) -> Rule:
    return Rule(
        option,
        lambda job: next(({"path": path} for path in _list(job[option]) if _unwritable(path)), None),
        f"{{{option}}} is {{path!r}}, {UNWRITABLE}",
        PATH_REMEDY,
    )


def _list(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _few_workers(job: Job) -> Objection:
    most = len(job["nodes"]) - job["spares"]
    return _unless(1 <= job["min_nodes"] <= most, most=most)


def _no_restart(job: Job) -> Objection:
    return _unless(job["max_restarts"] or not outlives_a_node(len(job["nodes"]), job["spares"], job.get("min_nodes")))


def _few_cards(job: Job) -> Objection:
    cards, processes = number(job["cards"]), number(job["processes_per_node"])
    return _unless(cards < 1 or processes <= cards, count=cards, s="" if cards == 1 else "s", processes=processes)


def _odd_word(job: Job) -> Objection:
    return next(({"word": word} for word in job["command"] if not one_line(word)), None)


def _relative_script(job: Job) -> Objection:
    return _unless(_script(job) or not job["command"], first=next(iter(job["command"]), ""))


def _script(job: Job) -> str:
    """The script of a command where its path is absolute, which is another rule; empty where there is none."""
    script = script_of(job)
    return script if script.startswith("/") else ""


def _odd_variable(job: Job) -> Objection:
    odd = (key for key, value in job["environment"].items() if not VARIABLE.fullmatch(key) or not one_line(str(value)))
    return next(({"key": key} for key in odd), None)


#: In the order in which they are checked.
RULES = (
    Rule("name", lambda job: _unless(NAME.fullmatch(str(job["name"]))),
         "{name} is {value!r}, which cannot be used",
         f"take 1 to 63 {_NAME_CHARACTERS}, beginning and ending with a letter or digit"),
    Rule("nodes", lambda job: _unless(job["nodes"]),
         "{nodes} is empty", "list the inventory names of the job's nodes",
         "put the nodes into the inventory group gaudi, or set {nodes}"),
    Rule("nodes", lambda job: _unless(len(set(job["nodes"])) == len(job["nodes"])),
         "Job {job} names a node twice in '{nodes}'", "list each node once"),
    Rule("head_address", lambda job: _unless(HOST.fullmatch(job["head_address"])),
         f"Head address {{value!r}} {NO_ADDRESS}",
         "set '{head_address}' to the address at which all nodes reach the first one"),
    Rule("cards", lambda job: _unless(number(job["cards"]) >= 1),
         "{place} has no cards on its PCI bus",
         "to train on its processors, set {cards} to null and {processes_per_node} to a number"),
    _range("processes_per_node", 1, 1024),
    Rule("cards", _few_cards,
         "{place} has {count} card{s}, too few for {processes} processes",
         "set {processes_per_node} to at most {count}"),
    _range("rdzv_port", 1024, 65535),
    _range("max_restarts", 0, 1000),
    _range("stop_timeout", 1, 86400),
    Rule("spares", lambda job: _unless(0 <= job["spares"] < len(job["nodes"]), count=len(job["nodes"])),
         "{spares} is {value}, but job {job} has {count} nodes", "leave at least one to work"),
    Rule("min_nodes", _few_workers,
         "{min_nodes} is {value}, but must be from 1 to {most}, the nodes that are no spares"),
    Rule("max_restarts", _no_restart,
         "Job {job} is to go on without a node that is lost, which is a restart of the others",
         "set {max_restarts} to at least 1"),
    Rule("chdir", lambda job: _unless(job["command"]),
         "{chdir} is {value!r} and {command} is empty",
         "{chdir} is the folder that a command runs in, so give both or leave it out"),
    Rule("command", lambda job: _unless(not (job["command"] and job["config"])),
         "{command} and {config} are both set",
         "keep {command} for a script of your own, or {config} for the trainer's"),
    Rule("command", lambda job: _unless(not job["command"] or job["command"][0]),
         "{command} begins with an empty word", "give the path of a script first, and its arguments after it"),
    Rule("command", _odd_word,
         f"{{command}} has the word {{word!r}}, {UNWRITABLE}", "take out control characters"),
    _path("chdir"),
    Rule("chdir", lambda job: _private(job["chdir"]),
         "The folder {path} of {chdir} is below {folder}, of which a job has its own",
         "put it into another folder, such as one below /srv"),
    Rule("command", _relative_script,
         "{command} begins with {first!r}, which is not an absolute path",
         "give one, or set {chdir} to the folder on the nodes that it is in"),
    Rule("command", lambda job: _unless(not (_script(job) and _unwritable(_script(job))), path=_script(job)),
         f"The script of {{command}} is {{path!r}}, {UNWRITABLE}", PATH_REMEDY),
    Rule("command", lambda job: _private(script_of(job)),
         "The script {path} of {command} is below {folder}, of which a job has its own",
         "put it into another folder, such as one below /srv"),
    Rule("threads", lambda job: _unless(job["threads"] >= 1),
         "{threads} is {value}, but must be at least 1 (or left out)"),
    Rule("user", lambda job: _unless(USER.fullmatch(job["user"])),
         "User {value!r} is not a name of a user", f"take {_NAME_CHARACTERS}"),
    Rule("config", lambda job: _unless("output_dir" not in job["config"]),
         "{config}.output_dir is set by module gaudi_train to the job's own folder",
         "leave it out, and use '{jobs_dir}' to keep jobs elsewhere"),
    Rule("environment", _odd_variable,
         "Environment variable {key!r} cannot be set",
         "a name has letters, digits and '_', and a value has one line without control characters"),
    _path("venv"),
    _path("environment_files"),
)  # fmt: skip


def problems(job: Job, names: Mapping[str, str] = MODULE) -> Iterator[str]:
    """All that the rules have against a job, each in one sentence. What a job does not have is not checked."""
    return (sentence for rule in RULES for sentence in [rule.problem(job, names)] if sentence is not None)


def check(job: Job) -> None:
    """Raise ValueError, with the first refusal in the words of the module, for a job that cannot run anywhere."""
    for sentence in problems(job):
        raise ValueError(sentence)


def check_path(option: str, path: str) -> None:
    """Raise ValueError for a path that systemd would not read from a unit's line as it was meant."""
    if _unwritable(path):
        raise ValueError(f"{option} is {path!r}, {UNWRITABLE}: {PATH_REMEDY}.")


def check_address(option: str, address: str) -> None:
    """Raise ValueError for what is neither a host name nor an address."""
    if not HOST.fullmatch(address):
        raise ValueError(f"{option} is {address!r}, which {NO_ADDRESS}: take letters, digits, '.', ':', '-' and '_'.")


def check_group(name: str) -> None:
    """Raise ValueError for what is neither a group's name nor its number."""
    if not (USER.fullmatch(name) or name.isdecimal()):
        raise ValueError(f"Group {name!r} is not a name of a group: take {_NAME_CHARACTERS}.")
