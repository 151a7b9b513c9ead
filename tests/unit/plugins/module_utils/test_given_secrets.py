"""Secrets that are handed over: used as they are, checked first, and kept nowhere."""

from __future__ import annotations

import datetime
from typing import Any

import bcrypt
import pytest
from cryptography import x509

from ansible_collections.gaudi3.scale.plugins.module_utils import _given_secrets as given_secrets
from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import (
    Authority,
    Certificate,
    Lifetimes,
    hash_of,
    issue,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._given_secrets import Given
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
HOSTS = ["10.89.78.3", "monitor-1"]
CA, CA_KEY = issue(None, [], 3650, NOW)
OTHER, OTHER_KEY = issue(None, [], 3650, NOW)
LEAF, LEAF_KEY = issue(Authority(CA, CA_KEY), HOSTS, 20, NOW)
AUTHORITY = {"ca_certificate": CA.decode(), "ca_key": CA_KEY.decode()}
SERVER = {"web_certificate": LEAF.decode(), "web_key": LEAF_KEY.decode()}


def days(number: float) -> datetime.datetime:
    return NOW + datetime.timedelta(days=number)


def certificate(values: dict[str, str], *present: bytes, now: datetime.datetime = NOW) -> Certificate | None:
    return Given(values, [text.decode() for text in present]).certificate("web", HOSTS, Lifetimes(), now)


def test_a_servers_certificate_is_used_until_it_ends_with_or_without_the_authoritys_key() -> None:
    for given in (SERVER | {"ca_certificate": CA.decode()}, SERVER | AUTHORITY):
        # A vault's certificates may live shorter than the time before which the role would renew its own.
        found = certificate(given, now=days(19))
        assert found == Certificate(
            LEAF.decode(), LEAF_KEY.decode(), CA.decode(), "2026-05-21T12:00:00+00:00", "2036-04-28T12:00:00+00:00"
        )
    with pytest.raises(Refusal, match=r"it ends on 2026-05-21; hand over one for 10\.89\.78\.3, m"):
        certificate(SERVER | AUTHORITY, now=days(21))


def test_the_hosts_certificate_stays_for_as_long_as_it_serves() -> None:
    first = certificate(AUTHORITY)
    assert first is not None and first.expires == "2027-06-02T12:00:00+00:00"
    there = (first.certificate.encode(), first.private_key.encode(), b"tls: {}\n")
    assert certificate(AUTHORITY, *there, now=days(366)) == first
    late = certificate(AUTHORITY, *there, now=days(368))
    assert late is not None and late.expires == "2028-06-04T12:00:00+00:00"
    # Another authority, and a host without its key.
    for given, present in (
        ({"ca_certificate": OTHER.decode(), "ca_key": OTHER_KEY.decode()}, there),
        (AUTHORITY, there[:1]),
    ):
        again = certificate(given, *present)
        assert again is not None and again.certificate != first.certificate


def test_a_certificate_ends_with_its_authority_and_is_then_not_made_anew_at_each_run() -> None:
    short, key = issue(None, [], 20, NOW)
    given = {"ca_certificate": short.decode(), "ca_key": key.decode()}
    first = certificate(given)
    assert first is not None and first.expires == first.authority_expires == "2026-05-21T12:00:00+00:00"
    assert certificate(given, first.certificate.encode(), first.private_key.encode(), now=days(19)) == first


def test_text_of_a_vault_without_its_last_line_end_is_the_same_certificate() -> None:
    found = certificate({name: value.strip() for name, value in (SERVER | AUTHORITY).items()})
    assert found == certificate(SERVER | AUTHORITY)


def test_a_password_keeps_the_hash_that_the_host_has() -> None:
    mine, old = hash_of(b"mine").decode(), hash_of(b"before").decode()
    web = f"basic_auth_users:\n  other: {old}\n  web: {mine}\n"
    found = Given({"web_password": "mine\n"}, [web]).password("web")
    assert found is not None and (found.password, found.hash) == ("mine", mine)
    new = Given({"web_password": "mine"}, [web.replace(mine, old)]).password("web")
    assert new is not None and new.hash not in (mine, old) and bcrypt.checkpw(b"mine", new.hash.encode())
    given = Given({"web_password": "mine", "web_password_hash": mine}, []).password("web")
    assert given is not None and given.hash == mine
    assert Given({}, [web]).password("web") is None


def test_what_is_missing_has_to_be_kept_somewhere() -> None:
    assert Given({}).missing(["a", "b"], True) == ["a_password", "b_password", "ca_certificate"]
    assert Given({"a_password": "x", **AUTHORITY}).missing(["a"], True) == []
    assert Given({}).missing([], False) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"promethues_password": "x"}, "promethues_password is none of the secrets that can be handed over (ca_cert"),
        ({"web_password": " "}, "The secret web_password is empty; hand it over as text, or leave it out to have one"),
        ({"web_password": None}, "The secret web_password is empty; hand it over as text, or leave it out to have one"),
        ({"web_password": 7}, "The secret web_password is no text; hand it over as text, or leave it out to have one"),
    ],
)
def test_names_and_types(values: dict[str, Any], sentence: str) -> None:
    fault = Given(values).fault(["web"])
    assert fault.startswith(sentence), fault
    assert Given({"web_password": "x", "grafana_key": "k"}).fault(["web"]) == ""


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (SERVER, "web_certificate is handed over without ca_certificate; add that."),
        ({"ca_key": "k"}, "ca_key is handed over without ca_certificate; add that."),
        (
            {"ca_certificate": CA.decode()},
            "ca_certificate is handed over without ca_key and without web_certificate and web_key; add the key, or a "
            "certificate for 10.89.78.3, monitor-1.",
        ),
        ({**AUTHORITY, "web_key": LEAF_KEY.decode()}, "web_certificate with web_key cannot be used, since it is not t"),
        (
            {**SERVER, "ca_certificate": OTHER.decode()},
            "web_certificate with web_key cannot be used, since it is not signed by ca_certificate;",
        ),
        ({**AUTHORITY, "ca_key": OTHER_KEY.decode()}, "ca_key is not the key of ca_certificate; hand over the two"),
        ({**AUTHORITY, "ca_key": "k"}, "ca_key cannot be read ("),
        ({**AUTHORITY, "ca_certificate": "k"}, "ca_certificate cannot be read ("),
        ({**SERVER, "ca_certificate": LEAF.decode()}, "ca_certificate is no authority's; hand over the one that signs"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        certificate(values)
    assert str(refused.value).startswith(sentence), refused.value
    assert "BEGIN" not in str(refused.value)


def test_an_authority_that_ended_is_refused() -> None:
    with pytest.raises(Refusal, match=r"^ca_certificate ended on 2036-04-28; hand over a new one\.$"):
        certificate(AUTHORITY, now=days(3651))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"web_password_hash": "h"}, "web_password_hash is handed over without web_password; add that."),
        ({"web_password": "x" * 73}, "web_password has 73 bytes; hand over one of 1 to 72 bytes."),
        (
            {"web_password": "mine", "web_password_hash": hash_of(b"yours").decode()},
            "web_password_hash is no bcrypt hash of web_password; correct it, or leave it out.",
        ),
    ],
)
def test_a_password_that_cannot_be_used_is_refused(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        Given(values).password("web")
    assert str(refused.value) == sentence


def test_the_services_are_those_of_the_roles() -> None:
    exporters = ("node_exporter", "hpu_exporter", "trainer")
    slurm = ("slurm_database", "slurm_munge")
    assert ("prometheus", "alertmanager", "grafana", "watch", *exporters, *slurm) == given_secrets.SERVICES
    assert x509.load_pem_x509_certificate(LEAF).not_valid_after_utc == days(20)
