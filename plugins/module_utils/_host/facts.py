# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Facts that a host gathered, as the roles read them: the host may answer anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._kinds import exact, integer
from .._printable import printable
from .._refusal import Refusal

#: Texts without which the roles cannot tell what a host is. They are read as they are, so each is one printable line.
TEXTS = ("distribution", "distribution_version", "distribution_major_version", "os_family", "kernel")
#: No name or version of a system is longer.
LONGEST = 200


def refuse_odd_facts(facts: object) -> None:
    """Refuse facts of which one that the roles need is missing or odd; ``Refusal`` says which, within a sentence."""
    if not isinstance(facts, Mapping):
        raise Refusal(f"ansible_facts is {printable(facts, 60)}")
    for name in TEXTS:
        value = facts.get(name, facts.get(f"ansible_{name}"))
        if value is None:
            raise Refusal(f"ansible_{name} is missing")
        if not exact(value, LONGEST):
            raise Refusal(f"ansible_{name} is {printable(repr(value), 60)}")


@dataclass(frozen=True)
class Gathered:
    """Which hosts of a play gave no facts that can be used."""

    silent: tuple[str, ...] = ()
    """They could not be reached."""
    mute: tuple[str, ...] = ()
    """Their facts cannot be read."""
    why: str = ""
    """The reason of the first of them."""
    powerless: tuple[str, ...] = ()
    """Tasks run as another user than root there."""
    user: str = ""
    """Who that is, on the first of them."""

    @classmethod
    def of(cls, answers: Mapping[str, object]) -> Gathered:
        """From what the task that gathers facts registered on each host."""
        silent, mute, powerless = [], {}, {}
        for host, answer in answers.items():
            given = answer if isinstance(answer, Mapping) else {}
            facts = given.get("ansible_facts")
            if given.get("unreachable"):
                silent.append(host)
            elif given.get("failed"):
                mute[host] = _reason(given)
            else:
                try:
                    refuse_odd_facts(facts)
                except Refusal as error:
                    mute[host] = str(error).rstrip(".")
                else:
                    user = _user(facts)
                    if user is not None:
                        powerless[host] = user
        return cls(
            tuple(silent),
            tuple(mute),
            next(iter(mute.values()), ""),
            tuple(powerless),
            next(iter(powerless.values()), ""),
        )


def _reason(answer: Mapping[str, Any]) -> str:
    """Why the facts failed, as the module says it, or the task."""
    modules = answer.get("failed_modules")
    each = modules.values() if isinstance(modules, Mapping) else ()
    said = [one.get("msg") for one in each if isinstance(one, Mapping)] + [answer.get("msg")]
    found = next((" ".join(one.split()) for one in said if isinstance(one, str) and one.strip()), "no reason given")
    return printable(found, 500)


def _user(facts: Any) -> str | None:
    """The user as whom tasks run, None where that is root or is not known."""
    number = facts.get("ansible_effective_user_id", facts.get("effective_user_id", 0))
    if integer(number) == 0:
        return None
    return printable(facts.get("ansible_user_id", facts.get("user_id", number)), 60)
