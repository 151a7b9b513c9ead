"""The simulated IBM Cloud's own interfaces over HTTP, as far as they list what there is.

``python -m gaudi3_simulator.cloud.ibm_api WORLD REGION`` serves VPC (``/v1``), Resource Controller (``/v2``), IAM and
Object Storage from one address on loopback, which it prints as the environment that leads clients to it. Forms and
names are those of IBM's public API documents, no more of them than the objects here have. As the services do, it
refuses calls without a token, VPC calls without a date and a generation, and lists in pages of at most 100.
"""

from __future__ import annotations

import json
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gaudi3_simulator.cloud.ibm import ACCOUNT, profile
from gaudi3_simulator.cloud.world import Refused, Row, World

TOKEN = "made-up"
#: Path of a list to the kind of its objects.
VPC = {
    "vpcs": "ibm_is_vpc",
    "public_gateways": "ibm_is_public_gateway",
    "subnets": "ibm_is_subnet",
    "security_groups": "ibm_is_security_group",
    "instances": "ibm_is_instance",
    "floating_ips": "ibm_is_floating_ip",
    "keys": "ibm_is_ssh_key",
    "flow_log_collectors": "ibm_is_flow_log",
}
IDENTITIES = {"profiles": "ibm_iam_trusted_profile", "serviceids": "ibm_iam_service_id"}
PAGE = 100


class Api:
    """Answers by path and query."""

    def __init__(self, world: World, region: str) -> None:
        self._world = world
        self._region = region

    def answer(self, path: str, query: dict[str, str], headers: Any) -> tuple[int, Any]:
        """Status, and an object or a text."""
        if path == "/identity/token":
            return 200, {"access_token": TOKEN, "token_type": "Bearer"}
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"errors": [{"code": "not_authorized"}]}
        if path == "/v1/apikeys/details":
            return (200, {"account_id": ACCOUNT}) if headers.get("IAM-Apikey") else (400, {})
        parts = path.strip("/").split("/")
        if (parts[0] == "v1" and parts[-1] in (*IDENTITIES, "policies")) or parts == ["v2", "roles"]:
            return self._iam(parts[-1], query) if query.get("account_id") == ACCOUNT else (400, {})
        if parts[0] == "v2":
            return self._controlled(parts[1], query)
        if parts[0] == "v1":
            if not query.get("version") or query.get("generation") != "2":
                return 400, {"errors": [{"code": "missing_version"}]}
            return self._vpc(parts[1:], query)
        return self._buckets(parts[0], headers)

    def _rows(self, kind: str) -> list[Row]:
        return [row for row in self._world.rows(kind) if row.get("_region") == self._region]

    def _vpc(self, parts: list[str], query: dict[str, str]) -> tuple[int, Any]:
        if len(parts) == 3 and parts[2] == "address_prefixes":
            found = [
                {**_about(row), "id": str(row["id"]).rpartition("/")[2], "cidr": row["cidr"]}
                for row in self._rows("ibm_is_vpc_address_prefix")
                if row["vpc"] == parts[1]
            ]
            return _page("address_prefixes", found, query)
        if parts[:2] == ["instance", "profiles"] and len(parts) == 3:
            try:
                return 200, profile(self._world, {"name": parts[2]}, self._region)
            except Refused as refusal:
                return 404, {"errors": [{"code": "not_found", "message": str(refusal)}]}
        if parts[0] not in VPC:
            return 404, {"errors": [{"code": "not_found"}]}
        rows = [row for row in self._rows(VPC[parts[0]]) if query.get("vpc.id") in (None, row.get("vpc"))]
        found = [self._thing(parts[0], row) for row in rows]
        return _page(parts[0], found, query)

    def _thing(self, listed: str, row: Row) -> Row:
        about = _about(row)
        if row.get("vpc"):
            about["vpc"] = {"id": row["vpc"]}
        if listed == "security_groups":
            about["rules"] = [
                _rule(each) for each in self._rows("ibm_is_security_group_rule") if each["group"] == row["id"]
            ]
        return about

    def _controlled(self, listed: str, query: dict[str, str]) -> tuple[int, Any]:
        kind = {"resource_instances": "ibm_resource_instance", "resource_keys": "ibm_resource_key"}.get(listed)
        if kind is None:
            return 404, {}
        found = [
            {**_about(row), "state": "active"} for row in self._rows(kind) if query.get("name") in (None, row["name"])
        ]
        return 200, {"resources": found, "next_url": None}

    def _iam(self, listed: str, query: dict[str, str]) -> tuple[int, Any]:
        if listed in IDENTITIES:
            rows = self._world.rows(IDENTITIES[listed])
            found = [_about(row) for row in rows if query.get("name") in (None, row["name"])]
        elif listed == "roles":
            rows = self._world.rows("ibm_iam_custom_role")
            return 200, {"custom_roles": [{**_about(row), "display_name": row["display_name"]} for row in rows]}
        elif query.get("type") == "authorization":
            found = [
                {
                    "id": row["id"],
                    "resources": [
                        {"attributes": [{"name": "serviceInstance", "value": row["target_resource_instance_id"]}]}
                    ],
                }
                for row in self._world.rows("ibm_iam_authorization_policy")
            ]
        else:
            kinds = ("ibm_iam_service_policy", "ibm_iam_trusted_profile_policy")
            pairs = [str(row["id"]).split("/") for kind in kinds for row in self._world.rows(kind)]
            found = [{"id": own, "resources": []} for owner, own in pairs if query.get("iam_id") == f"iam-{owner}"]
        return 200, {listed: found}

    def _buckets(self, name: str, headers: Any) -> tuple[int, Any]:
        rows = self._world.rows("ibm_cos_bucket")
        if not name:
            wanted = headers.get("ibm-service-instance-id", "?")
            names = [row["bucket_name"] for row in rows if f":{wanted}::" in str(row["resource_instance_id"])]
            listed = "".join(f"<Bucket><Name>{each}</Name></Bucket>" for each in names)
            return 200, f"<ListAllMyBucketsResult><Buckets>{listed}</Buckets></ListAllMyBucketsResult>"
        if name not in {row["bucket_name"] for row in rows}:
            return 404, "<Error><Code>NoSuchBucket</Code></Error>"
        found = "".join("<Version></Version>" for each in self._world.rows("_object") if each["bucket"] == name)
        return 200, f"<ListVersionsResult><Name>{name}</Name>{found}</ListVersionsResult>"


