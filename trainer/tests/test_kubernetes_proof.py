"""Manifests, right and wrong, before everybody who judges them; `make proof-kubernetes`.

Kubernetes' client and schemas are too large for the tests' environment, so they have one of their own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from kubernetes_faults import ONE_KIND, TOGETHER, planted, strife
from kubernetes_jobs import Document, every_form
from kubernetes_schemas import problem

from tests.suite.proof import Proof

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache/kubernetes/bin/python"
FORMS = dict(every_form())
FAULTS = {**ONE_KIND, **TOGETHER}
PROOF = Proof("kubernetes", {"right": list(FORMS), "of one kind": list(ONE_KIND), "between kinds": list(TOGETHER)})
SCHEMA, RULES = "schemas", "what belongs together"
COLUMNS = [SCHEMA, "Kubeflow's models", "Kubernetes' models", "kubernetes-validate", RULES]
TEXT = """
The manifests of `gaudi3-train kubernetes` in every form, and the same with one fault each, before: the definitions of
Kubeflow Trainer 2.3.0, JobSet 0.12.0 and the Prometheus operator 0.93.0 and the schemas of Kubernetes 1.37, reduced to
the fields that are written (`trainer/tests/kubernetes_schemas.json`); kubeflow-trainer-api 2.3.0, where what comes back
has to be what went in; the models of the package kubernetes 37, which take no unknown field; kubernetes-validate for
Kubernetes 1.34 to 1.37, strict; and our own rules for what belongs together, which no schema of one kind sees.

Nothing here ran on a cluster. `kubectl apply --dry-run=server` asks yours.
"""

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, list[str]]]:
    """What the packages say of each case."""
    cases: dict[str, list[Document]] = {**FORMS}
    cases |= {fault: planted(FORMS["monitored"], change) for fault, change in FAULTS.items()}
    script = Path(__file__).with_name("kubernetes_judge.py")
    done = subprocess.run([PYTHON, script], input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    for case, documents in cases.items():
        found[case][SCHEMA] = [said for each in documents if (said := problem(each))]
        found[case][RULES] = list(strife(documents)) if case not in ONE_KIND else []
    return found


@pytest.fixture(scope="module", autouse=True)
def table() -> object:
    yield
    PROOF.write_table("Manifests before those who judge them", TEXT, COLUMNS)


@pytest.mark.parametrize("case", PROOF.cases)
def test_right_manifests_pass_and_wrong_ones_do_not(case: str, verdicts: dict[str, dict[str, list[str]]]) -> None:
    PROOF.skip_if_held(case)
    found = verdicts[case]
    if case in FORMS:
        assert found == {column: [] for column in COLUMNS}
    else:
        assert found[SCHEMA if case in ONE_KIND else RULES] != []
    row = {column: "refused" if found[column] else "passed" for column in COLUMNS}
    if case in ONE_KIND:
        row[RULES] = ""
    PROOF.note(case, row)
