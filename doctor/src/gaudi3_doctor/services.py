"""Names of the metrics that an exporter on this machine serves: never their values."""

from __future__ import annotations

import http.client
import re
import socket

from .host import Host, Options, Result

_LISTENING = "0A"
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s")
_LABEL = re.compile(r'(\w+)="')
_OF_THE_CARDS = re.compile(r"habana|gaudi|hpu|^hl_", re.IGNORECASE)
_MOST = 4 * 1024 * 1024


def metrics(host: Host, options: Options) -> Result:
    """One page of each exporter of the cards' metrics, as names, types and names of labels."""
    places = [place for port in options.exporter_ports for place in _listeners(host, port)]
    if not places:
        ports = ", ".join(map(str, options.exporter_ports))
        return Result(not_tried=f"nothing listens on port {ports}")
    result = Result()
    for address, port in places:
        try:
            page = _page(address, port)
        except (OSError, http.client.HTTPException) as error:
            result.odd.append(f"the exporter on port {port} does not answer: {type(error).__name__}: {error}")
            continue
        found = families(page)
        result.data[str(port)] = found
        if not any(_OF_THE_CARDS.search(name) for name in found):
            result.odd.append(f"the page on port {port} has no metric of a card")
    return result


def families(page: str) -> dict[str, dict[str, object]]:
    """Type, help and labels of each metric of a page."""
    found: dict[str, dict[str, object]] = {}
    for line in page.splitlines():
        words = line.split(" ", 3)
        if line.startswith(("# TYPE ", "# HELP ")) and len(words) == 4:
            found.setdefault(words[2], {"samples": 0})[words[1].lower()] = words[3]
        match = _SAMPLE.match(line)
        if match:
            name = match.group(1)
            entry = found.setdefault(name, {"samples": 0})
            entry["samples"] = int(str(entry["samples"])) + 1
            entry["labels"] = _LABEL.findall(match.group(2) or "")
    return found


def _listeners(host: Host, port: int) -> list[tuple[str, int]]:
    """Addresses of this machine on which something listens on a TCP port, from the kernel's tables."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (host.read(table, _MOST) or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == _LISTENING:
                address, _, number = fields[1].partition(":")
                if int(number, 16) == port:
                    found.add(_address(address))
    if found & {"0.0.0.0", "::"}:
        return [("127.0.0.1", port)]
    return [(address, port) for address in sorted(found)]


def _address(digits: str) -> str:
    """An address of these tables: words of four bytes, each in the machine's order."""
    raw = b"".join(bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


def _page(address: str, port: int) -> str:
    connection = http.client.HTTPConnection(address, port, timeout=20)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != 200:
            raise http.client.HTTPException(f"status {answer.status}")
        return answer.read(_MOST).decode("utf-8", "replace")
    finally:
        connection.close()
