"""The process that Terraform starts: its plugin protocol, version 6, over a simulated cloud.

``serve.py PROVIDER VERSION``, with GAUDI3_STANDIN_WORLD naming the cloud's file. It is run by the script that
``mirror.py`` writes, in an environment that has requirements/standin.txt. With a third argument ``attach`` it stays
for many calls of Terraform, and prints the value of TF_REATTACH_PROVIDERS that leads to it.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
from concurrent import futures
from typing import Any

import grpc
import msgpack
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tf.gen import (
    grpc_controller_pb2,
    grpc_controller_pb2_grpc,
    grpc_stdio_pb2_grpc,
    tfplugin_pb2,
    tfplugin_pb2_grpc,
)

from gaudi3_simulator.cloud.gate import Gate
from gaudi3_simulator.cloud.mirror import HOST, SOURCES
from gaudi3_simulator.cloud.planning import complete, plan
from gaudi3_simulator.cloud.schema import UNKNOWN, Attributes, is_block, load, problems
from gaudi3_simulator.cloud.world import Refused, World

#: How a type is written in JSON.
SCALARS = {"string": "string", "bool": "bool", "number": "number"}


def pack(value: Any) -> Any:
    """To the protocol's msgpack."""
    ext = msgpack.ExtType(0, b"\0")
    return tfplugin_pb2.DynamicValue(msgpack=msgpack.packb(value, default=lambda one: ext if one is UNKNOWN else one))


def unpack(message: Any) -> Any:
    """From the protocol's msgpack or JSON."""
    if message.msgpack:
        return msgpack.unpackb(message.msgpack, ext_hook=lambda _code, _data: UNKNOWN, raw=False, strict_map_key=False)
    return json.loads(message.json) if message.json else None


def type_of(attribute: dict[str, Any]) -> Any:
    """An attribute's type as the protocol writes it."""
    if "block" in attribute:
        return [attribute["type"], ["object", {name: type_of(one) for name, one in attribute["block"].items()}]]
    if attribute["type"] in SCALARS:
        return attribute["type"]
    return [attribute["type"], attribute.get("elem", "string")]


def block_of(attributes: Attributes, timeouts: list[str] | None = None) -> Any:
    """Attributes and blocks of a type."""
    out = tfplugin_pb2.Schema.Block()
    for name, each in attributes.items():
        if is_block(each):
            required = each.get("required")
            least = each.get("minitems", 1 if required else 0) if required else 0
            mode = "SET" if each["type"] == "set" else "LIST"
            out.block_types.append(
                tfplugin_pb2.Schema.NestedBlock(
                    type_name=name, block=block_of(each["block"]), min_items=least, max_items=each.get("maxitems", 0),
                    nesting=getattr(tfplugin_pb2.Schema.NestedBlock.NestingMode, mode),
                )
            )  # fmt: skip
            continue
        optional = each.get("optional") or ("default" in each and each.get("required"))
        out.attributes.append(
            tfplugin_pb2.Schema.Attribute(
                name=name, type=json.dumps(type_of(each)).encode(), sensitive=bool(each.get("sensitive")),
                required=bool(each.get("required")) and not optional, optional=bool(optional),
                computed=bool(each.get("computed") or not (each.get("required") or optional)),
            )
        )  # fmt: skip
    if timeouts:
        inner = {name: {"type": "string", "optional": True} for name in timeouts}
        out.block_types.append(
            tfplugin_pb2.Schema.NestedBlock(
                type_name="timeouts", block=block_of(inner), nesting=tfplugin_pb2.Schema.NestedBlock.NestingMode.SINGLE
            )
        )
    return out


def attribute_path(path: list[Any]) -> Any:
    """A place in a configuration."""
    steps = [
        tfplugin_pb2.AttributePath.Step(element_key_int=step)
        if isinstance(step, int)
        else tfplugin_pb2.AttributePath.Step(attribute_name=step)
        for step in path
    ]
    return tfplugin_pb2.AttributePath(steps=steps)


def diagnostic(text: str, path: list[Any] | None = None) -> Any:
    """An error."""
    return tfplugin_pb2.Diagnostic(severity=1, summary=text, attribute=attribute_path(path or []))


