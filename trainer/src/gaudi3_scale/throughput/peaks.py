"""Dense peak FLOP/s of accelerators, each with its source; a device that is not listed here has none.

A model FLOPs utilization is only as true as the peak below it, so nothing is guessed: names match exactly, as torch
reports them, figures with structured sparsity are halved, and what could not be confirmed is left out (FP32 and FP16
of Gaudi, FP8 of Gaudi 2, H200 NVL).
"""

from __future__ import annotations

from dataclasses import dataclass

READ = "2026-11-21"
INTEL = (
    'Intel, "Intel Gaudi 3 AI Accelerator: Architected for Gen AI Training and Inference", Hot Chips, August 2024 '
    f"(read {READ}; a later 1856 for Gaudi 3 is in print too)"
)
A100 = f"NVIDIA A100 datasheet 1758950-r4 (read {READ})"
HOPPER = (
    "NVIDIA H100 architecture white paper and product page, figures with sparsity halved "
    f"(in print 989.4 dense; read {READ})"
)
H100_PCIE = f"NVIDIA H100 product brief, figures with sparsity (1,513; 756; 3,026) halved (read {READ})"
H100_NVL = f"NVIDIA H100 product page, figure with sparsity (1,671) halved, as torchtitan does (read {READ})"
H200 = f"NVIDIA H200 product page, figure with sparsity (1,979) halved: the H100 SXM's compute (read {READ})"


@dataclass(frozen=True)
class Peak:
    """Dense peaks of one device in FLOP/s, by the type its matrix products are computed in."""

    flops: dict[str, float]
    source: str


_A100 = Peak({"bfloat16": 312e12, "float16": 312e12, "tf32": 156e12, "float32": 19.5e12}, A100)
_H100_SXM = Peak(
    {"bfloat16": 989.4e12, "float16": 989.4e12, "float8": 1978.9e12, "tf32": 494.7e12, "float32": 66.9e12}, HOPPER
)
_H100_PCIE = Peak(
    {"bfloat16": 756e12, "float16": 756e12, "float8": 1513e12, "tf32": 378e12, "float32": 51e12}, H100_PCIE
)

PEAKS: dict[str, Peak] = {
    "GAUDI3": Peak({"bfloat16": 1835e12, "float8": 1835e12}, INTEL),
    "GAUDI2": Peak({"bfloat16": 432e12}, INTEL),
    "NVIDIA A100-SXM4-40GB": _A100,
    "NVIDIA A100-SXM4-80GB": _A100,
    "NVIDIA A100-PCIE-40GB": _A100,
    "NVIDIA A100 80GB PCIe": _A100,
    "NVIDIA H100 80GB HBM3": _H100_SXM,
    "NVIDIA H100 PCIe": _H100_PCIE,
    "NVIDIA H100 NVL": Peak({"bfloat16": 835e12, "float16": 835e12}, H100_NVL),
    "NVIDIA H200": Peak({"bfloat16": 989.4e12, "float16": 989.4e12}, H200),
}
"""By the exact name that `torch.cuda.get_device_name()` or `torch.hpu.get_device_name()` gives."""


def peak_flops(name: str | None, dtype: str) -> float | None:
    """Dense peak of the device of this name in FLOP/s; None where the device, or the type on it, is not known.

    `dtype` is a key of `Peak.flops`; `tf32` is float32 whose products may be rounded.
    """
    peak = PEAKS.get(name or "")
    return peak.flops.get(dtype) if peak else None


def matmul_dtype(precision: str, tf32: bool = False) -> str:
    """The type in which a Lightning precision (such as `bf16-mixed`) computes matrix products."""
    bits = precision.partition("-")[0]
    names = {"bf16": "bfloat16", "16": "float16", "32": "tf32" if tf32 else "float32", "64": "float64", "fp8": "float8"}
    return names.get(bits, bits)