def _about(row: Row) -> Row:
    return {"id": row["id"], "name": row["name"], "crn": row.get("crn"), "created_at": row["_created"]}


def _rule(row: Row) -> Row:
    remote = str(row.get("remote") or "")
    kind = "id" if remote.startswith("r014-") else "cidr_block" if "/" in remote else "address"
    about = {"id": str(row["id"]).rpartition(".")[2], "direction": row["direction"], "remote": {kind: remote}}
    return {**about, **{each: row[each] for each in ("protocol", "port_min", "port_max") if row.get(each)}}


def _page(listed: str, found: list[Row], query: dict[str, str]) -> tuple[int, Any]:
    start, size = int(query.get("start", 0)), min(int(query.get("limit", 50)), PAGE)
    page: Row = {listed: found[start : start + size], "limit": size, "total_count": len(found)}
    if start + size < len(found):
        page["next"] = {"href": f"https://loopback/v1/{listed}?start={start + size}&limit={size}"}
    return 200, page


def serve(world: str, region: str) -> ThreadingHTTPServer:
    """A server on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(asked.query, keep_blank_values=True))
            status, answer = Api(World(world), region).answer(asked.path, query, self.headers)
            body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _do

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def environment(server: ThreadingHTTPServer) -> dict[str, str]:
    """By what the provider's clients, and others, are led to it."""
    address = f"http://127.0.0.1:{server.server_address[1]}"
    places = {"IS_NG_API": f"{address}/v1", "IAM_API": address, "RESOURCE_CONTROLLER_API": address, "COS": address}
    return {f"IBMCLOUD_{name}_ENDPOINT": each for name, each in places.items()}


def main() -> None:
    """See the module."""
    server = serve(*sys.argv[1:3])
    print(json.dumps(environment(server)), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
