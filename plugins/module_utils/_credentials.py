# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A folder of generated passwords and TLS certificates, kept on the controller.

``keep_password`` and ``keep_certificate`` return what the folder holds, making it first where it is missing or
about to expire; ``Folder.changed`` names the files. Nothing is written in a dry run. Needs ``cryptography``
and ``bcrypt``, which the module that uses this checks for.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import ipaddress
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from ._files import make_folder, write_file
from ._refusal import Refusal

_BCRYPT_ROUNDS = 10


@dataclass(frozen=True)
class Password:
    """A password and the bcrypt hash of it that stays the same from run to run."""

    password: str
    hash: str


@dataclass(frozen=True)
class Certificate:
    """A server's certificate and key and the authority that signed it, as PEM text, and when the two end."""

    certificate: str
    private_key: str
    authority: str
    expires: str
    authority_expires: str


@dataclass(frozen=True)
class Lifetimes:
    """In days: of a server's certificate, of the authority's, and how long before the end to renew."""

    certificate: int = 397
    authority: int = 3650
    renew_before: int = 30


@dataclass
class Folder:
    """The files by name. ``dry_run`` remembers what would be written instead of writing it."""

    path: str
    dry_run: bool = False
    changed: list[str] = field(default_factory=list)
    _planned: dict[str, bytes] = field(default_factory=dict)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Holds the folder alone, so that hosts which run at once make one authority and not several."""
        if not os.path.isdir(self.path):
            self.changed.append(self.path)
            if self.dry_run:
                yield
                return
            make_folder(self.path, 0o700)
        self._restrict(self.path, 0o700)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def read(self, name: str) -> bytes | None:
        """Content of a file; None where there is none. Takes other users' permissions away from it."""
        if name in self._planned:
            return self._planned[name]
        path = os.path.join(self.path, name)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return None
        self._restrict(path, 0o600)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file in one step; mode 0600."""
        path = os.path.join(self.path, name)
        self.changed.append(path)
        if self.dry_run:
            self._planned[name] = content
            return
        write_file(path, content, 0o600)

    def _restrict(self, path: str, mode: int) -> None:
        if os.stat(path).st_mode & 0o777 & ~mode:
            self.changed.append(path)
            if not self.dry_run:
                os.chmod(path, mode)


def keep_password(folder: Folder, name: str) -> Password:
    """The password in ``NAME_password`` (made where missing; a person may write one there) and its hash."""
    content = folder.read(f"{name}_password")
    if content is None:
        content = secrets.token_urlsafe(24).encode() + b"\n"
        folder.write(f"{name}_password", content)
    password = content.strip()
    if not password or len(password) > 72:
        raise Refusal(
            f"{folder.path}/{name}_password holds {len(password)} bytes; write a password of 1 to 72 bytes "
            "into it, or delete the file to have one made."
        )
    hashed = (folder.read(f"{name}_password.bcrypt") or b"").strip()
    if not matches(password, hashed):
        hashed = hash_of(password)
        folder.write(f"{name}_password.bcrypt", hashed + b"\n")
    return Password(password.decode(), hashed.decode())


def hash_of(password: bytes) -> bytes:
    """A new bcrypt hash."""
    import bcrypt

    return bcrypt.hashpw(password, bcrypt.gensalt(_BCRYPT_ROUNDS))


def matches(password: bytes, hashed: bytes) -> bool:
    """Whether it is a hash of this password."""
    import bcrypt

    try:
        return bcrypt.checkpw(password, hashed)
    except ValueError:
        return False


def keep_certificate(
    folder: Folder, name: str, hosts: list[str], lifetimes: Lifetimes, now: datetime.datetime
) -> Certificate:
    """The certificate in ``NAME.crt`` for ``hosts``, signed by ``ca.crt``, renewed in time.

    A site with an authority of its own puts ca.crt, NAME.crt and NAME.key there and no ca.key: nothing is made.
    """
    authority = _authority(folder, lifetimes, now)
    certificate, key = folder.read(f"{name}.crt"), folder.read(f"{name}.key")
    end = now + datetime.timedelta(days=lifetimes.renew_before)
    fault = certificate_fault(certificate, key, authority.certificate, hosts, end)
    if fault:
        if authority.key is None:
            raise Refusal(
                f"{folder.path} has a ca.crt without its ca.key, so {name}.crt cannot be made here, and "
                f"{fault}; put one for {', '.join(hosts)} there as {name}.crt with its key as {name}.key."
            )
        certificate, key = issue(authority, hosts, lifetimes.certificate, now)
        folder.write(f"{name}.key", key)
        folder.write(f"{name}.crt", certificate)
    if certificate is None or key is None:  # certificate_fault() names a missing one, and both were just made then
        raise Refusal(f"{folder.path} has no {name}.crt with its key.")
    return described(certificate, key, authority.certificate)


def described(certificate: bytes, key: bytes, authority: bytes) -> Certificate:
    """The result for a server's certificate, its key and its authority's certificate."""
    ends = [_expiry(each).isoformat(timespec="seconds") for each in (certificate, authority)]
    return Certificate(certificate.decode(), key.decode(), authority.decode(), *ends)


@dataclass(frozen=True)
class Authority:
    """An authority's certificate, and its key where this may sign with it."""

    certificate: bytes
    key: bytes | None


