"""The trainer's metrics over TLS, on real connections."""

from __future__ import annotations

import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest
from pydantic import ValidationError
from test_status import progress

from gaudi3_scale.config import MetricsConfig
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.metrics import TrainingMetrics


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """A certificate that is its own authority, and its key."""
    made = (str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-newkey", "ec"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-out", made[0], "-keyout", made[1]], check=True, capture_output=True)
    return made


def ask(url: str, authority: str, own: tuple[str, str] | None) -> str:
    """A page, over TLS, with a certificate or without."""
    context = ssl.create_default_context(cafile=authority)
    if own:
        context.load_cert_chain(*own)
    with urllib.request.urlopen(url, context=context, timeout=5) as answer:
        return str(answer.read().decode())


def test_only_callers_with_a_certificate_are_served(tmp_path: Path) -> None:
    server, prometheus, stranger = (certificate(tmp_path, name) for name in ("server", "prometheus", "stranger"))
    url = TrainingMetrics(progress(), 1).serve(
        MetricsConfig(port=0, certificate=server[0], key=server[1], client_authority=prometheus[0])
    )
    assert url.startswith("https://127.0.0.1:")
    assert "gaudi_training_step " in ask(url, server[0], prometheus)
    for own in (None, stranger):
        with pytest.raises(OSError):
            ask(url, server[0], own)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainerError) as error:
        TrainingMetrics(progress(), 1).serve(MetricsConfig(port=0, certificate=str(tmp_path / "a"), key="b"))
    missing = f"Cannot load server certificate file '{tmp_path}/a' or its private key file 'b': [Errno 2] No such file"
    assert str(error.value) == (
        f"Metrics cannot be served over TLS ({missing} or directory): let metrics.certificate, metrics.key and "
        "metrics.client_authority be files that the job's user can read, or leave all three out."
    )


@pytest.mark.parametrize("given", [{"certificate": "a"}, {"key": "b"}, {"client_authority": "c"}])
def test_half_of_it_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="TLS takes certificate and key together"):
        MetricsConfig.model_validate(given)
