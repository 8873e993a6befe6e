package io.tulle;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** The same with OpenTelemetry's SDK for Java: spans by hand, for servers and clients of the JDK alone. */
class Application {
  private static final OpenTelemetry telemetry = AutoConfiguredOpenTelemetrySdk.initialize().getOpenTelemetrySdk();
  private static final Tracer tracer = telemetry.getTracer("application");
  private static final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private static final TextMapGetter<HttpExchange> headers = new TextMapGetter<>() {
    @Override public Iterable<String> keys(HttpExchange exchange) {
      return exchange.getRequestHeaders().keySet();
    }

    @Override public String get(HttpExchange exchange, String key) {
      return exchange.getRequestHeaders().getFirst(key);
    }
  };

  public static void main(String[] args) throws Exception {
    var server = HttpServer.create(new InetSocketAddress(System.getenv("HOST"), 8080), 0);
    server.createContext("/", exchange -> {
      var propagator = telemetry.getPropagators().getTextMapPropagator();
      var parent = propagator.extract(Context.current(), exchange, headers);
      var span = tracer.spanBuilder("GET").setParent(parent).setSpanKind(SpanKind.SERVER).startSpan();
      try (exchange; var scope = span.makeCurrent()) {
        var next = exchange.getRequestURI().getQuery().replace("next=", "").split(",", 2);
        var text = next[0].isEmpty() ? "" : ask(next[0], next.length > 1 ? next[1] : "");
        var body = ("java " + text).trim().getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
      } finally {
        span.end();
      }
    });
    server.start();
    System.out.println("listens");
  }

  private static String ask(String host, String rest) {
    var span = tracer.spanBuilder("GET").setSpanKind(SpanKind.CLIENT).startSpan();
    try (var scope = span.makeCurrent()) {
      var request = HttpRequest.newBuilder(URI.create("http://" + host + ":8080/?next=" + rest));
      var propagator = telemetry.getPropagators().getTextMapPropagator();
      propagator.inject(Context.current(), request, HttpRequest.Builder::header);
      return client.send(request.build(), BodyHandlers.ofString()).body();
    } catch (java.io.IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    } finally {
      span.end();
    }
  }
}
