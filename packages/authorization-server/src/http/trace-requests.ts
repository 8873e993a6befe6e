// A span for each request, by the pattern of its path and joined to the caller's trace. Nothing else of what was asked
// stands in it: queries, forms and headers hold codes, tokens and secrets.
import type { ProcessTracer } from "@tulle/telemetry";
import type { FastifyInstance } from "fastify";

export function traceRequests(app: FastifyInstance, tracer: ProcessTracer): void {
  app.addHook("onRequest", (request, reply, done) => {
    const route = request.is404 ? undefined : request.routeOptions.url;
    const name = route === undefined ? request.method : `${request.method} ${route}`;
    const span = tracer.start(name, { kind: "server", parent: request.headers["traceparent"]?.toString() });
    span?.set("http.request.method", request.method);
    if (route !== undefined) span?.set("http.route", route);
    // However it ends: answered, given up by its client, or cut short.
    reply.raw.once("close", () => {
      const { writableFinished: isAnswered, statusCode: status } = reply.raw;
      if (isAnswered) span?.set("http.response.status_code", status);
      span?.end(isAnswered ? (status >= 500 ? String(status) : undefined) : "the client has gone");
    });
    done();
  });
}
