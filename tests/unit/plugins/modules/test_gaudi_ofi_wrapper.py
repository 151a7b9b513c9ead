"""gaudi_ofi_wrapper with a source of the same interface that needs no libfabric, built by the real compiler."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_ofi_wrapper

SOURCE = """\
#include "hccl_ofi_wrapper.h"
extern "C" double get_version() { return VERSION; }
extern "C" void* create_ofi_plugin_handle() { return fabric(); }
"""
HEADER = '#define VERSION 1.2\nextern "C" void* fabric();\n'
COMPILER = """\
#!/bin/sh
# The compiler, with a libfabric of one function.
echo "$*" >> {folder}/calls
exec {compiler} -L{folder} "$@" -Wl,-rpath,{folder}
"""

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    (folder / "fabric.cpp").write_text('extern "C" void* fabric() { return 0; }\n')
    assert os.system(f"g++ -shared -fPIC -o {folder}/libfabric.so {folder}/fabric.cpp") == 0
    (folder / "g++").write_text(COMPILER.format(folder=folder, compiler=shutil.which("g++")))
    (folder / "g++").chmod(0o755)
    return folder


@pytest.fixture
def options(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    find = AnsibleModule.get_bin_path
    monkeypatch.setattr(
        AnsibleModule, "get_bin_path", lambda self, name, *rest: None if name == "ldconfig" else find(self, name, *rest)
    )
    (tmp_path / "source").mkdir()
    for name, text in {"hccl_ofi_wrapper.cpp": SOURCE, "hccl_ofi_wrapper.h": HEADER}.items():
        (tmp_path / "source" / name).write_text(text)
    (tools / "calls").unlink(missing_ok=True)
    return {
        "source": str(tmp_path / "source"),
        "sha256": digests(tmp_path / "source"),
        "path": str(tmp_path / "lib/libhccl_ofi_wrapper.so"),
        "compiler": str(tools / "g++"),
        "linker_configuration": str(tmp_path / "ld.so.conf.d/gaudi3-scale.conf"),
    }


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_it_is_built_once_and_can_be_loaded(options: Any, tools: Path, run_module: Any) -> None:
    predicted = run_module(gaudi_ofi_wrapper, check=True, **options)
    assert (predicted["changed"], predicted["built"], Path(options["path"]).exists()) == (True, True, False)
    result = run_module(gaudi_ofi_wrapper, **options)
    assert (result["changed"], result["built"]) == (True, True)
    library = ctypes.CDLL(options["path"])
    library.get_version.restype = ctypes.c_double
    assert library.get_version() == 1.2
    assert Path(options["linker_configuration"]).read_text() == f"{Path(options['path']).parent}\n"
    again = run_module(gaudi_ofi_wrapper, **options)
    assert (again["changed"], again["built"]) == (False, False)
    assert len((tools / "calls").read_text().splitlines()) == 1


def test_another_source_or_a_lost_library_is_built_again(options: Any, tools: Path, run_module: Any) -> None:
    run_module(gaudi_ofi_wrapper, **options)
    header = Path(options["source"]) / "hccl_ofi_wrapper.h"
    header.write_text(HEADER.replace("1.2", "1.3"))
    options["sha256"] = digests(header.parent)
    assert run_module(gaudi_ofi_wrapper, **options)["built"] is True
    Path(options["path"]).unlink()
    assert run_module(gaudi_ofi_wrapper, **options)["built"] is True
    assert len((tools / "calls").read_text().splitlines()) == 3


def test_a_source_that_is_not_the_pinned_one_is_not_compiled(options: Any, tools: Path, run_module: Any) -> None:
    path = Path(options["source"]) / "hccl_ofi_wrapper.cpp"
    path.write_text(SOURCE + "// changed\n")
    result = run_module(gaudi_ofi_wrapper, **options)
    assert result["msg"].startswith(f"{path} has SHA-256 ") and result["msg"].endswith(
        ": give the source of the pinned commit, or the digests of yours."
    )
    path.unlink()
    assert (
        "hccl_ofi_wrapper.cpp cannot be read (No such file or directory)"
        in run_module(gaudi_ofi_wrapper, **options)["msg"]
    )
    assert not (tools / "calls").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("double get_version()", "double get_versions()", "cannot be used ('it does not export get_version')"),
        ("return fabric()", "return fabrics()", "cannot be built ("),
        ('extern "C" void* create', 'extern void* no_such_function(); extern "C" void* create', ""),
    ],
)
def test_a_library_that_does_not_work_is_not_installed(
    options: Any, run_module: Any, old: str, new: str, said: str
) -> None:
    path = Path(options["source"]) / "hccl_ofi_wrapper.cpp"
    path.write_text(SOURCE.replace(old, new))
    options["sha256"] = digests(path.parent)
    result = run_module(gaudi_ofi_wrapper, **options)
    assert said in result.get("msg", "")
    assert Path(options["path"]).exists() is not bool(said)


def test_check_mode_before_the_source_is_there(options: Any, run_module: Any) -> None:
    shutil.rmtree(options["source"])
    assert run_module(gaudi_ofi_wrapper, check=True, **options)["built"] is True


def test_no_compiler(options: Any, tmp_path: Path, run_module: Any) -> None:
    options["compiler"] = str(tmp_path / "g++")
    assert run_module(gaudi_ofi_wrapper, **options)["msg"].endswith("g++ is not on this host: install a C++ compiler.")
