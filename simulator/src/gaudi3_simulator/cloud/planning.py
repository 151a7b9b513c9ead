"""What a provider plans: defaults, values that are known later, and which change replaces an object."""

from __future__ import annotations

from typing import Any

from gaudi3_simulator.cloud.schema import UNKNOWN, Attributes, Path_, is_block


def same(attribute: dict[str, Any], old: Any, new: Any) -> bool:
    """Whether two values are one to the provider's toolkit: nothing is null, "", 0, false and []."""
    if attribute["type"] == "set" and isinstance(old, list) and isinstance(new, list):
        return sorted(map(repr, old)) == sorted(map(repr, new))
    return old == new or (not old and not new and new is not UNKNOWN)


def plan(
    attributes: Attributes,
    config: dict[str, Any],
    prior: dict[str, Any] | None,
    proposed: dict[str, Any],
    path: Path_,
    replace: list[Path_],
) -> dict[str, Any]:
    """The planned values of an object or of a block; paths whose change replaces the object go to ``replace``."""
    out = dict(proposed)
    for name, each in attributes.items():
        given, old, new = config.get(name), (prior or {}).get(name), proposed.get(name)
        here = [*path, name]
        if is_block(each):
            out[name] = planned_block(each, given, old, new, here, replace, fresh=prior is None)
            continue
        if given is None and "default" in each and not each.get("computed"):
            new = each["default"]
        if given is None and each.get("computed"):
            # What is null stays null: it would be planned anew for ever.
            new = old if prior is not None else UNKNOWN
        if prior is not None and each.get("once"):
            new = old  # Given at creation, and never looked at again.
        if prior is not None and each.get("forcenew") and not same(each, old, new):
            replace.append(here)
        out[name] = new
    return out


def planned_block(
    schema: dict[str, Any], given: Any, old: Any, new: Any, here: Path_, replace: list[Path_], *, fresh: bool
) -> Any:
    """The same of a repeated block."""
    if given is UNKNOWN:
        return UNKNOWN
    if not given and schema.get("computed"):
        return UNKNOWN if fresh else old
    rows = []
    for index, row in enumerate(new or []):
        before = old[index] if isinstance(old, list) and index < len(old) else None
        if schema["type"] == "set":
            before = next((one for one in old or [] if covers(one, given[index])), None)
        rows.append(plan(schema["block"], given[index], before, row, [*here, index], replace))
    if schema.get("forcenew") and not fresh and len(old or []) != len(rows):
        replace.append(here)
    return rows


def covers(row: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether a row has all that was given."""
    return all(value is None or row.get(name) == value for name, value in given.items())


def complete(attributes: Attributes, values: dict[str, Any] | None) -> dict[str, Any]:
    """Exactly the schema's keys at every depth; what is still unknown is null."""
    out: dict[str, Any] = {}
    for name, each in attributes.items():
        value = (values or {}).get(name)
        if value is UNKNOWN:
            value = None
        if "block" in each:
            rows = value if isinstance(value, list) else []
            value = [complete(each["block"], row) for row in rows]
        elif isinstance(value, list):
            value = [None if one is UNKNOWN else one for one in value]
        out[name] = value
    return out
