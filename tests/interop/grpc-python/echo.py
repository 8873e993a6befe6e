"""A gRPC server and its client by Python's grpcio, whose core is that of C++, Ruby and PHP.

python echo.py serve ADDRESS
python echo.py call ADDRESS AUTHORITY CASE...

Messages are raw bytes. Each case prints its name when it has passed.
"""

import sys
import threading
import time
from concurrent import futures

import grpc

SERVICE = "test.Echo"
MEGABYTE = 1024 * 1024


def unary(request, context):
    metadata = dict(context.invocation_metadata())
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


CASES = {
    "unary": call_unary,
    "compressed": call_compressed,
    "status": call_status,
    "unimplemented": call_unimplemented,
    "deadline": call_deadline,
    "cancel": call_cancel,
    "streams": call_streams,
    "slow_reader": call_slow_reader,
}


def call(address, authority, names):
    # The sidecar is called itself, with the service as the authority (docs/grpc.md).
    options = (("grpc.default_authority", authority), ("grpc.enable_http_proxy", 0))
    with grpc.insecure_channel(address, options=options) as channel:
        for name in names:
            CASES[name](channel)
            print("passed", name, flush=True)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    call(sys.argv[2], sys.argv[3], sys.argv[4:])
