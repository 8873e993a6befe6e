// The HTTP side: Fastify reads requests, the route table decides, answers are written as they are. Fastify parses no
// body and no query for us, since what it would repair has to be refused.
import { performance } from "node:perf_hooks";
import { descriptorLimit, oldestMakesWay } from "@tulle/listening";
import { type Counter, ProcessMetrics } from "@tulle/telemetry";
import Fastify from "fastify";
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
  RouteHandlerMethod,
} from "fastify";
import { metadata } from "./endpoints/metadata.ts";
import { refusalAnswer } from "./client-authentication/refusal-answer.ts";
import { messagePage, refusalPage } from "./pages/message-page.ts";
import { speechFor } from "./pages/speech.ts";
import { refuse } from "./protocol/refusal.ts";
import { Readiness } from "./readiness.ts";
import type { Refusal } from "./protocol/refusal.ts";
import type { ServerContext } from "./server-context.ts";
import { DatabaseUnavailable } from "./store/database.ts";
import { addressReader } from "./http/client-address.ts";
import type { AddressReader } from "./http/client-address.ts";
import { corsHeaders, openPreflightHeaders, preflightHeaders } from "./http/cors.ts";
import { hstsHeader } from "./http/hsts.ts";
import { traceRequests } from "./http/trace-requests.ts";
import type { Answer, EndpointRequest } from "./http/messages.ts";
import { json } from "./http/messages.ts";
import type { Route } from "./routes.ts";
import { routes, wellKnownPath } from "./routes.ts";

/** A form of this protocol has a few hundred bytes; tokens and redirect URIs may add a few thousand. */
const maxBodyBytes = 65_536;
/** An authorization request with a state of 8 KB, percent-encoded, and cookies beside it. */
const maxHeaderBytes = 32_768;
/** Head and body of a request have come by then, or its connection ends. */
const requestTimeoutMs = 15_000;
/**
 * How often it is looked which ones have not; Node's own is 30 s, so that half a request would live three times as
 * long.
 */
const requestCheckMs = 1000;
const keepAliveMs = 65_000;
// A proxy closes idle connections itself, Envoy after an hour. If the server did it first, a request that is already on
// its way would be lost, and token requests are not repeated.
const proxiedKeepAliveMs = 3_900_000;
/**
 * Connections without a request; half of a smaller limit on descriptors. The oldest makes way: who holds many keeps
 * nobody out.
 */
const maxIdleConnections = 1024;

/** What tests make shorter. */
export interface RequestLimits {
  readonly requestTimeoutMs: number;
  readonly requestCheckMs: number;
}

export function createApp(
  server: ServerContext,
  limits: RequestLimits = { requestTimeoutMs, requestCheckMs },
): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: maxBodyBytes,
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.requestCheckMs,
    },
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: server.config.trustedProxies.length > 0 ? proxiedKeepAliveMs : keepAliveMs,
    routerOptions: { querystringParser: () => ({}), ignoreTrailingSlash: false, maxParamLength: 200 },
    exposeHeadRoutes: false,
    forceCloseConnections: "idle",
    return503OnClosing: false,
  });
  oldestMakesWay(app.server, Math.min(maxIdleConnections, Math.ceil(descriptorLimit() / 2)));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  const hsts = hstsHeader(server.config.issuer);
  if (hsts !== undefined)
    app.addHook("onRequest", (_request, reply, done) => done(void reply.header("strict-transport-security", hsts)));
  if (server.tracer !== undefined) traceRequests(app, server.tracer);
  const addressOf = addressReader(server.config.trustedProxies);
  const issuerPath = new URL(server.config.issuer).pathname.replace(/\/$/, "");
  const served = new Map<string, Served>();
  const add = (route: Route, url: string): void => {
    addRoute(app, server, route, url, addressOf);
    const entry = served.get(url) ?? { methods: new Set(["OPTIONS"]), route };
    for (const method of methodsOf(route)) entry.methods.add(method);
    served.set(url, entry);
  };
  for (const route of routes) add(route, issuerPath + route.path === "" ? "/" : issuerPath + route.path);
  // The home page is where people type a slash.
  const home = routes.find((route) => route.path === "")!;
  if (issuerPath !== "") add(home, `${issuerPath}/`);
  add({ path: "", methods: ["GET"], handler: metadata, kind: "public" }, wellKnownPath(issuerPath));
  for (const [url, entry] of served) addOptions(app, server, url, entry);
  addOperation(app, server);
  app.setNotFoundHandler(async (request, reply) => {
    const speech = speechFor(server, endpointRequest(request, addressOf));
    const allow = allowedMethods(request, served);
    const { notFoundTitle: title, notFound: text } = speech.texts.error;
    const answer = messagePage(server, speech, { status: allow === undefined ? 404 : 405, title, text, way: "home" });
    await write(reply, allow === undefined ? answer : { ...answer, headers: { ...answer.headers, allow } });
  });
  return app;
}

