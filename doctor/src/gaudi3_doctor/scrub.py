"""Takes out of a report what is nobody's business: names and addresses of machines, serial numbers, secrets."""

from __future__ import annotations

import ipaddress
import math
import re
import socket
from collections.abc import Callable
from typing import Any

from .host import Host

_MAC = re.compile(r"(?<![\w:.-])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:.-])")
_GUID = re.compile(r"(?<![\w:.-])(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}(?![\w:.-])")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
# A version such as hl-1.24.0-fw-62.6.2.0 has letters, a dash or a fifth number beside it.
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:]|\.\d)")
_HOME = re.compile(r"(/home/|/Users/)[^/\s:'\"]+")
# Each begins at the beginning of a word and is bounded, so that a long text without blanks costs no more than another.
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b")
_LOGIN = re.compile(r"(\b\w{1,20}://)[^/\s@]{1,200}@")
_SECRET = re.compile(
    r"((?<![\w-])[\w-]{0,60}?(?:token|secret|passw(?:or)?d|credential|api[_-]?key|authorization|private_?key|passcode"
    r"|passphrase|(?<=_)(?:pat|pwd|pass|sas)(?![\w-])|\bpgpass(?![\w-]))[\w-]{0,60}[\"']?\s{0,4}[=:]\s{0,4})"
    # A header has a scheme before its secret.
    r"(\"[^\"]*\"|'[^']*'|(?:(?:Token|ApiKey|Api-Key|Digest|Negotiate|SharedKey|AWS4-HMAC-SHA256)\s{1,4})?\S+)",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"((?:(?<=[?&])(?:sig|signature)|X-(?:Amz|Goog)-(?:Signature|Security-Token))=)[\w%+/.=-]{8,}", re.IGNORECASE
)
_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.S,
)
# Forms of tokens by which their issuers' are known, as those that jobs are refused with.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:hf_|gh[pousr]_|npm_|gsk_|xai-|r8_|[sr]k_(?:live|test)_)[A-Za-z0-9]{10,}|AIza[\w-]{20,}|"
    r"(?:github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-|xox[abeprs]-|xapp-|pypi-|dckr_[op]at_|hv[sb]\.|ya29\.|nvapi-|tskey-|"
    r"lsv2_[ps][tk]_|dop_v1_|wandb_v1_)[\w-]{10,}|dapi[0-9a-f]{16,}|"
    r"sk-(?=[\w-]*\d)[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]{4,})"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[\w.+/=~-]{8,}", re.IGNORECASE)
_SCHEME = re.compile(
    r"(:\s{0,4}[\"']?(?:Token|ApiKey|Api-Key|Digest|Negotiate|SharedKey|AWS4-HMAC-SHA256))\s+[\w.+/:=~-]{8,}",
    re.IGNORECASE,
)
_WEBHOOK = re.compile(
    r"(hooks\.slack\.com/(?:services|triggers|workflows)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/webhookb2)"
    r"/[\w/@-]{8,}"
)
_HASH = re.compile(r"\$(?:1|2[aby]|5|6|y|argon2\w{0,2})\$[\w./$=,+-]{8,}")
# Of an option, one word is the number; of a line or a cell of a table, all that follows.
_OPTION = re.compile(r"(\b(?:serial|\w{0,20}uuid|asset)\w{0,40}=)[^\s|]+", re.IGNORECASE)
_SERIAL = re.compile(
    r"(\b(?:serial|\w{0,20}uuid|unique id|asset)[\w ]{0,40}?(?:\s{0,60}[:|]|\s{1,60}=)\s{0,9})([^|\s][^|\n]*)",
    re.IGNORECASE,
)
_KEPT_ADDRESSES = ("127.0.0.1", "0.0.0.0", "::", "::1")
_COMMON = frozenset({"localhost", "localdomain", "broadcasthost", "ubuntu", "debian", "none"})

Replace = Callable[[str], str]


def scrubber(host: Host) -> Replace:
    """A function that takes out of a text what this machine must not tell of itself."""
    names = _names(host)
    # The longest first: a name may begin with another one.
    ordered = sorted(names, key=len, reverse=True)
    machines = [re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])(?:\.[\w-]+)*", re.IGNORECASE) for name in ordered]
    domains = [
        re.compile(rf"(?<![\w.-])(?:[\w-]{{1,63}}\.){{0,8}}{re.escape(name)}(?![\w.-])", re.IGNORECASE)
        for name in _domains(host)
    ]

    def replace(text: str) -> str:
        text = _KEY.sub("<secret>", text)
        text = _LOGIN.sub(r"\1<login>@", text)
        text = _SIGNED.sub(r"\1<secret>", text)
        text = _MAIL.sub("<mail>", text)
        text = _BEARER.sub(r"\1 <secret>", text)
        text = _SCHEME.sub(r"\1 <secret>", text)
        text = _WEBHOOK.sub(r"\1/<secret>", text)
        text = _HASH.sub("<secret>", text)
        text = _SECRET.sub(r"\1<secret>", text)
        text = _TOKEN.sub("<secret>", text)
        text = _OPTION.sub(r"\1<number>", text)
        text = _SERIAL.sub(r"\1<number>", text)
        text = _MAC.sub("<mac>", text)
        text = _GUID.sub("<guid>", text)
        text = _UUID.sub("<uuid>", text)
        text = _HOME.sub(r"\1<user>", text)
        for pattern in domains:
            text = pattern.sub("<host>", text)
        for pattern in machines:
            text = pattern.sub("<host>", text)
        text = _IPV4.sub(_address, text)
        return _IPV6.sub(_address, text)

    return replace


def scrub(value: Any, replace: Replace) -> Any:
    """The same value with every text in it replaced, names of keys too, as JSON can have it."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {replace(str(key)): scrub(each, replace) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(each, replace) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    return value


def _address(match: re.Match[str]) -> str:
    text = match.group()
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text  # a time of day, a version or a PCI address
    return text if text in _KEPT_ADDRESSES else "<address>"


def _names(host: Host) -> set[str]:
    """This machine's names, and those that its table of hosts has for others."""
    found = {socket.gethostname(), (host.value("/etc/hostname") or "")}
    for line in (host.read("/etc/hosts") or "").splitlines():
        words = line.partition("#")[0].split()
        found.update(word for word in words[1:] if not word.startswith(("ip6-", "localhost")))
    short = {name.partition(".")[0] for name in found}
    return {name for name in found | short if len(name) > 1 and name.lower() not in _COMMON and not name.isdigit()}


def _domains(host: Host) -> set[str]:
    """Domains of this machine's names and of its resolver."""
    found = {name.partition(".")[2] for name in (socket.gethostname(), host.value("/etc/hostname") or "")}
    for line in (host.read("/etc/resolv.conf") or "").splitlines():
        words = line.split()
        if words and words[0] in ("search", "domain"):
            found.update(words[1:])
    return {name for name in found if "." in name}
