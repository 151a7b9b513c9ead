"""vllm-gaudi's detection of hardware and build, without vLLM: `vllm_detection.py hw|build|mode|config`."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path


def main(what: str) -> None:
    """Import the module of the plugin without the plugin's own start, which needs vLLM."""
    package = types.ModuleType("vllm_gaudi")
    package.__path__ = [str(Path(os.environ["CONTRACT_REPOSITORY"]) / "vllm_gaudi")]
    sys.modules["vllm_gaudi"] = package
    from vllm_gaudi.extension import environment

    if what == "hw":
        assert environment._get_hw(None) == "gaudi3", environment._get_hw(None)
    elif what == "mode":
        assert environment._get_pt_bridge_mode(None) == "eager", environment._get_pt_bridge_mode(None)
    else:
        from packaging.version import Version

        build = environment._get_build(None)
        assert build, "no version of habana-torch-plugin"
        assert Version(build) >= Version("1.18.0"), build
        print(f"build {build}")
    print("detected")


if __name__ == "__main__":
    main(sys.argv[1])
