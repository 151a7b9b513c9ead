"""What a cloud says of this node: its metadata service is asked every few seconds, in a thread of its own.

Paths, headers and fields are those of the providers' documentation:
AWS: "Spot Instance interruption notices", "EC2 instance rebalance recommendations", "Use IMDSv2".
Google Cloud: "Create and use Spot VMs" (detect preemption), "Query metadata server for maintenance event notices".
Azure: "Scheduled Events for Linux VMs", "Azure Instance Metadata Service".

A service that does not answer, or answers with an error, is no notice: it is said once, and asked again.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.interruption.notice import Notice

TIMEOUT = 2.0
"""Seconds for an answer; the services are on the host itself."""
TOKEN_SECONDS = 21600
"""The longest life AWS gives a token."""
GCP_PREEMPTED = 30.0
"""Seconds between a preemption and the forced stop, at best."""
GCP_MAINTENANCE = 60.0
"""Seconds between the change of `maintenance-event` and the maintenance."""
CLOCKS_APART = 2.0
"""Seconds from which on a node's clock counts as wrong."""
AZURE_FATAL = ("Preempt", "Terminate", "Reboot", "Redeploy")
"""Events that end the machine or its memory; a Freeze does neither."""

# Metadata must never be asked for through a proxy, whatever the environment says.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Metadata:
    """One provider's service."""

    name = ""

    def __init__(self, config: InterruptionConfig) -> None:
        self._config = config
        self.poll = config.poll

    def look(self) -> Notice | None:
        """Ask once; an OSError or ValueError means that no answer came, or none that makes sense."""
        raise NotImplementedError


class Aws(Metadata):
    """EC2 spot notices, two minutes ahead, over version 2 of the service, which wants a token."""

    name = "aws"

    def __init__(self, config: InterruptionConfig) -> None:
        super().__init__(config)
        self._root = config.aws_endpoint.rstrip("/")
        self._token = ""
        self._token_until = 0.0

    def look(self) -> Notice | None:
        """The spot action, else (if it counts) the rebalance recommendation; 404 means neither."""
        action = self._get("/latest/meta-data/spot/instance-action")
        if action is not None:
            said = _object(action[0])
            deadline = _by_own_clock(datetime.fromisoformat(str(said["time"])).timestamp(), action[1])
            return Notice("aws", f"AWS will {said['action']} this spot instance at {said['time']}", deadline)
        if self._config.rebalance:
            advice = self._get("/latest/meta-data/events/recommendations/rebalance")
            if advice is not None:
                return Notice(
                    "aws", f"AWS recommends since {_object(advice[0])['noticeTime']} to leave this spot instance"
                )
        return None

    def _get(self, path: str) -> tuple[str, Mapping[str, str]] | None:
        for attempt in (1, 2):
            if attempt == 2 or time.monotonic() >= self._token_until:
                self._fetch_token()
            try:
                return _ask(self._root + path, {"X-aws-ec2-metadata-token": self._token})
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return None
                if error.code != 401 or attempt == 2:  # 401: the token is no longer valid
                    raise
        return None

    def _fetch_token(self) -> None:
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
        self._token = _ask(self._root + "/latest/api/token", headers, "PUT")[0]
        self._token_until = time.monotonic() + TOKEN_SECONDS / 2


