# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""PyTorch of the vendor's release, and that all nodes have it from the same tarball."""

from __future__ import annotations

from collections.abc import Mapping

from .._host.answers import exact_texts
from .._host.service_state import is_unchanged
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

INSTALL = "Install PyTorch"


def _asks(run: Run, values: Values) -> bool:
    """Not where other phases alone run: a node that cannot train can have its driver and be monitored."""
    return (
        values("trainer_runtime") != "container"
        and "pytorch" not in run.skipped
        and (run.has("pytorch", "train") or run.only_preflight)
    )


def _unchanged(values: Values, answers: Answers) -> bool:
    return values("pytorch_state") == "present" and is_unchanged(mapping(answers, "pytorch"))


PHASE = Phase("pytorch", [Question("pytorch", "pytorch", INSTALL)], _asks, _unchanged)


def tarballs_problem(answers: Mapping[str, Answers], root: str, release: str) -> str:
    """Why nodes may not have different files under the name of one tarball; empty where they have not."""
    found = exact_texts((given.get("pytorch") for given in answers.values()), "tarball", "sha256")
    if len({name for name, _sha256 in found}) == len(found):
        return ""
    told = ", ".join(f"{name} with SHA-256 {sha256}" for name, sha256 in found)
    return (
        f"Nodes have different files under the name of one tarball ({told}): find out which is right, set "
        f"pytorch_sha256 to it, and remove {root}/torch-{release} on the nodes that have another."
    )