/** What is served at one address. */
interface Served {
  readonly methods: Set<string>;
  /** Those of one address have the same readers. */
  readonly route: Route;
}

/** RFC 9110 §9.3.2: whatever can be read can be asked for its headers. */
function methodsOf({ methods }: Route): readonly HTTPMethods[] {
  return methods.includes("GET") ? [...methods, "HEAD"] : methods;
}

function allowList(methods: ReadonlySet<string>): string {
  return [...methods].sort().join(", ");
}

/** For 405: what the address serves; undefined where it is none, or where the method is not what is wrong. */
function allowedMethods(request: FastifyRequest, served: ReadonlyMap<string, Served>): string | undefined {
  const path = request.url.split("?")[0]!;
  for (const [url, { methods }] of served) {
    const segments = url.split(":id").map((part) => RegExp.escape(part));
    if (!new RegExp(`^${segments.join("[^/]+")}/?$`).test(path)) continue;
    return methods.has(request.method) ? undefined : allowList(methods);
  }
  return undefined;
}

/** RFC 9110 §9.3.7, and the question that browsers ask before a request to another origin. */
function addOptions(app: FastifyInstance, server: ServerContext, url: string, { methods, route }: Served): void {
  const addressOf = addressReader([]);
  app.options(url, async (request, reply) => {
    const more =
      route.cors === true
        ? await preflightHeaders(server, endpointRequest(request, addressOf)).catch(() => ({}))
        : route.kind === "public"
          ? openPreflightHeaders
          : {};
    await write(reply, { status: 204, headers: { allow: allowList(methods), ...more }, body: "" });
  });
}

function addRoute(
  app: FastifyInstance,
  server: ServerContext,
  route: Route,
  url: string,
  addressOf: AddressReader,
): void {
  const name = route.path === "" ? "root" : route.path.slice(1).replaceAll("/:id", "");
  const duration = server.metrics.duration(name);
  // Looked up once for each status, since building the labels costs more than the count.
  const counters = new Map<number, Counter>();
  const count = (status: number): void => {
    let counter = counters.get(status);
    if (counter === undefined) counters.set(status, (counter = server.metrics.requests(name, status)));
    counter.increment();
  };
  const handle = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const started = performance.now();
    const isHead = request.method === "HEAD";
    const whole = endpointRequest(request, addressOf);
    const incoming = isHead ? askedForHeaders(whole) : whole;
    let answer: Answer;
    try {
      answer = await route.handler(server, incoming, (request.params as { id?: string }).id ?? "");
    } catch (error) {
      answer = failureAnswer(server, route, name, incoming, error);
    }
    if (route.cors === true && incoming.headers.origin !== undefined) {
      answer = {
        ...answer,
        headers: { ...answer.headers, ...(await corsHeaders(server, incoming).catch(() => ({}))) },
      };
    }
    await write(reply, isHead ? withoutCookies(answer) : answer);
    count(answer.status);
    duration.record(performance.now() - started);
  };
  const others = route.anyMethod === true ? (["GET", "PUT", "PATCH", "DELETE"] as const) : [];
  app.route({
    method: [...methodsOf(route), ...others],
    url,
    handler: handle,
    // What Fastify itself finds wrong with a message: too large, or cut short.
    errorHandler: async (error: FastifyError, request, reply) => {
      const incoming = endpointRequest(request, addressOf);
      const answer = failureAnswer(server, route, name, incoming, error);
      await write(reply, answer);
      count(answer.status);
    },
  });
}

/**
 * HEAD is answered as a GET of nobody: without cookies no code is issued, no page is answered and nobody is signed out,
 * whoever looks a link up in advance.
 */
function askedForHeaders(request: EndpointRequest): EndpointRequest {
  const { cookie: _, ...headers } = request.headers;
  return { ...request, method: "GET", headers };
}

