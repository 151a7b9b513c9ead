"""The back end's function."""

from gaudi3_hpu_simulator.compiler import hpu_backend

__all__ = ["hpu_backend"]
