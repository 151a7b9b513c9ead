# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is asked of IBM Cloud, by the public API documents of IAM, VPC and Object Storage. Nothing is changed.

Key and addresses are looked for where IBM's Terraform provider looks, its guide "Custom service endpoints" among them.
"""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Mapping
from typing import Any, Optional
from urllib.parse import quote, urlencode, urlsplit

from .._refusal import Refusal

#: The provider takes the first that is set.
KEYS = ("IC_API_KEY", "IBMCLOUD_API_KEY")
#: The VPC service asks for the date of the interface that is meant.
VERSION = {"version": "2025-07-08", "generation": "2"}
#: Seconds for an answer.
LIMIT = 30


class Account:
    """The account of the API key in ``environment``. Every method raises Refusal where it got no answer."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._token: Optional[str] = None

    def offered_zones(self, region: str, profile: str) -> list[str]:
        """Zones of a region that have a machine's profile, by the account's names for them; empty where none has."""
        address = self._endpoint("IS_NG_API", f"https://{region}.iaas.cloud.ibm.com/v1")
        answer = self._get(f"{address}/instance/profiles/{quote(profile)}?{urlencode(VERSION)}")
        return sorted(str(zone["name"]) for zone in json.loads(answer or "{}").get("zones") or ())

    def holds_anything(self, bucket: str, region: str) -> bool:
        """Whether a bucket has an object, or a version of one that was deleted; no where there is no such bucket."""
        address = self._endpoint("COS", f"https://s3.{region}.cloud-object-storage.appdomain.cloud")
        answer = self._get(f"{address}/{quote(bucket)}?versions=&max-keys=1") or ""
        return "<Version>" in answer or "<DeleteMarker>" in answer

    def _endpoint(self, name: str, usual: str) -> str:
        return (self._environment.get(f"IBMCLOUD_{name}_ENDPOINT") or usual).rstrip("/")

    def _get(self, address: str) -> Optional[str]:
        if self._token is None:
            key = next((self._environment[each] for each in KEYS if self._environment.get(each)), None)
            if key is None:
                raise Refusal(f"IBM Cloud was not asked, as there is no API key: set {' or '.join(KEYS)}.")
            form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": key}
            iam = self._endpoint("IAM_API", "https://iam.cloud.ibm.com")
            answer = json.loads(_ask(f"{iam}/identity/token", data=urlencode(form).encode()) or "{}")
            if "access_token" not in answer:
                raise Refusal("IBM Cloud's IAM gave no token.")
            self._token = str(answer["access_token"])
        return _ask(address, headers={"Authorization": f"Bearer {self._token}"})


def _ask(address: str, **how: Any) -> Optional[str]:
    """What is answered; None where there is nothing of the name."""
    from ansible.module_utils.urls import open_url

    where = f"{urlsplit(address).netloc}{urlsplit(address).path}"
    try:
        with open_url(address, timeout=LIMIT, **how) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise Refusal(
            f"IBM Cloud refused: {where} answered {error.code} {error.reason}; the key in {' or '.join(KEYS)} "
            "has to be of an account that may look there."
        ) from None
    except (OSError, ValueError) as error:
        raise Refusal(f"IBM Cloud does not answer: {where} ({error}).") from None
