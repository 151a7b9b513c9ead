# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A signed apt repository, read and verified before apt uses it.

``check`` walks the chain that apt will trust: key, signature of InRelease by that key, digest of Packages in
InRelease. It raises Refusal with one sentence at the first broken link. Nothing is written.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from .._refusal import Refusal
from .openpgp import Verdict, dearmor, fingerprints, only

#: Fetches a URL: its content, or Refusal.
Fetch = Callable[[str], bytes]
#: Verifies a clear-signed text with a binary keyring: the verdict, and the text that the signature covers.
Verify = Callable[[bytes, bytes], "tuple[Verdict, str]"]


class Unreachable(Exception):
    """Why one host did not give a file."""


@dataclass(frozen=True)
class Source:
    """Where a repository is and whose signature it must have."""

    url: str
    suite: str
    key_url: str
    #: Fingerprint that the signing key must have; empty: the key is trusted on first use.
    fingerprint: str = ""
    component: str = "main"
    architecture: str = "amd64"

    def entry(self, keyring: str, fingerprint: str) -> str:
        """The sources.list line. It names file and key, so that no key counts which gets into the file later."""
        return f"deb [signed-by={keyring},{fingerprint}] {self.url} {self.suite} {self.component}\n"

    def key(self, keyring: bytes | None) -> str:
        """The key that ``keyring`` holds, if it holds this source's and no other; empty otherwise."""
        keys = fingerprints(keyring or b"")
        return keys[0] if len(keys) == 1 and self.fingerprint in ("", keys[0]) else ""

    def usable(self, keyring: bytes | None) -> bytes | None:
        """The part of ``keyring`` by which this source may be verified; None where there is none."""
        if keyring is None or not self.fingerprint:
            return keyring
        return only(keyring, self.fingerprint) or None


@dataclass(frozen=True)
class Repository:
    """A repository whose signature and index were found good."""

    #: The key that signed it, and no other.
    keyring: bytes
    fingerprint: str
    #: Versions on offer, by package name.
    versions: dict[str, list[str]] = field(default_factory=dict)
    #: Where each package lies below the repository's URL, by name and version.
    places: dict[tuple[str, str], str] = field(default_factory=dict)


def check(source: Source, trusted: bytes | None, fetch: Fetch, verify: Verify) -> Repository:
    """Verify ``source``; ``trusted`` is an earlier run's keyring, which no new key may quietly replace."""
    keyring = source.usable(trusted) or _fetch_key(source, fetch)
    signed = fetch(f"{source.url}/dists/{source.suite}/InRelease")
    verdict, text = verify(signed, keyring)
    signer = _signer(source, keyring, verdict)
    release = _digests(source, text)
    path = f"{source.component}/binary-{source.architecture}/Packages.gz"
    digest = release.get(path)
    if digest is None:
        raise Refusal(
            f"The repository {source.url} lists no {path} for suite {source.suite}; check synapseai_apt_suite."
        )
    packed = fetch(f"{source.url}/dists/{source.suite}/{path}")
    if hashlib.sha256(packed).hexdigest() != digest:
        raise Refusal(
            f"{source.url}/dists/{source.suite}/{path} is not what the signed InRelease says (SHA-256 differs); do "
            "not install from it before its owner has explained the change."
        )
    index = gzip.decompress(packed).decode()
    return Repository(only(keyring, signer), signer, package_versions(index), package_places(index))


def _fetch_key(source: Source, fetch: Fetch) -> bytes:
    try:
        keyring = dearmor(fetch(source.key_url))
    except ValueError as error:
        raise Refusal(f"{source.key_url} is not a signing key: {error}; check synapseai_key_url.") from error
    usable = source.usable(keyring)
    if usable is None:
        raise Refusal(
            f"The key at {source.key_url} has fingerprint {', '.join(fingerprints(keyring))}, not "
            f"{source.fingerprint} as synapseai_key_fingerprint says; find out which is right before you go on."
        )
    return usable


def _signer(source: Source, keyring: bytes, verdict: Verdict) -> str:
    where = f"{source.url}/dists/{source.suite}/InRelease"
    if verdict.fault == "bad":
        raise Refusal(
            f"{where} was changed after it was signed (bad signature of key {verdict.key}); do not use this repository."
        )
    if verdict.fault == "expired":
        raise Refusal(
            f"{where} is signed with key {verdict.key}, which has expired or was revoked; get the vendor's present "
            "key and give its fingerprint as synapseai_key_fingerprint."
        )
    if verdict.fingerprint is None:
        raise Refusal(
            f"{where} is signed with key {verdict.key or '(none)'}, not with the trusted key "
            f"{', '.join(fingerprints(keyring))}; if the vendor has announced a new key, give its fingerprint as "
            "synapseai_key_fingerprint."
        )
    if source.fingerprint and verdict.fingerprint != source.fingerprint:
        raise Refusal(
            f"{where} is signed with key {verdict.fingerprint}, not with {source.fingerprint} as "
            "synapseai_key_fingerprint says; find out which is right before you go on."
        )
    return verdict.fingerprint