class Provider(tfplugin_pb2_grpc.ProviderServicer):
    """One provider of one release."""

    def __init__(self, provider: str, version: str) -> None:
        self.facts = load(provider, version)
        self.cloud = importlib.import_module(f"gaudi3_simulator.cloud.{provider}")
        self.given: dict[str, Any] = {}
        self.gate = Gate(os.environ.get("GAUDI3_STANDIN_GATE"))

    def world(self) -> World:
        """The cloud's file. A link of its own for each call, as calls come at the same time."""
        return World(os.environ["GAUDI3_STANDIN_WORLD"])

    def attributes(self, kind: str, name: str) -> Attributes:
        """Of a type."""
        found: Attributes = self.facts[kind][name]["attributes"]
        return found

    def whole(self, name: str, values: dict[str, Any], timeouts: Any = None) -> dict[str, Any]:
        """A state with exactly the schema's keys."""
        out = complete(self.attributes("resource", name), values)
        if "timeouts" in self.facts["resource"][name]:
            out["timeouts"] = timeouts
        return out

    def GetProviderSchema(self, request: Any, context: Any) -> Any:
        """All types."""
        out = tfplugin_pb2.GetProviderSchema.Response(
            provider=tfplugin_pb2.Schema(block=block_of(self.facts["configuration"]))
        )
        for name, entry in self.facts["resource"].items():
            block = block_of(entry["attributes"], entry.get("timeouts"))
            out.resource_schemas[name].CopyFrom(tfplugin_pb2.Schema(version=0, block=block))
        for name, entry in self.facts["data"].items():
            out.data_source_schemas[name].CopyFrom(tfplugin_pb2.Schema(block=block_of(entry["attributes"])))
        return out

    def ValidateProviderConfig(self, request: Any, context: Any) -> Any:
        """Nothing to refuse."""
        return tfplugin_pb2.ValidateProviderConfig.Response()

    def ConfigureProvider(self, request: Any, context: Any) -> Any:
        """Region and credentials: without any, the true provider refuses, too."""
        self.given = unpack(request.config) or {}
        refused = self.cloud.configure(self.given, os.environ)
        return tfplugin_pb2.ConfigureProvider.Response(diagnostics=[diagnostic(refused)] if refused else [])

    def ValidateResourceConfig(self, request: Any, context: Any) -> Any:
        """Enums, ranges, patterns, conflicts."""
        found = problems(self.attributes("resource", request.type_name), unpack(request.config), [])
        return tfplugin_pb2.ValidateResourceConfig.Response(diagnostics=[diagnostic(*each) for each in found])

    def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:
        """The same of a data source."""
        found = problems(self.attributes("data", request.type_name), unpack(request.config), [])
        return tfplugin_pb2.ValidateDataResourceConfig.Response(diagnostics=[diagnostic(*each) for each in found])

    def UpgradeResourceState(self, request: Any, context: Any) -> Any:
        """A state of an earlier call; keys that a newer schema added are null."""
        raw = json.loads(request.raw_state.json)
        state = self.whole(request.type_name, raw, raw.get("timeouts"))
        return tfplugin_pb2.UpgradeResourceState.Response(upgraded_state=pack(state))

    def ReadResource(self, request: Any, context: Any) -> Any:
        """What the cloud has; null if it is gone."""
        state = unpack(request.current_state)
        row = self.world().get(request.type_name, state["id"])
        new = None
        if row is not None:
            new = self.whole(request.type_name, {**state, **row}, state.get("timeouts"))
        return tfplugin_pb2.ReadResource.Response(new_state=pack(new), private=request.private)

    def PlanResourceChange(self, request: Any, context: Any) -> Any:
        """See planning.py."""
        prior, proposed = unpack(request.prior_state), unpack(request.proposed_new_state)
        if proposed is None:
            return tfplugin_pb2.PlanResourceChange.Response(planned_state=pack(None), legacy_type_system=True)
        config, replace = unpack(request.config), list[list[Any]]()
        attributes = self.attributes("resource", request.type_name)
        planned = plan(attributes, config, prior, proposed, [], replace)
        return tfplugin_pb2.PlanResourceChange.Response(
            planned_state=pack(planned), requires_replace=[attribute_path(each) for each in replace],
            legacy_type_system=True,
        )  # fmt: skip

    def ApplyResourceChange(self, request: Any, context: Any) -> Any:
        """Create, update or delete. A refusal leaves the state as it was."""
        prior, planned = unpack(request.prior_state), unpack(request.planned_state)
        name, failed = request.type_name, []
        state = prior
        world = self.world()
        self.gate.wait()
        world.wait(name)
        fault = world.fault(name) if prior is None else None
        try:
            with world.open():
                if planned is None:
                    self.cloud.delete(world, name, prior)
                    state = None
                else:
                    values = self.whole(name, planned)
                    row, half = self.cloud.write(world, name, values, prior, self.given, fault)
                    state = self.whole(name, row, planned.get("timeouts"))
                    failed = [diagnostic(half)] if half else []
            self.gate.passed(f"{'delete' if planned is None else 'update' if prior else 'create'}:{name}")
        except Refused as refusal:
            failed = [diagnostic(str(refusal), refusal.path)]
        return tfplugin_pb2.ApplyResourceChange.Response(
            new_state=pack(state), diagnostics=failed, legacy_type_system=True
        )

    def ImportResourceState(self, request: Any, context: Any) -> Any:
        """By id."""
        row = self.world().get(request.type_name, request.id)
        if row is None:
            refused = diagnostic(f"Cannot import non-existent remote object: {request.type_name} {request.id}")
            return tfplugin_pb2.ImportResourceState.Response(diagnostics=[refused])
        imported = tfplugin_pb2.ImportResourceState.ImportedResource(
            type_name=request.type_name, state=pack(self.whole(request.type_name, row))
        )
        return tfplugin_pb2.ImportResourceState.Response(imported_resources=[imported])

    def ReadDataSource(self, request: Any, context: Any) -> Any:
        """What the cloud knows."""
        config = unpack(request.config)
        try:
            found = self.cloud.look_up(self.world(), request.type_name, config, self.given)
        except Refused as refusal:
            failed = [diagnostic(str(refusal), refusal.path)]
            return tfplugin_pb2.ReadDataSource.Response(diagnostics=failed)
        state = complete(self.attributes("data", request.type_name), {**config, **found})
        return tfplugin_pb2.ReadDataSource.Response(state=pack(state))

    def StopProvider(self, request: Any, context: Any) -> Any:
        """Calls are short: there is nothing to stop."""
        return tfplugin_pb2.StopProvider.Response()


