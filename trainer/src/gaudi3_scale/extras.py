"""What to type where an optional package is missing."""

from __future__ import annotations

PACKAGES = {
    "data": ("pyarrow>=20", "datasets>=4", "zstandard>=0.23"),
    "diffusion": ("diffusers>=0.42,<1",),
    "lora": ("peft>=0.18",),
    "migrate": ("libcst>=1.8,<2",),
    "mlflow": ("mlflow-skinny>=3",),
    "report": ("matplotlib>=3.10",),
    "s3": ("boto3>=1.40",),
    "tensorboard": ("tensorboard>=2.18",),
    "traces": ("opentelemetry-sdk>=1.45,<2", "opentelemetry-exporter-otlp-proto-http>=1.45,<2"),
    "tune": ("optuna>=5,<6",),
    "wandb": ("wandb>=0.20",),
}
"""By extra, as pyproject.toml has them."""


def how_to_install(extra: str) -> str:
    """A command that names the packages themselves: the trainer is on no package index yet.

    >>> how_to_install("tune")
    "pip install 'optuna>=5,<6'"
    """
    return f"pip install {' '.join(repr(each) for each in PACKAGES[extra])}"
