# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The file of the teams as a JSON schema, for editors. What several teams have to do with each other it cannot say."""

from __future__ import annotations

from typing import Any

from .declared import MOST, NAMESPACE, NODE, PARTITION, TAKEN, TEAM, USER

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The schema: what one key may be, as the reader of the file has it."""
    return {
        "$schema": DRAFT,
        "title": "Teams of gaudi3-deploy",
        "type": "object",
        "properties": {
            "teams": {
                "description": "teams by their names: 1 to 30 lower-case letters and digits, a letter first",
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": f"^{TEAM.pattern}$", "not": {"enum": list(TAKEN)}},
                "additionalProperties": _team(),
            }
        },
        "required": ["teams"],
        "additionalProperties": False,
    }


def _team() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "users": {
                "description": "Unix users; each is in one team",
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "string", "pattern": f"^{USER.pattern}$", "not": {"const": "root"}},
            },
            "quota": {
                "description": "what the team may use together; a limit that is missing or null is none",
                "type": "object",
                "properties": {
                    "cards": {"description": "cards at once", **_limit(MOST)},
                    "jobs": {"description": "jobs at once", **_limit(MOST)},
                    "card_hours": {"description": "hours of one card in all", **_limit(MOST // 60)},
                },
                "additionalProperties": False,
            },
            "priority": {
                "description": "a higher one goes first",
                "type": "integer",
                "minimum": 0,
                "maximum": MOST,
                "default": 0,
            },
            "nodes": {
                "description": "hosts with the team's jobs, as they call themselves; all if it is left out",
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "string", "pattern": f"^{NODE.pattern}$"},
            },
            "partition": {
                "description": "partition of Slurm for the team's jobs, which several teams may share",
                "type": "string",
                "pattern": f"^{PARTITION.pattern}$",
            },
            "namespace": {
                "description": "in Kubernetes; the team's name if it is left out",
                "type": "string",
                "pattern": f"^{NAMESPACE.pattern}$",
            },
        },
        "required": ["users"],
        "additionalProperties": False,
    }


def _limit(most: int) -> dict[str, Any]:
    return {"type": ["integer", "null"], "minimum": 0, "maximum": most}
