# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is asked of IBM Cloud: IAM for a token, then the VPC service, by IBM's public API documents for both.

Key and addresses are looked for where IBM's Terraform provider looks, its guide "Custom service endpoints" among them.
"""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Mapping
from typing import Any, Optional
from urllib.parse import quote, urlencode, urlsplit

from .._refusal import Refusal

KEYS = ("IC_API_KEY", "IBMCLOUD_API_KEY")
#: The VPC service asks for the date of the interface that is meant.
VERSION = {"version": "2025-07-08", "generation": "2"}
#: Seconds for an answer.
LIMIT = 30


def key_of(environment: Mapping[str, str]) -> str:
    """The account's API key."""
    for name in KEYS:
        if environment.get(name):
            return environment[name]
    raise Refusal(f"IBM Cloud was not asked, as there is no API key: set {' or '.join(KEYS)}.")


def offered_zones(environment: Mapping[str, str], token: str, region: str, profile: str) -> list[str]:
    """Zones of a region that have a machine's profile, by the names that the account knows; empty where none has."""
    address = environment.get("IBMCLOUD_IS_NG_API_ENDPOINT") or f"https://{region}.iaas.cloud.ibm.com/v1"
    asked = f"{address.rstrip('/')}/instance/profiles/{quote(profile)}?{urlencode(VERSION)}"
    found = _ask(asked, headers={"Authorization": f"Bearer {token}"})
    return sorted(str(zone["name"]) for zone in (found or {}).get("zones") or ())


def token_of(environment: Mapping[str, str]) -> str:
    """What calls are made with, for the account's API key."""
    address = environment.get("IBMCLOUD_IAM_API_ENDPOINT") or "https://iam.cloud.ibm.com"
    form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": key_of(environment)}
    found = _ask(f"{address.rstrip('/')}/identity/token", data=urlencode(form).encode())
    if not found:
        raise Refusal("IBM Cloud's IAM gave no token.")
    return str(found["access_token"])


def _ask(address: str, **how: Any) -> Optional[dict[str, Any]]:
    """The object that is answered; None where there is nothing of the name."""
    from ansible.module_utils.urls import open_url

    where = f"{urlsplit(address).netloc}{urlsplit(address).path}"
    try:
        with open_url(address, timeout=LIMIT, **how) as answer:
            return dict(json.loads(answer.read()))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise Refusal(
            f"IBM Cloud refused: {where} answered {error.code} {error.reason}; the key in {' or '.join(KEYS)} "
            "has to be of an account that may look at VPC."
        ) from None
    except (OSError, ValueError) as error:
        raise Refusal(f"IBM Cloud does not answer: {where} ({error}).") from None
