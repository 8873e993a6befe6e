"""The same with OpenTelemetry's SDK for Python."""
import os
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from urllib.request import urlopen
from wsgiref.simple_server import WSGIServer, make_server

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.urllib import URLLibInstrumentor
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
URLLibInstrumentor().instrument()


def application(environ, start_response):
    host, *rest = parse_qs(environ["QUERY_STRING"]).get("next", [""])[0].split(",")
    text = ""
    if host:
        with urlopen(f"http://{host}:8080/?next={','.join(rest)}") as answer:
            text = answer.read().decode()
    body = f"python {text}".strip().encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


with make_server(os.environ["HOST"], 8080, OpenTelemetryMiddleware(application), Server) as server:
    print("listens", flush=True)
    server.serve_forever()
