"""Where metrics are served."""

from __future__ import annotations

from pydantic import Field

from gaudi3_scale.config.section import Section


class MetricsConfig(Section):
    """Prometheus metrics, served by the first process of each node until it ends."""

    enabled: bool = Field(True, description="serve them")
    address: str = Field("127.0.0.1", min_length=1, description="address to listen on; use the cluster's")
    port: int = Field(9410, ge=0, le=65535, description="port to listen on; 0 = any free one, named in the log")
