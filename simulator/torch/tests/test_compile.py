"""torch.compile on the device: graphs are captured and run uncompiled, which is said once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gaudi3_hpu_simulator import passing

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTE = "gaudi3-hpu-simulator: hpu_backend runs as aot_eager, nothing was compiled"
TRAIN = """
import torch
torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Linear({width}, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)).to("hpu")
compiled = torch.compile(plain, backend="hpu_backend", options={{"inference": False}})
for rows in (2, 3):
    values = torch.randn(rows, {width}, device="hpu")
    expected = torch.autograd.grad(plain(values).square().sum(), list(plain.parameters()))
    seen = torch.autograd.grad(compiled(values).square().sum(), list(plain.parameters()))
    assert all(torch.equal(one, other) for one, other in zip(expected, seen))
print("trained")
"""


def test_hpu_backend_trains_and_says_once_that_nothing_was_compiled(run: Run) -> None:
    done = run(TRAIN.format(width=8))
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert done.stderr.count(NOTE) == 1


def test_a_setting_brings_the_refusal_back(run: Run) -> None:
    done = run(TRAIN.format(width=3), GAUDI3_HPU_SIMULATOR_GRAPHS="refuse")
    assert done.returncode == 1
    assert "The simulated HPU has no graph compiler (hpu_backend): GAUDI3_HPU_SIMULATOR_GRAPHS=refuse" in done.stderr
    assert NOTE not in done.stderr


def test_a_setting_that_means_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(passing.VARIABLE, "maybe")
    with pytest.raises(ValueError, match="GAUDI3_HPU_SIMULATOR_GRAPHS is 'maybe', but it has to be 'run' or 'refuse'"):
        passing.run_uncompiled("graphs", "nothing was compiled")


def test_there_is_no_compiler_in_lazy_mode(run: Run) -> None:
    done = run(TRAIN.format(width=3), PT_HPU_LAZY_MODE="1")
    assert done.returncode == 1
    assert "has no torch.compile in lazy mode, which Gaudi does not have either: set PT_HPU_LAZY_MODE=0" in done.stderr


def test_hpu_backend_is_listed_before_anything_is_compiled(run: Run) -> None:
    done = run("import torch, torch._dynamo as dynamo; print('hpu_backend' in dynamo.list_backends())")
    assert done.stdout == "True\n", done.stderr


def test_an_option_that_does_not_exist_is_an_error() -> None:
    torch._dynamo.reset()
    linear = nn.Linear(2, 2).to("hpu")
    with pytest.raises(Exception, match=r"compile_backend.config.keep_inputs does not exist"):
        torch.compile(linear, backend="hpu_backend", options={"keep_inputs": True})(torch.ones(1, 2, device="hpu"))
    torch._dynamo.reset()


def test_options_by_name_and_for_a_while() -> None:
    from habana_frameworks.torch.dynamo.compile_backend import config

    assert config.configuration_flags["use_eager_fallback"] is True
    with config.patch({"use_eager_fallback": False}):
        assert config.configuration_flags["use_eager_fallback"] is False
    config.configuration_flags["enable_sfg"] = True
    assert config.enable_sfg is True
    config.configuration_flags["enable_sfg"] = False
