"""What an account of IBM Cloud has, asked of its services: VPC, Resource Controller, IAM and Object Storage.

Addresses and answers are those of IBM's public API documents. Where the provider takes an endpoint from the
environment (its guide "Custom service endpoints"), it is taken from there, too. Nothing is ever changed.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from gaudi3_deploy.leftover import Unchecked

Row = dict[str, Any]
#: The provider takes the first that is set.
KEYS = ("IC_API_KEY", "IBMCLOUD_API_KEY")
#: The VPC service asks for the date of the interface that is meant.
VERSION = {"version": "2025-07-08", "generation": "2"}
LIMIT = 30.0
"""Seconds for an answer."""


class Account:
    """One region of the account that the API key belongs to. Every method raises `Unchecked` where it got no answer."""

    def __init__(self, region: str, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        key = next((environment[each] for each in KEYS if environment.get(each)), None)
        if key is None:
            raise Unchecked(f"{' or '.join(KEYS)} is not set")
        self._key = key
        self.region = region

        def endpoint(name: str, usual: str) -> str:
            return (environment.get(f"IBMCLOUD_{name}_ENDPOINT") or usual).rstrip("/")

        self._vpc = endpoint("IS_NG_API", f"https://{region}.iaas.cloud.ibm.com/v1")
        self._iam = endpoint("IAM_API", "https://iam.cloud.ibm.com")
        self._controller = endpoint("RESOURCE_CONTROLLER_API", "https://resource-controller.cloud.ibm.com")
        self._cos = endpoint("COS", f"https://s3.{region}.cloud-object-storage.appdomain.cloud")

    def vpc(self, path: str, **query: str) -> Iterator[Row]:
        """A list of the VPC service, such as "subnets"; all its pages."""
        asked = {**VERSION, "limit": "100", **query}
        while True:
            page = json.loads(self._get(f"{self._vpc}/{path}", asked))
            yield from page[path.rpartition("/")[2]]
            following = urllib.parse.urlsplit((page.get("next") or {}).get("href", "")).query
            start = urllib.parse.parse_qs(following).get("start")
            if not start:
                return
            asked["start"] = start[0]

    def controlled(self, kind: str, name: str) -> Iterator[Row]:
        """Resources of a kind of the Resource Controller ("resource_instances") by their name."""
        address, asked = f"{self._controller}/v2/{kind}", {"name": name}
        while True:
            page = json.loads(self._get(address, asked))
            yield from page["resources"]
            if not page.get("next_url"):
                return
            address, asked = urllib.parse.urljoin(self._controller, page["next_url"]), {}

    def iam(self, path: str, key: str, **query: str) -> Iterator[Row]:
        """A list of IAM, such as "v1/profiles" with the key "profiles"."""
        page = json.loads(self._get(f"{self._iam}/{path}", {"account_id": self._account, **query}))
        yield from page.get(key) or []

    def buckets(self, storage: str) -> list[str]:
        """Names of the buckets of a storage instance, by its GUID."""
        return re.findall(r"<Name>([^<]+)</Name>", self._get(f"{self._cos}/", {}, {"ibm-service-instance-id": storage}))

    def holds_anything(self, bucket: str) -> bool:
        """Whether a bucket has an object, or a version of one that was deleted; no where there is no such bucket."""
        try:
            answer = self._get(f"{self._cos}/{urllib.parse.quote(bucket)}", {"versions": "", "max-keys": "1"})
        except _Gone:
            return False
        return "<Version>" in answer or "<DeleteMarker>" in answer

    @cached_property
    def _token(self) -> str:
        form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": self._key}
        body = urllib.parse.urlencode(form).encode()
        answer = self._ask(urllib.request.Request(f"{self._iam}/identity/token", data=body))
        return str(json.loads(answer)["access_token"])

    @cached_property
    def _account(self) -> str:
        answer = self._get(f"{self._iam}/v1/apikeys/details", {}, {"IAM-Apikey": self._key})
        return str(json.loads(answer)["account_id"])

    def _get(self, address: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> str:
        asked = f"{address}?{urllib.parse.urlencode(query)}" if query else address
        own = {"Authorization": f"Bearer {self._token}", "Accept": "*/*", **(headers or {})}
        return self._ask(urllib.request.Request(asked, headers=own))

    def _ask(self, request: urllib.request.Request) -> str:
        where = f"{request.host}{urllib.parse.urlsplit(request.full_url).path}"
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise _Gone(f"{where} is not there") from None
            raise Unchecked(f"{where} answered {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            raise Unchecked(f"{where} was not reached: {error}") from None


class _Gone(Unchecked):
    """What was asked for is not there."""
