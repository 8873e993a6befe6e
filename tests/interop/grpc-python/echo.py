"""A gRPC server and its client by Python's grpcio, whose core is that of C++, Ruby and PHP.

python echo.py serve ADDRESS
python echo.py call ADDRESS AUTHORITY CASE...

Messages are raw bytes. Each case prints its name when it has passed.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import proto_reflection_descriptor_database, reflection

SERVICE = "test.Echo"
MEGABYTE = 1024 * 1024
RETRY_POLICY = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.01s",
                "maxBackoff": "0.1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
            },
        }
    ]
}
tries = Counter()


def unary(request, context):
    metadata = dict(context.invocation_metadata())
    # As the other servers do: see grpc-go.
    if "x-fail-twice" in metadata:
        tries[metadata["x-fail-twice"]] += 1
        if tries[metadata["x-fail-twice"]] <= 2:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
    if "x-needs-attempts" in metadata:
        if metadata.get("grpc-previous-rpc-attempts") != metadata["x-needs-attempts"]:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "not yet")
    context.send_initial_metadata((("x-echo", metadata.get("x-echo", "")),))
    context.set_trailing_metadata((("x-echo-bin", metadata.get("x-echo-bin", b"")),))
    if "x-status-bin" in metadata:
        context.abort(grpc.StatusCode.DATA_LOSS, metadata["x-status-bin"].decode())
    return request


def sleep(request, context):
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(30)
    return request


def chat(requests, context):
    yield from requests


def collect(requests, context):
    return str(sum(len(request) for request in requests)).encode()


def download(request, context):
    for index in range(int(request)):
        yield bytes([index % 256]) * 10_000


class Echo(grpc.GenericRpcHandler):
    METHODS = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Sleep": grpc.unary_unary_rpc_method_handler(sleep),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "Collect": grpc.stream_unary_rpc_method_handler(collect),
        "Download": grpc.unary_stream_rpc_method_handler(download),
    }

    def service(self, details):
        service, _, method = details.method.lstrip("/").partition("/")
        return self.METHODS.get(method) if service == SERVICE else None


def serve(address):
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(Echo(),))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    reflection.enable_server_reflection([health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    server.add_insecure_port(address)
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} in the place of {wanted!r}")


def call_unary(channel):
    method = channel.unary_unary(f"/{SERVICE}/Unary")
    metadata = (("x-echo", "there and back"), ("x-echo-bin", bytes(range(256))))
    for body in (b"", b"hello", b"x" * (2 * MEGABYTE)):
        answer, call = method.with_call(body, metadata=metadata, timeout=20)
        expect(answer, body)
        expect(dict(call.initial_metadata())["x-echo"], "there and back")
        expect(dict(call.trailing_metadata())["x-echo-bin"], bytes(range(256)))


def call_compressed(channel):
    method = channel.unary_unary(f"/{SERVICE}/Unary")
    body = b"much of the same " * 10_000
    expect(method(body, compression=grpc.Compression.Gzip, timeout=20), body)


def call_status(channel):
    words = "\t\nwhitespace\r\nand letters beyond ASCII: ☺ 😈\t\n"
    try:
        channel.unary_unary(f"/{SERVICE}/Unary")(b"", metadata=(("x-status-bin", words.encode()),), timeout=20)
    except grpc.RpcError as error:
        expect((error.code(), error.details()), (grpc.StatusCode.DATA_LOSS, words))
    else:
        raise AssertionError("no status")


def call_unimplemented(channel):
    try:
        channel.unary_unary(f"/{SERVICE}/Nothing")(b"", timeout=20)
    except grpc.RpcError as error:
        expect(error.code(), grpc.StatusCode.UNIMPLEMENTED)
    else:
        raise AssertionError("no status")


def call_deadline(channel):
    try:
        channel.unary_unary(f"/{SERVICE}/Sleep")(b"", timeout=0.3)
    except grpc.RpcError as error:
        # The proxies keep the same deadline: who notices first is a race, and theirs is this status.
        is_proxys = error.details() == "upstream request timeout"
        expect(error.code(), grpc.StatusCode.UNAVAILABLE if is_proxys else grpc.StatusCode.DEADLINE_EXCEEDED)
    else:
        raise AssertionError("no deadline")


def call_cancel(channel):
    call = channel.unary_unary(f"/{SERVICE}/Sleep").future(b"", timeout=20)
    time.sleep(0.05)
    call.cancel()
    expect(call.code(), grpc.StatusCode.CANCELLED)


def call_streams(channel):
    bodies = [bytes([index % 256]) * 20_000 for index in range(300)]
    expect(list(channel.stream_stream(f"/{SERVICE}/Chat")(iter(bodies), timeout=20)), bodies)
    expect(channel.stream_unary(f"/{SERVICE}/Collect")(iter(bodies), timeout=20), b"6000000")
    expect(len(list(channel.unary_stream(f"/{SERVICE}/Download")(b"500", timeout=20))), 500)


def call_slow_reader(channel):
    total = 0
    for index, message in enumerate(channel.unary_stream(f"/{SERVICE}/Download")(b"800", timeout=20)):
        if index % 200 == 0:
            time.sleep(0.1)
        expect(message, bytes([index % 256]) * 10_000)
        total += len(message)
    expect(total, 8_000_000)


def call_mesh_retry(channel):
    metadata = (("x-fail-twice", f"python {os.getpid()}"),)
    expect(channel.unary_unary(f"/{SERVICE}/Unary")(b"again", metadata=metadata, timeout=20), b"again")


def call_own_retry(channel):
    metadata = (("x-needs-attempts", "2"),)
    expect(channel.unary_unary(f"/{SERVICE}/Unary")(b"again", metadata=metadata, timeout=20), b"again")


def call_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    expect(stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status, health_pb2.HealthCheckResponse.SERVING)
    try:
        stub.Check(health_pb2.HealthCheckRequest(service="none"), timeout=20)
    except grpc.RpcError as error:
        expect(error.code(), grpc.StatusCode.NOT_FOUND)
    else:
        raise AssertionError("no status")


def call_reflection(channel):
    database = proto_reflection_descriptor_database.ProtoReflectionDescriptorDatabase(channel)
    expect(health.SERVICE_NAME in database.get_services(), True)
    expect(database.FindFileContainingSymbol(health.SERVICE_NAME).package, "grpc.health.v1")


CASES = {
    "unary": call_unary,
    "compressed": call_compressed,
    "status": call_status,
    "unimplemented": call_unimplemented,
    "deadline": call_deadline,
    "cancel": call_cancel,
    "streams": call_streams,
    "slow_reader": call_slow_reader,
    "mesh_retry": call_mesh_retry,
    "own_retry": call_own_retry,
    "health": call_health,
    "reflection": call_reflection,
}


def call(address, authority, names):
    # The sidecar is called itself, with the service as the authority (docs/grpc.md).
    options = (("grpc.default_authority", authority), ("grpc.enable_http_proxy", 0))
    retrying = (*options, ("grpc.service_config", json.dumps(RETRY_POLICY)))
    for name in names:
        with grpc.insecure_channel(address, options=retrying if name == "own_retry" else options) as channel:
            CASES[name](channel)
            print("passed", name, flush=True)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    call(sys.argv[2], sys.argv[3], sys.argv[4:])