def certificate() -> tuple[bytes, bytes, bytes]:
    """Key, certificate and its DER, made for this start."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return private, made.public_bytes(serialization.Encoding.PEM), made.public_bytes(serialization.Encoding.DER)


def serve(servicer: Provider, attach: str | None = None) -> None:
    """Answer Terraform until it says so, or is gone; with an address to attach to, until the parent is gone."""
    done = threading.Event()
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(16), options=unlimited)
    tfplugin_pb2_grpc.add_ProviderServicer_to_server(servicer, server)

    class Control(grpc_controller_pb2_grpc.GRPCControllerServicer):
        def Shutdown(self, request: Any, context: Any) -> Any:
            if not attach:
                done.set()
            return grpc_controller_pb2.Empty()

    class Stdio(grpc_stdio_pb2_grpc.GRPCStdioServicer):
        def StreamStdio(self, request: Any, context: Any) -> Any:
            # Until the caller has gone: a thread of the pool is taken as long.
            gone = threading.Event()
            context.add_callback(gone.set)
            while not (gone.wait(0.2) or done.is_set()):
                pass
            return iter(())

    grpc_controller_pb2_grpc.add_GRPCControllerServicer_to_server(Control(), server)
    grpc_stdio_pb2_grpc.add_GRPCStdioServicer_to_server(Stdio(), server)
    with tempfile.TemporaryDirectory() as folder:
        if attach:
            server.add_insecure_port(f"unix://{folder}/s")
            place = {"Network": "unix", "String": f"{folder}/s"}
            told = {"Protocol": "grpc", "ProtocolVersion": 6, "Pid": os.getpid(), "Test": True, "Addr": place}
            line = json.dumps({attach: told})
        else:
            key, pem, der = certificate()
            server.add_secure_port(f"unix://{folder}/s", grpc.ssl_server_credentials([(key, pem)]))
            line = f"1|6|unix|{folder}/s|grpc|{base64.b64encode(der).decode().rstrip('=')}"
        server.start()
        print(line, flush=True)
        parent = os.getppid()
        while not done.wait(1):
            if os.getppid() != parent:  # Terraform was killed.
                done.set()
        server.stop(0.2).wait()


def main() -> None:
    """See the module."""
    provider, version, *attach = sys.argv[1:]
    if not attach and not os.environ.get("TF_PLUGIN_MAGIC_COOKIE"):
        sys.exit("This is a plugin of Terraform, which starts it: it is not run by hand.")
    # A terminal's interrupt goes to everybody, and it is Terraform that says what becomes of a call.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Provider(provider, version), f"{HOST}/{SOURCES[provider].lower()}" if attach else None)


if __name__ == "__main__":
    main()