/** What belongs to a page that nobody sees would take the place of what belongs to an open one. */
function withoutCookies(answer: Answer): Answer {
  const { "set-cookie": _, ...headers } = answer.headers;
  return { ...answer, headers };
}

function endpointRequest(request: FastifyRequest, addressOf: AddressReader): EndpointRequest {
  const url = request.raw.url ?? "";
  const mark = url.indexOf("?");
  return {
    method: request.method,
    query: mark < 0 ? "" : url.slice(mark + 1),
    headers: request.headers,
    body: Buffer.isBuffer(request.body) ? request.body.toString("latin1") : "",
    address: addressOf(request.socket.remoteAddress ?? "", request.headers["x-forwarded-for"] as string | undefined),
  };
}

async function write(reply: FastifyReply, answer: Answer): Promise<void> {
  reply.code(answer.status);
  for (const [name, value] of Object.entries(answer.headers)) {
    reply.header(name, typeof value === "string" ? value : [...value]);
  }
  // Fastify adds a content type only to a text that has none; an empty body needs none.
  await (answer.body === "" ? reply.send() : reply.send(answer.body));
}

/** What a failure that no endpoint foresaw looks like: in the endpoint's own form, and told to the operator. */
function failureAnswer(
  server: ServerContext,
  route: Route,
  name: string,
  request: EndpointRequest,
  error: unknown,
): Answer {
  const refusal = failureRefusal(server, error);
  if (route.kind === "json") {
    const answer = refusalAnswer(server, request, refusal, { endpoint: name, unauthorizedStatus: false }, undefined);
    return refusal.error === "server_error" && name !== "token" ? { ...answer, status: 500 } : answer;
  }
  server.metrics.refusals(name, refusal.error).increment();
  const errorId = server.audit.refusal(`${name} failed`, refusal, { address: request.address });
  const speech = speechFor(server, request);
  const texts = speech.texts.error;
  // What came with a form cannot be sent once more by a link.
  const way = request.method === "GET" ? "again" : "account";
  switch (refusal.error) {
    case "temporarily_unavailable":
      return messagePage(server, speech, {
        status: 503,
        title: texts.unavailableTitle,
        text: texts.unavailable,
        errorId,
        way,
        retryAfterSeconds: 5,
      });
    case "invalid_request":
      return refusalPage(server, speech, refusal, errorId);
    default:
      return messagePage(server, speech, { status: 500, title: texts.brokenTitle, text: texts.broken, errorId, way });
  }
}

function failureRefusal(server: ServerContext, error: unknown): Refusal {
  if (error instanceof DatabaseUnavailable)
    return refuse("temporarily_unavailable", "the service cannot reach its database; try again", error.message);
  const { code, statusCode } = error as FastifyError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return refuse("invalid_request", `the body is larger than ${maxBodyBytes} bytes`);
  if (statusCode !== undefined && statusCode < 500)
    return refuse("invalid_request", "the body cannot be read", String(error));
  server.log.error("request failed", {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return refuse("server_error", "something went wrong inside the server", String(error));
}

/** Health, readiness and metrics, beside the issuer's path so that a gateway that routes only the issuer hides them. */
function addOperation(app: FastifyInstance, server: ServerContext): void {
  const readiness = new Readiness(server);
  const process = new ProcessMetrics(server.metrics.registry);
  const method: HTTPMethods[] = ["GET", "HEAD"];
  const read = (url: string, handler: RouteHandlerMethod): void => void app.route({ method, url, handler });
  read("/healthz", async (_request, reply) => write(reply, json(200, { status: "ok" })));
  read("/readyz", async (_request, reply) => {
    const reason = await readiness.problem();
    const body = reason === undefined ? { status: "ready" } : { status: "not ready", reason };
    await write(reply, json(reason === undefined ? 200 : 503, body));
  });
  read("/metrics", async (request, reply) => {
    const address = (request.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
    const near = (address.startsWith("127.") || address === "::1") && request.headers["x-forwarded-for"] === undefined;
    const open = server.config.metrics === "any" || (server.config.metrics === "loopback" && near);
    if (!open) return reply.callNotFound();
    process.refresh();
    const { contentType, text } = server.metrics.registry.page(request.headers.accept);
    return reply.header("content-type", contentType).header("vary", "Accept").send(text);
  });
}
