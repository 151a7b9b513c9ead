"""Variables in the bridge's name: the real ones pass, all others are reported with the nearest real thing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGES

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu import environment as environments
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.hpu.environment import FLAGS, INVENTED, check_environment, check_runtime, lazy_mode, on_gaudi, table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "hpu-environment.md"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "PT_HPU_LAZY_MOD",
            "1",
            "PT_HPU_LAZY_MOD is not known to be read by anything: did you mean PT_HPU_LAZY_MODE?",
        ),
        (
            "PT_HPU_XYZZY",
            "1",
            "PT_HPU_XYZZY is not known to be read by anything: `gaudi3-train environment` lists those that are known.",
        ),
        ("PT_RECIPE_CACHE_PATH", "/x", "PT_RECIPE_CACHE_PATH is retired: set PT_HPU_RECIPE_CACHE_CONFIG instead."),
        (
            "PT_HPU_ENABLE_FLASH_ATTENTION_V2",
            "1",
            "PT_HPU_ENABLE_FLASH_ATTENTION_V2 does not exist in any release's sources, and nothing reads it: what it "
            "seems to promise is memory.attention=flash, or habana_frameworks.torch.hpex.kernels.FusedSDPA.",
        ),
        (
            "PT_HPU_FUSION_BUFFER_SIZE",
            "64",
            "PT_HPU_FUSION_BUFFER_SIZE does not exist in any release's sources, and nothing reads it: take it out.",
        ),
        ("PT_HPU_LAZY_MODE", "2", "PT_HPU_LAZY_MODE is '2': give 1 (lazy) or 0 (eager, compile)."),
        ("PT_HPU_POOL_STRATEGY", "dynamic", "PT_HPU_POOL_STRATEGY is 'dynamic': it is a number; leave it unset."),
    ],
)
def test_what_is_not_read_is_reported(name: str, value: str, words: str) -> None:
    assert [finding.message for finding in check_environment({name: value, "PATH": "/bin"})] == [words]


def test_what_is_read_passes() -> None:
    good = dict.fromkeys(FLAGS, "0") | {"PT_HPU_GRAPH_DUMP_PREFIX": "x", "HABANA_LOGS": "/x", "PTX": "1"}
    assert check_environment(good) == []
    assert len(INVENTED) == 16 and not INVENTED.keys() & FLAGS.keys()


@pytest.mark.parametrize(("mode", "value"), [("eager", "0"), ("compile", "0"), ("lazy", "1")])
def test_the_mode_is_always_explicit(mode: str, value: str) -> None:
    assert lazy_mode(mode, {}) == lazy_mode(mode, {"PT_HPU_LAZY_MODE": value}) == value
    other = "1" if value == "0" else "0"
    with pytest.raises(ConfigError) as refused:
        lazy_mode(mode, {"PT_HPU_LAZY_MODE": other})
    assert str(refused.value) == (
        f"train.mode is {mode}, which is PT_HPU_LAZY_MODE={value}, and the environment has '{other}': take the "
        "variable out, or set train.mode to what it says."
    )


def test_each_device_compiles_with_its_own_backend() -> None:
    hpu, cpu = Device("hpu", 0, "hccl"), Device("cpu", 0, "gloo")
    assert (hpu.compile_backend("compile"), cpu.compile_backend("compile")) == ("hpu_backend", "inductor")
    assert hpu.compile_backend("eager") is hpu.compile_backend("lazy") is cpu.compile_backend("eager") is None
    with pytest.raises(ConfigError, match=r"^train\.mode is lazy, which only an HPU has, and the"):
        cpu.compile_backend("lazy")


@pytest.mark.parametrize(
    ("value", "fault"),
    [(None, "is not set"), ("", "is '', which is no file"), ("/nowhere/k.so", "is '/nowhere/k.so', which is no file")],
)
def test_a_process_on_a_card_without_the_kernels_of_graphs_is_told_so(value: str | None, fault: str) -> None:
    (finding,) = check_runtime({} if value is None else {"GC_KERNEL_PATH": value})
    assert finding.message == (
        f"GC_KERNEL_PATH {fault}, and without it no graph can be compiled on a card: give the process what "
        "/etc/profile.d/habanalabs*.sh sets, as a login shell does."
    )


def test_a_process_with_the_kernels_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "libtpc_kernels.so").touch()
    assert check_runtime({"GC_KERNEL_PATH": str(tmp_path / "libtpc_kernels.so")}) == []
    assert {name for name in FLAGS if "profile.d" in FLAGS[name].source} == {
        "GC_KERNEL_PATH", "HABANA_SCAL_BIN_PATH", "HABANA_PLUGINS_LIB_PATH", "RDMA_CORE_ROOT", "RDMA_CORE_LIB",
    }  # fmt: skip


@pytest.mark.parametrize(("cards", "device", "told"), [(0, "auto", False), (8, "auto", True), (8, "cpu", False)])
def test_processors_need_no_kernels(cards: int, device: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "gaudi_cards", lambda: ["0000:19:00.0"] * cards)
    assert on_gaudi(device) is told and on_gaudi("hpu")


def test_the_command_tells_of_missing_kernels_where_there_is_a_gaudi(tmp_path: Path) -> None:
    (tmp_path / "habana_frameworks").mkdir()
    command = [sys.executable, "-m", "gaudi3_scale", "environment"]
    path = os.pathsep.join([PACKAGES, str(tmp_path)])
    clean = {key: value for key, value in os.environ.items() if key != "GC_KERNEL_PATH"}
    done = subprocess.run(command, env={**clean, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("GC_KERNEL_PATH is not set, and without it")
    good = {**clean, "PYTHONPATH": path, "GC_KERNEL_PATH": sys.executable}
    assert subprocess.run(command, env=good, capture_output=True, text=True, check=False).returncode == 0


def test_the_command_and_the_document_show_the_same_table() -> None:
    shown = DOCUMENT.read_text().partition("\n\n## Next\n")[0]
    assert f"{shown}\n".endswith("\n\n" + table())
    result = subprocess.run(
        [sys.executable, "-m", "gaudi3_scale", "environment"],
        env={**os.environ, "PYTHONPATH": PACKAGES, "PT_HPU_POOL_STRATEGI": "4"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, table())
    assert result.stderr == (
        "PT_HPU_POOL_STRATEGI is not known to be read by anything: did you mean PT_HPU_POOL_STRATEGY?\n"
    )
