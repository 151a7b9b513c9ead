"""The modules that programs for Gaudi import, over the simulated device (gaudi3-hpu-simulator, not Intel's plugin)."""

from gaudi3_hpu_simulator.load import refuse_beside_real

refuse_beside_real()


def __autoload() -> None:
    """Called by `import torch`. PT_HPU_AUTOLOAD=0 leaves the device out until this package is imported."""
    import os

    if os.environ.get("PT_HPU_AUTOLOAD", "1") != "0":
        import habana_frameworks.torch  # noqa: F401
