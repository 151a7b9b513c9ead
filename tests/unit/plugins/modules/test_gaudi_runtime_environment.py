"""What the vendor's profile files set, as a login shell would have it, and the file that units read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import runtime_environment as runtime
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_runtime_environment
from gaudi3_simulator.vendor import catalogue

KERNELS = "/usr/lib/habanalabs/libtpc_kernels.so"


def profiles(folder: Path, **texts: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.sh").write_text(text)
    return runtime.profile_files(str(folder))


@pytest.mark.parametrize("release", ["1.21.4-3", "1.23.0-695", "1.24.1-482"])
def test_the_packages_profile_files_are_read(release: str, tmp_path: Path) -> None:
    brought = {path: file for package in catalogue.packages(release) for path, file in package.files.items()}
    names = [path for path in brought if path.startswith("/etc/profile.d/")]
    for path in names:
        (tmp_path / Path(path).name).write_bytes(brought[path].data)
    found = runtime.read(runtime.profile_files(str(tmp_path)))
    assert {"GC_KERNEL_PATH", "HABANA_SCAL_BIN_PATH", "HABANA_PLUGINS_LIB_PATH", "RDMA_CORE_ROOT", "RDMA_CORE_LIB"} <= {
        *found
    }
    assert found["GC_KERNEL_PATH"] == KERNELS and KERNELS in brought
    assert "HABANA_LOGS" not in found, "each unit has a folder of its own"


def test_what_is_conditional_and_what_refers_to_others_is_as_a_shell_has_it(tmp_path: Path) -> None:
    found = runtime.read(
        profiles(
            tmp_path / "profile.d",
            habanalabs="if [ -d / ]; then export A='x y'; fi\nexport B=$A/z\nunexported=1\necho loud\n"
            "export PATH=$PATH:/opt\n",
            habanatools_2="test -n \"$A\" && export C=${B%/z}\nexport D='a\nb' E= __python_cmd=python3\nfalse\n",
            other="export NOT=read\n",
        )
    )
    assert found == {
        "A": "x y", "B": "x y/z", "C": "x y", "E": "", "__python_cmd": "python3", "PATH": found["PATH"],
    }  # fmt: skip
    assert found["PATH"].endswith(":/opt")


@pytest.mark.parametrize(("text", "words"), [("exit 3\n", "ends the shell"), ("exec true\n", "ends the shell")])
def test_a_profile_that_ends_the_shell_is_named(text: str, words: str, tmp_path: Path) -> None:
    (path,) = profiles(tmp_path / "profile.d", habana=text)
    with pytest.raises(Refusal, match=f"{path} {words}"):
        runtime.read([path])


@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_profile_that_others_may_change_is_refused(mode: int, tmp_path: Path) -> None:
    (path,) = profiles(tmp_path / "profile.d", habana="export A=1\n")
    Path(path).chmod(mode)
    with pytest.raises(Refusal, match=rf"^{path} can be changed by others.*mode {mode:04o}"):
        runtime.read([path])


@pytest.mark.parametrize("value", ["/usr/lib/x.so", "", "two words", 'a"b\\c$d`e', "50 %", "#x", "'q'"])
def test_the_file_holds_for_a_shell_what_was_set(value: str, tmp_path: Path) -> None:
    """systemd's rules within double quotes are those of a shell."""
    (tmp_path / "env").write_text(runtime.file_text({"A": value}))
    script = f'. {tmp_path}/env; printf %s "$A"'
    assert subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout == value


def test_the_module_writes_what_units_read(tmp_path: Path, run_module: Any) -> None:
    (tmp_path / "kernels.so").touch()
    profiles(tmp_path / "profile.d", habanalabs=f"export GC_KERNEL_PATH={tmp_path}/kernels.so HABANA_LOGS=/x\n")
    places = {"path": str(tmp_path / "etc/runtime.env"), "profiles": str(tmp_path / "profile.d")}
    predicted = run_module(gaudi_runtime_environment, check=True, diff=True, **places)
    assert predicted["changed"] and not (tmp_path / "etc").exists()
    assert f"GC_KERNEL_PATH={tmp_path}/kernels.so" in predicted["diff"][0]["after"]
    written = run_module(gaudi_runtime_environment, diff=True, **places)
    assert written["changed"] and written["diff"] == predicted["diff"]
    assert (tmp_path / "etc/runtime.env").stat().st_mode & 0o777 == 0o644
    assert not run_module(gaudi_runtime_environment, **places)["changed"]
    (tmp_path / "kernels.so").unlink()
    said = run_module(gaudi_runtime_environment, **places)
    assert said["msg"].startswith(f"GC_KERNEL_PATH is '{tmp_path}/kernels.so', which is no file")
    assert not run_module(gaudi_runtime_environment, required=False, **places).get("failed")
    (tmp_path / "profile.d/habanalabs.sh").unlink()
    said = run_module(gaudi_runtime_environment, **places)
    assert "GC_KERNEL_PATH is not set by /etc/profile.d/habana*.sh, of which there is none, and" in said["msg"]
    predicted = run_module(gaudi_runtime_environment, check=True, **places)
    assert not predicted.get("failed") and said["msg"] in str(predicted["warnings"])
