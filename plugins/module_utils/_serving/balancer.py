# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""HAProxy in front of a node's replicas: TLS, a key, allowed paths, retries, and metrics, as one configuration.

Written for HAProxy 2.6 (Debian 12) and later. A request is asked of another replica until its answer begins; vLLM's
middleware of this collection lets no answer begin before its first token. Afterwards a lost replica breaks the stream,
which every client sees: the answer ends without its last chunk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._host.address import authority

FOLDER = "/etc/gaudi3-scale/serving"
RUNTIME = "/run/gaudi3-serving-balancer"
BACKEND = "replicas"
#: HAProxy's largest weight.
_HEAVIEST = 256
_PATH = re.compile(r"/[A-Za-z0-9._/-]+")


@dataclass(frozen=True)
class Balancer:
    """What it serves, and how."""

    address: str
    port: int
    metrics_port: int
    replicas: Mapping[str, int]
    """Ports on this node by the replicas' names."""
    peers: Mapping[str, str] = field(default_factory=dict)
    """Addresses of other hosts that serve the same, by their names."""
    paths: Sequence[str] = ("/v1/models", "/v1/completions", "/v1/chat/completions")
    canary: str = ""
    """The replica that serves another version."""
    canary_weight: int = 10
    """Its share of the requests, in percent."""
    first_token_seconds: int = 600
    """For how long an answer may say nothing."""
    metrics_tls: bool = False
    group: str = "gaudi-serving"
    runtime: str = RUNTIME
    folder: str = FOLDER


def weights(balancer: Balancer) -> dict[str, int]:
    """Weights by replica: the canary gets its share of all requests, the others the rest in equal parts."""
    others = [name for name in balancer.replicas if name != balancer.canary]
    if not balancer.canary or not others:
        return dict.fromkeys(balancer.replicas, 100)
    share = balancer.canary_weight
    # Both as whole numbers up to HAProxy's largest, as large as they can be.
    canary, other = share * len(others), 100 - share
    scale = _HEAVIEST / max(canary, other)
    found = dict.fromkeys(others, max(1, round(other * scale)))
    return {**found, balancer.canary: max(1, round(canary * scale))}


def allowed(paths: Sequence[str]) -> bool:
    """Whether all of these may stand in a configuration."""
    return bool(paths) and all(_PATH.fullmatch(path) for path in paths)


def configuration(balancer: Balancer) -> str:
    """The whole file."""
    parts = [_general(balancer), _api(balancer), _replicas(balancer), _metrics(balancer)]
    return "\n".join(parts)


def _error(status: int, message: str, kind: str) -> str:
    """An answer in the form in which vLLM itself has errors."""
    body = json.dumps({"error": {"message": message, "type": kind, "code": status}})
    return f"status {status} content-type application/json string '{body}'"


def _general(balancer: Balancer) -> str:
    return f"""global
    log stdout format raw local0 info
    stats socket {balancer.runtime}/admin.sock mode 660 group {balancer.group} level admin
    stats timeout 1m
    maxconn 4096
    # A request up to this size is kept until its answer begins, and can be asked again.
    tune.bufsize 262144
    ssl-default-bind-options ssl-min-ver TLSv1.2
    ssl-load-extra-del-ext
    # Streams that are running when the configuration is read again end by themselves.
    hard-stop-after 1h

defaults
    mode http
    log global
    option httplog
    option dontlognull
    option http-buffer-request
    timeout connect 3s
    # A server that computes may answer late; one that is gone refuses at once.
    timeout check 10s
    timeout http-request 30s
    timeout http-keep-alive 15s
    timeout client {balancer.first_token_seconds}s
    timeout server {balancer.first_token_seconds}s
    timeout queue 30s
"""


def _api(balancer: Balancer) -> str:
    unknown = _error(404, "There is nothing at this path.", "NotFoundError")
    denied = _error(401, "Give the key of this service as Authorization: Bearer KEY.", "AuthenticationError")
    ready = "status 200 content-type text/plain string ready"
    none = _error(503, "No replica is ready.", "ServiceUnavailableError")
    return f"""frontend api
    bind {authority(balancer.address, balancer.port)} ssl crt {balancer.folder}/server.crt alpn h2,http/1.1
    # Without a key: whether somebody here answers. The second is of this host alone, for other balancers.
    http-request return {ready} if {{ path /health }} {{ nbsrv({BACKEND}) gt 0 }}
    http-request return {ready} if {{ path /health/host }} {{ nbsrv(host) gt 0 }}
    http-request return {none} if {{ path /health /health/host }}
    http-request return {denied} unless {{ http_auth_bearer,sha2(256),hex -m str -i -f {balancer.folder}/keys }}
    http-request return {unknown} unless {{ path {" ".join(balancer.paths)} }}
    use_backend host if {{ req.hdr(X-Gaudi-Peer) -m found }}
    default_backend {BACKEND}
"""


def _replicas(balancer: Balancer) -> str:
    heavy, canary = weights(balancer), bool(balancer.canary)
    lines = [
        f"backend {BACKEND}",
        # A canary's share is one of requests; else whoever has the fewest running gets the next.
        f"    balance {'roundrobin' if canary else 'leastconn'}",
        "    http-request set-header X-Gaudi-Peer 1",
        "    option httpchk GET /health",
        "    http-check expect status 200",
        "    option redispatch 1",
        "    retries 3",
        "    retry-on conn-failure empty-response 500 502 503 504",
        "    option allbackups",
        "    default-server check inter 1s fastinter 200ms downinter 500ms fall 3 rise 1",
        # A server that is gone is out at the first request that finds it so.
        "    default-server observe layer4 error-limit 1 on-error mark-down",
    ]
    for name, port in balancer.replicas.items():
        lines.append(f"    server {name} 127.0.0.1:{port} weight {heavy[name]}")
    for name, address in balancer.peers.items():
        tls = f"ssl verify required ca-file {balancer.folder}/ca.crt verifyhost {name} sni str({name})"
        check = "check-ssl check-sni " + name
        # Only where no replica of this host answers.
        lines.append(f"    server {name} {authority(address, balancer.port)} backup {tls} {check}")
    lines += ["", "backend host", "    balance leastconn"]
    lines += [f"    server {name} 127.0.0.1:{port} track {BACKEND}/{name}" for name, port in balancer.replicas.items()]
    return "\n".join(lines) + "\n"


def _metrics(balancer: Balancer) -> str:
    tls = f" ssl crt {balancer.folder}/server.crt ca-file {balancer.folder}/ca.crt verify required"
    lines = [
        "frontend metrics",
        f"    bind {authority(balancer.address, balancer.metrics_port)}{tls if balancer.metrics_tls else ''}",
        "    http-request use-service prometheus-exporter if { path /metrics }",
    ]
    pages = {name: f"/{name}/metrics" for name in balancer.replicas}
    lines += [f"    http-request deny deny_status 404 unless {{ path {' '.join(pages.values())} }}"]
    lines += [f"    use_backend metrics-{name} if {{ path {page} }}" for name, page in pages.items()]
    lines += [""]
    for name, port in balancer.replicas.items():
        lines += [f"backend metrics-{name}", "    http-request set-path /metrics"]
        lines += [f"    server {name} 127.0.0.1:{port}", ""]
    return "\n".join(lines)
