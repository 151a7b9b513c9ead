"""The training step's known answer, by arithmetic of whole numbers alone; torch runs it where it is installed."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import step


def made(place: int, factor: int, most: int) -> int:
    return place * factor // 64 % (2 * most + 1) - most


def test_the_known_answer_is_that_of_whole_numbers() -> None:
    numpy = pytest.importorskip("numpy")

    def matrix(rows: int, columns: int, factor: int, most: int) -> object:
        places = numpy.arange(rows * columns, dtype=numpy.int64)
        return (places * factor // 64 % (2 * most + 1) - most).reshape(rows, columns)

    given, weights = matrix(step.SAMPLES, step.INPUTS, 7919, 2), matrix(step.OUTPUTS, step.INPUTS, 104729, 1)
    assert int(given[2, 5]) == made(2 * step.INPUTS + 5, 7919, 2)  # type: ignore[index]
    errors = given @ weights.T - matrix(step.SAMPLES, step.OUTPUTS, 40503, 2)  # type: ignore[attr-defined,operator]
    gradient = 2 * errors.T @ given
    # Every operand is exact in bfloat16 and every sum of any order in float32.
    assert int(abs(errors).max()) <= 256
    assert int((2 * abs(errors).T @ abs(given)).max()) < 2**24
    after = weights * step.UNITS - gradient // 2  # type: ignore[operator]
    assert int(abs(after).max()) < 2**24
    values = after.flatten().tolist()
    assert hashlib.sha256(struct.pack(f"<{len(values)}q", *values)).hexdigest() == step.KNOWN


def test_torch_comes_to_it_and_another_answer_is_a_fault() -> None:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, step.__file__, "cpu", "0"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"passed": True, "message": ""}
    with open(step.__file__, encoding="utf-8") as file:
        other = file.read().replace(step.KNOWN, "0" * 64)
    done = subprocess.run([sys.executable, "-c", other, "cpu", "0"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "passed": False,
        "message": "the weights of the first and the second run are not the known ones",
    }


def test_a_machine_without_the_vendor_s_plugin_gives_no_result() -> None:
    done = subprocess.run([sys.executable, step.__file__, "hpu", "0"], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["passed"] is None and "habana" in answer["message"]
