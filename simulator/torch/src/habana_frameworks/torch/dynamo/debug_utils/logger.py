"""Logs of the compiler."""

from habana_frameworks.torch.utils.debug.logger import Logger


def get_compile_backend_logger() -> Logger:
    """That of its passes."""
    return Logger("PT_COMPILE")


def get_fx_graph_logger() -> Logger:
    """That of its graphs."""
    return Logger("PT_COMPILE FX GRAPH")