def _authority(folder: Folder, lifetimes: Lifetimes, now: datetime.datetime) -> Authority:
    certificate, key = folder.read("ca.crt"), folder.read("ca.key")
    if certificate is not None and key is None:
        return Authority(certificate, None)
    # An authority outlives what it signs.
    needed = now + datetime.timedelta(days=lifetimes.certificate)
    if certificate is None or key is None or _expiry(certificate) < needed:
        certificate, key = issue(None, [], lifetimes.authority, now)
        folder.write("ca.key", key)
        folder.write("ca.crt", certificate)
    return Authority(certificate, key)


def certificate_fault(
    certificate: bytes | None, key: bytes | None, authority: bytes, hosts: list[str], until: datetime.datetime
) -> str:
    """Why a certificate does not serve, or nothing."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if certificate is None or key is None:
        return "it is not there"
    try:
        leaf = x509.load_pem_x509_certificate(certificate)
        if load_pem_private_key(key, None).public_key() != leaf.public_key():
            return "its key is another certificate's"
        parent = x509.load_pem_x509_certificate(authority)
        if leaf.issuer != parent.subject:
            return "it is not signed by ca.crt"
        leaf.verify_directly_issued_by(parent)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "it names no host"
    except InvalidSignature:
        return "it is not signed by ca.crt"
    except (TypeError, ValueError) as error:
        return f"it cannot be used ({error})"
    lacking = [name.value for name in _general_names(hosts) if name not in names]
    if lacking:
        return f"it is not for {', '.join(str(name) for name in lacking)}"
    if leaf.not_valid_after_utc < until:
        return f"it ends on {leaf.not_valid_after_utc:%Y-%m-%d}"
    return ""


def _general_names(hosts: list[str]):  # type: ignore[no-untyped-def]  # cryptography may be absent
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _expiry(certificate: bytes) -> datetime.datetime:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError as error:
        raise Refusal(
            f"A certificate in the folder cannot be read ({error}); delete it, and a new one is made."
        ) from error


def issue(authority: Authority | None, hosts: list[str], days: int, now: datetime.datetime) -> tuple[bytes, bytes]:
    """A certificate and its key: a server's, signed by ``authority``, or an authority's, signed by itself.

    A server's ends with its authority at the latest.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    # A new authority has a new name, so that a client which still trusts the old one is not misled by it.
    common_name = hosts[0][:64] if hosts else f"gaudi3.scale authority {now:%Y-%m-%d} {secrets.token_hex(3)}"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    if authority is None:
        issuer, signing_key, issuer_key = subject, key, key.public_key()
        end = now + datetime.timedelta(days=days)
    else:
        parent = x509.load_pem_x509_certificate(authority.certificate)
        signing_key = serialization.load_pem_private_key(authority.key or b"", None)  # type: ignore[assignment]
        issuer, issuer_key = parent.subject, parent.public_key()  # type: ignore[assignment]
        end = min(now + datetime.timedelta(days=days), parent.not_valid_after_utc)
    is_authority = authority is None
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of the hosts may be a little behind the controller's.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )
    if not is_authority:
        names = x509.SubjectAlternativeName(_general_names(hosts))
        # A client, too: Prometheus shows its own to exporters that serve nobody else.
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(names, critical=False).add_extension(purpose, critical=False)
    certificate = builder.sign(signing_key, hashes.SHA256())
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