def _digests(source: Source, text: str) -> dict[str, str]:
    """SHA-256 digests of a Release text that has not expired, by path."""
    until = re.search(r"^Valid-Until: (.+)$", text, re.M)
    if until and _moment(until.group(1)) < time.time():
        raise Refusal(
            f"The index of {source.url} {source.suite} expired on {until.group(1)}; refresh the mirror, or correct "
            "the node's clock."
        )
    return {path: digest for digest, path in re.findall(r"^ ([0-9a-f]{64}) +\d+ (\S+)$", text, re.M)}


def _moment(text: str) -> float:
    from calendar import timegm

    return timegm(time.strptime(text.replace("GMT", "UTC"), "%a, %d %b %Y %H:%M:%S UTC"))


def package_versions(index: str) -> dict[str, list[str]]:
    """Versions by package name, from the text of a Packages file."""
    versions: dict[str, list[str]] = {}
    name = ""
    for line in index.splitlines():
        if line.startswith("Package: "):
            name = line[9:].strip()
        elif line.startswith("Version: ") and name:
            versions.setdefault(name, []).append(line[9:].strip())
    return versions


def package_places(index: str) -> dict[tuple[str, str], str]:
    """Paths of packages by name and version, from the text of a Packages file."""
    places = {}
    for stanza in index.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Filename): *(\S+)", stanza, re.M))
        if len(fields) == 3:
            places[fields["Package"], fields["Version"]] = fields["Filename"]
    return places


_REDIRECTS = 5


def follow(url: str, redirection: Callable[[str], str]) -> None:
    """Ask for a file wherever it is redirected to; Refusal names the host that does not give it.

    ``redirection`` asks one host: where it sends one on to, empty where it has the file; Unreachable where it has not.
    """
    here = url
    for _hop in range(_REDIRECTS + 1):
        try:
            there = redirection(here)
        except Unreachable as error:
            if here == url:
                raise Refusal(f"{url} cannot be downloaded ({error}); ask whoever runs this repository.") from error
            host = urlsplit(here).netloc
            raise Refusal(
                f"{url} is redirected to the host {host}, which does not give it ({error}); let the node's proxy and "
                f"firewall admit {host} besides {urlsplit(url).netloc}."
            ) from error
        if not there:
            return
        here = urljoin(here, there)
    raise Refusal(f"{url} is redirected more than {_REDIRECTS} times; ask whoever runs this repository.")


def missing_release(repository: Repository, packages: list[str], release: str) -> str:
    """One sentence where the repository does not have all ``packages`` at ``release``; empty where it has."""
    unknown = [name for name in packages if name not in repository.versions]
    if unknown:
        return f"The repository has no package {', '.join(unknown)}; correct synapseai_packages."
    lacking = [name for name in packages if release not in repository.versions[name]]
    if not lacking:
        return ""
    common = set.intersection(*(set(repository.versions[name]) for name in packages))
    offered = ", ".join(sorted(common, key=_numbers)) or "no release that all of them have"
    what = "" if lacking == packages else f" of {', '.join(lacking)}"
    return f"The repository has no {release}{what}; it has {offered}: set synapseai_release to one of these."


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


@dataclass(frozen=True)
class Entry:
    """One active entry of a sources file, in either of apt's two forms."""

    urls: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]


_LINE = re.compile(r"\s*deb(?:-src)?\s+(?:\[[^]]*\]\s*)?(\S+)\s+(\S+)\s*(.*)")


def entries(text: str) -> list[Entry]:
    """The entries of a sources file that count."""
    lines = [line.partition("#")[0] for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = []
    for match in filter(None, map(_LINE.fullmatch, lines)):
        found.append(Entry((match[1].rstrip("/"),), (match[2],), tuple(match[3].split())))
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = {name.lower(): " ".join(value.split()) for name, value in _FIELD.findall(stanza)}
        if "uris" in fields and fields.get("enabled", "yes") != "no":
            urls = tuple(url.rstrip("/") for url in fields["uris"].split())
            found.append(
                Entry(urls, tuple(fields.get("suites", "").split()), tuple(fields.get("components", "").split()))
            )
    return found


#: A field of a deb822 file with its continuation lines.
_FIELD = re.compile(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", re.M)


def other_sources(files: dict[str, str], url: str, own: str) -> list[str]:
    """Source files other than ``own`` that name ``url``; apt refuses one repository with two keys."""
    bare = url.rstrip("/")
    return [
        path
        for path, text in sorted(files.items())
        if path != own and any(bare in entry.urls for entry in entries(text))
    ]


def names_only(text: str, url: str) -> bool:
    """Whether a source file names ``url`` and no other repository."""
    return {each for entry in entries(text) for each in entry.urls} == {url.rstrip("/")}


def lacks_component(files: dict[str, str], suite: str, component: str, url: str) -> bool:
    """Whether the distribution's sources of a suite are there, and none has the component; ``url`` is not its own."""
    distributions = [
        entry
        for text in files.values()
        for entry in entries(text)
        if url.rstrip("/") not in entry.urls and any(each.partition("-")[0] == suite for each in entry.suites)
    ]
    return bool(distributions) and not any(component in entry.components for entry in distributions)
