"""What Terraform asks of the stand-in provider, asked in its own environment: prints what was answered, as JSON.

``provider_calls.py WORLD``. It calls the servicer with the protocol's own messages, once through a socket.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

os.environ["GAUDI3_STANDIN_WORLD"] = sys.argv[1]

import grpc
from tf.gen import grpc_controller_pb2, grpc_controller_pb2_grpc, tfplugin_pb2, tfplugin_pb2_grpc

from gaudi3_simulator.cloud import serve
from gaudi3_simulator.cloud.planning import complete

PROVIDER = serve.Provider("ibm", "2.5.0")
ANSWERS: dict[str, Any] = {}


def call(method: str, **values: Any) -> Any:
    return getattr(PROVIDER, method)(getattr(tfplugin_pb2, method).Request(**values), None)


def refusals(answer: Any) -> list[str]:
    return [each.summary for each in answer.diagnostics]


def apply(kind: str, values: dict[str, Any] | None, prior: dict[str, Any] | None = None) -> Any:
    """Plan and apply, as Terraform does; the new state."""
    config = None if values is None else complete(PROVIDER.attributes("resource", kind), values)
    packed = {"config": serve.pack(config), "prior_state": serve.pack(prior)}
    planned = call("PlanResourceChange", type_name=kind, proposed_new_state=serve.pack(config), **packed)
    answer = call("ApplyResourceChange", type_name=kind, planned_state=planned.planned_state, **packed)
    replaced = [[step.attribute_name for step in path.steps] for path in planned.requires_replace]
    return serve.unpack(answer.new_state), refusals(answer), replaced


def look_up(kind: str, **config: Any) -> Any:
    answer = call("ReadDataSource", type_name=kind, config=serve.pack(config))
    return (serve.unpack(answer.state) if not answer.diagnostics else None), refusals(answer)


schema = call("GetProviderSchema")
ANSWERS["types of a machine"] = len(schema.resource_schemas["ibm_is_instance"].block.attributes) > 20
ANSWERS["no key"] = refusals(call("ConfigureProvider", config=serve.pack({"region": "us-east"})))
os.environ["IC_API_KEY"] = "standin"
assert not refusals(call("ConfigureProvider", config=serve.pack({"region": "us-east"})))
call("ValidateProviderConfig")
call("StopProvider")

bad = complete(PROVIDER.attributes("resource", "ibm_is_ssh_key"), {"name": "k", "public_key": "x", "type": "dsa"})
ANSWERS["validated"] = refusals(call("ValidateResourceConfig", type_name="ibm_is_ssh_key", config=serve.pack(bad)))
asked = complete(PROVIDER.attributes("data", "ibm_is_zones"), {"region": "us-east"})
assert not refusals(call("ValidateDataResourceConfig", type_name="ibm_is_zones", config=serve.pack(asked)))

vpc, refused, _ = apply("ibm_is_vpc", {"name": "net"})
assert not refused
ANSWERS["made"] = [vpc["name"], vpc["id"].partition("-")[0], vpc["status"]]
ANSWERS["twice"] = apply("ibm_is_vpc", {"name": "net"})[1]
renamed, refused, replaced = apply("ibm_is_vpc", {"name": "other"}, vpc)
ANSWERS["renamed"] = [renamed["name"], renamed["id"] == vpc["id"], refused, replaced]
prefix, refused, _ = apply(
    "ibm_is_vpc_address_prefix", {"name": "p", "vpc": vpc["id"], "zone": "us-east-2", "cidr": "10.42.0.0/16"}
)
assert not refused
moved = apply(
    "ibm_is_vpc_address_prefix", {"name": "p", "vpc": vpc["id"], "zone": "us-east-3", "cidr": "10.42.0.0/16"}, prefix
)
ANSWERS["moved"] = moved[2]
read = call("ReadResource", type_name="ibm_is_vpc", current_state=serve.pack(renamed))
ANSWERS["read"] = serve.unpack(read.new_state)["name"]
raw = json.dumps({"id": vpc["id"], "name": "of an older state"}).encode()
upgraded = call("UpgradeResourceState", type_name="ibm_is_vpc", raw_state=tfplugin_pb2.RawState(json=raw))
ANSWERS["upgraded"] = sorted(serve.unpack(upgraded.upgraded_state)) == sorted(vpc)
imported = call("ImportResourceState", type_name="ibm_is_vpc", id=vpc["id"])
ANSWERS["imported"] = serve.unpack(imported.imported_resources[0].state)["name"]
ANSWERS["imported none"] = refusals(call("ImportResourceState", type_name="ibm_is_vpc", id="r014-none"))
ANSWERS["zones"] = look_up("ibm_is_zones", region="us-east")[0]["zones"]
ANSWERS["profile"] = look_up("ibm_is_instance_profile", name="gx9")[1]
ANSWERS["gone"] = apply("ibm_is_vpc", None, renamed)[:2]
gone = call("ReadResource", type_name="ibm_is_vpc", current_state=serve.pack(renamed))
ANSWERS["read gone"] = serve.unpack(gone.new_state)


def through_a_socket() -> None:
    """A caller of the served provider, which ends it when done."""
    while not LINES:
        time.sleep(0.01)
    address = next(iter(json.loads(LINES[0]).values()))["Addr"]["String"]
    with grpc.insecure_channel(f"unix://{address}") as channel:
        stub = tfplugin_pb2_grpc.ProviderStub(channel)
        config = serve.pack({"region": "us-south"})
        answer = stub.ConfigureProvider(tfplugin_pb2.ConfigureProvider.Request(config=config))
        ANSWERS["served"] = [len(answer.diagnostics), PROVIDER.given["region"]]
        grpc_controller_pb2_grpc.GRPCControllerStub(channel).Shutdown(grpc_controller_pb2.Empty())


LINES: list[str] = []
serve.print = lambda line, flush: LINES.append(line)  # type: ignore[attr-defined]
caller = threading.Thread(target=through_a_socket)
caller.start()
# An attached provider outlives a call's end. This process is its own parent for long enough.
parents = iter([1, 1, 2])
os.getppid = lambda: next(parents, 2)
serve.serve(PROVIDER, "ibm")
caller.join()
ANSWERS["certificate"] = [len(each) > 100 for each in serve.certificate()]
print(json.dumps(ANSWERS))
