"""Builds the C++ part against the installed torch; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = Path(__file__).parent

setup(
    ext_modules=[
        CppExtension(
            "gaudi3_hpu_simulator._C",
            sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc").glob("*.cpp")),
            # -O1: the extension only hands work over to torch's own kernels, and builds in half the time.
            extra_compile_args=["-O1", "-g0", "-Wall", "-Wno-unknown-pragmas", "-fvisibility=hidden"],
            extra_link_args=["-Wl,-s"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