class Gcp(Metadata):
    """Preemption, about 30 seconds ahead, and maintenance that ends the machine, 60 seconds ahead."""

    name = "gcp"

    def __init__(self, config: InterruptionConfig) -> None:
        super().__init__(config)
        self._root = config.gcp_endpoint.rstrip("/") + "/computeMetadata/v1/instance/"
        self._etag = ""
        self._wait = max(1, round(config.poll))
        self.poll = 0.0  # the service itself waits, and answers as soon as the value changes

    def look(self) -> Notice | None:
        """The maintenance event as it is, and `preempted` as soon as it changes or the time is up."""
        event, _ = _ask(self._root + "maintenance-event", {"Metadata-Flavor": "Google"})
        if event.startswith("TERMINATE"):
            return Notice("gcp", f"Google Cloud announces {event}", time.time() + GCP_MAINTENANCE)
        query = ""
        if self._etag:  # what was seen last; without it a change before the first look would be waited for in vain
            values = {"wait_for_change": "true", "timeout_sec": self._wait, "last_etag": self._etag}
            query = "?" + urllib.parse.urlencode(values)
        preempted, headers = _ask(
            f"{self._root}preempted{query}",
            {"Metadata-Flavor": "Google"},
            timeout=TIMEOUT + (self._wait if query else 0),
        )
        self._etag = headers.get("ETag", "")
        self.poll = 0.0 if self._etag else self._config.poll
        if preempted == "TRUE":
            return Notice("gcp", "Google Cloud preempts this machine", time.time() + GCP_PREEMPTED)
        return None


class Azure(Metadata):
    """Scheduled Events; they name machines, of which this is one or not."""

    name = "azure"

    def __init__(self, config: InterruptionConfig) -> None:
        super().__init__(config)
        self._root = config.azure_endpoint.rstrip("/") + "/metadata/"
        self._machine = ""

    def look(self) -> Notice | None:
        """The earliest event that ends this machine."""
        if not self._machine:
            query = "instance/compute/name?api-version=2021-02-01&format=text"
            self._machine = _ask(self._root + query, {"Metadata": "true"})[0]
        answer, headers = _ask(self._root + "scheduledevents?api-version=2020-07-01", {"Metadata": "true"})
        notices = [
            Notice("azure", f"Azure announces {event['EventType']} of {self._machine}", _not_before(event, headers))
            for event in _object(answer).get("Events", ())
            if event["EventType"] in AZURE_FATAL and self._machine in event.get("Resources", ())
        ]
        return min(notices, key=Notice.remaining, default=None)


CLOUDS: dict[str, type[Metadata]] = {"aws": Aws, "gcp": Gcp, "azure": Azure}


def watch(config: InterruptionConfig, tell: Callable[[Notice], None], log: Callable[[str], None]) -> None:
    """Watch each of the configured clouds until one has a notice; daemon threads, which end with the process."""
    for name in config.sources:
        if name in CLOUDS:
            cloud = CLOUDS[name](config)
            threading.Thread(target=_watch, args=(cloud, tell, log), name=f"interruption-{name}", daemon=True).start()


def _watch(cloud: Metadata, tell: Callable[[Notice], None], log: Callable[[str], None]) -> None:
    silent = False
    while True:
        pause = cloud.poll
        try:
            notice = cloud.look()
            if silent:
                log(f"the metadata service of {cloud.name} answers again")
            silent = False
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not silent:
                log(
                    f"the metadata service of {cloud.name} does not tell whether this node is to leave "
                    f"({type(error).__name__}: {error}); asking on"
                )
            silent, notice, pause = True, None, max(pause, 1.0)
        if notice is not None:
            tell(notice)
            return
        time.sleep(pause)


def _ask(
    url: str, headers: Mapping[str, str], method: str = "GET", timeout: float | None = None
) -> tuple[str, Mapping[str, str]]:
    """The answer's text and headers."""
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    with _OPENER.open(request, timeout=timeout or TIMEOUT) as answer:
        return answer.read(65536).decode().strip(), answer.headers


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {text[:80]!r}")
    return value


def _by_own_clock(announced: float, headers: Mapping[str, str]) -> float:
    """A time that a service announced, as this node's clock will show it; both in seconds since 1970.

    The Date of the answer tells how far the clocks are apart. It has whole seconds: less than two are no difference.
    """
    date = headers.get("Date")
    apart = time.time() - parsedate_to_datetime(date).timestamp() if date else 0.0
    return announced + apart if abs(apart) >= CLOCKS_APART else announced


def _not_before(event: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """When an event may begin; empty once it has, and nobody says how long it takes."""
    text = str(event.get("NotBefore") or "")
    return _by_own_clock(parsedate_to_datetime(text).timestamp(), headers) if text else None
