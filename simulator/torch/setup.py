"""Builds the C++ part against the installed torch, and the plugin's metadata; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = Path(__file__).parent

# Libraries read the release of Intel's software from the metadata of habana-torch-plugin (optimum-habana from
# `pip list`, vllm-gaudi from importlib.metadata). The public part is the build of the collection's default release.
# The local label says whose metadata they are: `load.refuse_beside_real` goes by it.
PLUGIN = "1.23.0.695+gaudi3.simulator"
METADATA = f"""\
Metadata-Version: 2.1
Name: habana-torch-plugin
Version: {PLUGIN}
Summary: Metadata alone, of gaudi3-hpu-simulator: Intel's plugin is not installed
"""


class BuildWithPluginMetadata(build_py):
    """Puts the metadata beside the packages. A wheel may hold one *.dist-info only, so these are an *.egg-info."""

    def run(self) -> None:
        """Build the packages, then write the metadata."""
        super().run()
        folder = Path(self.build_lib) / f"habana_torch_plugin-{PLUGIN}.egg-info"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "PKG-INFO").write_text(METADATA)


setup(
    ext_modules=[
        CppExtension(
            "gaudi3_hpu_simulator._C",
            sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc" / "units").glob("*.cpp")),
            # -O1: the extension only hands work over to torch's own kernels, and builds in half the time.
            extra_compile_args=["-O1", "-g0", "-Wall", "-Wno-unknown-pragmas", "-fvisibility=hidden"],
            extra_link_args=["-Wl,-s"],
        )
    ],
    cmdclass={"build_ext": BuildExtension, "build_py": BuildWithPluginMetadata},
)
