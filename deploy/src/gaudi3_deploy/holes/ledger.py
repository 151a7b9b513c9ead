"""What is decided about advisories, and the verdict on each package of a mirror."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gaudi3_deploy import given_file, yaml_file
from gaudi3_deploy.collection._known_bad import known_bad
from gaudi3_deploy.collection._mirror import poison
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.holes import order
from gaudi3_deploy.holes.advisories import Advisory
from gaudi3_deploy.holes.frozen import Package
from gaudi3_deploy.messages import reason
from gaudi3_deploy.mirror.wheels import normal

NOT_AFFECTED, AFFECTED, UNDECIDED = "not_affected", "affected", "under_investigation"
#: Why a package is not affected, in the words of VEX.
JUSTIFICATIONS = (
    "component_not_present",
    "vulnerable_code_not_present",
    "vulnerable_code_not_in_execute_path",
    "vulnerable_code_cannot_be_controlled_by_adversary",
    "inline_mitigations_already_exist",
)
KEYS = ("advisory", "packages", "versions", "status", "justification", "statement", "action", "source", "date")
OURS = Path(__file__).with_name("ledger.yml")


@dataclass(frozen=True)
class Row:
    """One decision, as it stands in a ledger."""

    advisory: str
    status: str
    justification: str
    statement: str
    action: str
    source: str
    date: str
    packages: tuple[str, ...] = ()
    """Empty: all that the advisory names."""
    versions: str = ""
    """PEP 440 specifiers; empty: all."""

    def decides(self, advisory: Advisory, package: Package) -> bool:
        """Whether the decision is about this package."""
        if self.advisory not in advisory.names or (self.packages and not {*package.names} & {*self.packages}):
            return False
        if not self.versions:
            return True
        return package.kind == "pypi" and SpecifierSet(self.versions).contains(order.pypi(package.version), True)


@dataclass(frozen=True)
class Verdict:
    """What one advisory comes to for one package."""

    advisory: Advisory
    package: Package
    status: str
    justification: str
    statement: str
    action: str = ""
    source: str = ""
    poisoned: bool = False


def rows(path: Path) -> list[Row]:
    """The decisions of a ledger.

    Raises:
        UsageError: It cannot be read, or a row is not right.
    """
    try:
        found: Any = yaml_file.read(given_file.read_text(path))
        return [_row(each) for each in found or ()]
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError) as error:
        said = printable(reason(error), 500)
        raise UsageError(f"{path} is no ledger of holes ({said}): correct it.") from error


def _row(given: Mapping[str, Any]) -> Row:
    name, status, why = str(given["advisory"]), str(given["status"]), str(given.get("justification", ""))
    unknown = [key for key in given if key not in KEYS]
    if unknown:  # a decision would be about more than was meant
        raise ValueError(f"{name} has {unknown[0]!r}, and {', '.join(KEYS)} are known")
    if not isinstance(given.get("packages", []), list):
        raise ValueError(f"packages of {name} is {given['packages']!r}: give a list of names")
    if status not in (NOT_AFFECTED, AFFECTED):
        raise ValueError(f"status of {name} is {status!r}: give {NOT_AFFECTED} or {AFFECTED}")
    if (status == NOT_AFFECTED) != (why in JUSTIFICATIONS):
        raise ValueError(
            f"justification of {name} is {why!r}: give one of {', '.join(JUSTIFICATIONS)} where not affected"
        )
    if status == AFFECTED and not given.get("action"):
        raise ValueError(f"{name} has no action: say what to do about it")
    try:
        SpecifierSet(str(given.get("versions", "")))
    except InvalidSpecifier as error:
        raise ValueError(f"versions of {name}: {error}") from error
    said, action, source, date = (str(given.get(key) or "") for key in ("statement", "action", "source", "date"))
    if not (said and source and date):
        raise ValueError(f"{name} lacks one of statement, source and date")
    packages, versions = tuple(map(str, given.get("packages", ()))), str(given.get("versions", ""))
    return Row(name, status, why, said, action, source, date, packages, versions)


def verdicts_on(advisories: Sequence[Advisory], packages: Sequence[Package], decided: Sequence[Row]) -> list[Verdict]:
    """The verdict for each advisory on each package that it is about; withdrawn ones have none."""
    by_name: dict[str, list[Package]] = {}
    for package in packages:
        by_name.setdefault(package.names[0], []).append(package)
    found: dict[tuple[str, Package], Verdict] = {}
    for advisory in advisories:
        if advisory.withdrawn:
            continue
        for package in _about(advisory, by_name):
            found[advisory.id, package] = _verdict_on(advisory, package, decided)
    return [*found.values()]


def _about(advisory: Advisory, by_name: Mapping[str, Sequence[Package]]) -> Iterator[Package]:
    for each in advisory.affected:
        for name in sorted({each.name, normal(each.name)}):
            for package in by_name.get(name, ()):
                if package.is_of(each.ecosystem, each.name):
                    yield package


def _verdict_on(advisory: Advisory, package: Package, decided: Sequence[Row]) -> Verdict:
    told = [each.reaches(package.compared) for each in advisory.affected if package.is_of(each.ecosystem, each.name)]
    reached = True if True in told else None if None in told else False
    bad = [each for each in known_bad({package.name: package.version}) if each.source in advisory.names]
    if bad:
        said, do = (
            poison(bad[0], package.version),
            f"Fill a mirror with {bad[0].instead}, and replace every credential.",
        )
        return Verdict(advisory, package, AFFECTED, "", f"It {said}.", do, poisoned=True)
    if reached is False:
        return Verdict(
            advisory,
            package,
            NOT_AFFECTED,
            "vulnerable_code_not_present",
            f"{package.compared} is not among its versions.",
        )
    if advisory.malicious:
        return Verdict(
            advisory, package, AFFECTED, "", "The release was made to do harm.",
            "Fill a mirror without it, and replace every credential that its hosts could read.", poisoned=True,
        )  # fmt: skip
    row = next((each for each in decided if each.decides(advisory, package)), None)
    if row is not None:
        said = " ".join(row.statement.split())
        return Verdict(advisory, package, row.status, row.justification, said, row.action, row.source)
    said = "Nobody has decided whether the use reaches it."
    if reached is None:
        said = f"Whether {package.compared} is among its versions cannot be said. {said}"
    return Verdict(advisory, package, UNDECIDED, "", said)
