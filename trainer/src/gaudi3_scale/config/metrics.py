"""Where metrics are served."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from gaudi3_scale.config.section import Section


class MetricsConfig(Section):
    """Prometheus metrics, served by the first process of each node until it ends."""

    enabled: bool = Field(True, description="serve them")
    address: str = Field("127.0.0.1", min_length=1, description="address to listen on; use the cluster's")
    port: int = Field(9410, ge=0, le=65535, description="port to listen on; 0 = any free one, named in the log")
    certificate: str = Field("", description="file of a certificate: serve over TLS; '' = plain HTTP")
    key: str = Field("", description="file of its key, which the job's user can read")
    client_authority: str = Field("", description="file of an authority: serve only callers with a certificate of it")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.certificate) != bool(self.key) or (self.client_authority and not self.certificate):
            raise ValueError("TLS takes certificate and key together, and client_authority only with both: give them")
        return self
