// Istio's ports of an agent: one tells the platform when a pod's proxy is ready, the other has the metrics of proxy and
// agent together, whichever data plane it is, the probes of the pod's application, and a way to end the agent.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { acceptBacklog, oldestMakesWay } from "@tulle/listening";
import { healthPath, healthPort } from "./health-address.ts";
import type { MergedMetrics } from "./scrape/merged-metrics.ts";
import { metricsPort } from "./settings.ts";
import type { RunningDataPlane } from "./data-plane/data-plane.ts";
import type { ProbeDesk } from "./probes/probe-desk.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { createServer } = process.getBuiltinModule("node:http");

export const metricsPath = "/stats/prometheus";
/** By which a program of the pod says that it needs its proxy no more (Istio: a Job's last words). */
const quitPath = "/quitquitquit";
/** A hook of the pod's programs, which are told to end when it is answered: the injector writes it. */
const drainPath = "/app-lifecycle/drain";

/**
 * Of each port, those that have not asked yet. Any user of the machine may take them all; the oldest makes way, so that
 * no probe is kept out.
 */
const maxWaiting = 256;
const maxConnections = 1024;
/**
 * Pages of metrics that somebody has not taken yet: each is there as a whole, and anybody may ask and read nothing. The
 * oldest makes way.
 */
export const maxPages = 16;
/**
 * Answers that somebody waits for: a hook's comes after seconds, and so does a probe's while the application is slow.
 * The oldest makes way, so that no probe is kept out.
 */
export const maxAwaited = 256;
/** Who prefers to wait for longer is answered then. */
const maxWaitSeconds = 60;

export interface HealthServerOptions {
  /** `::` for all addresses of both families, or of the one that there is. */
  readonly podAddress: string;
  /** A pod that leaves is not ready: nothing new should be sent to it while its requests finish. */
  readonly leaving: AbortSignal;
  /** Undefined while there is none yet. */
  readonly dataPlane: () => RunningDataPlane | undefined;
  readonly metrics: Pick<MergedMetrics, "page">;
  /** Undefined where the application has no probes to ask. */
  readonly probes?: Pick<ProbeDesk, "ask"> | undefined;
  readonly onQuit?: () => void;
  /** Resolves when clients have had the time to learn that the pod leaves. */
  readonly drained?: () => Promise<void>;
}

/** Listens on the pod's address until it is disposed of; rejects if a port cannot be bound. */
export async function startHealthServer({
  podAddress,
  leaving,
  dataPlane,
  metrics,
  probes,
  onQuit,
  drained,
}: HealthServerOptions): Promise<AsyncDisposable> {
  const pages = new Set<ServerResponse>();
  const awaited = new Set<ServerResponse>();
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url === quitPath && request.socket.localPort === metricsPort) {
      if (request.method !== "POST") return respond(response, 405, "POST only\n");
      if (!isOfPod(request)) return respond(response, 403, "programs of the pod only\n");
      respond(response, 200, "the agent ends\n");
      return onQuit?.();
    }
    if (request.url === drainPath && request.socket.localPort === metricsPort && drained !== undefined) {
      admit(response, awaited, maxAwaited);
      return void drained().then(() => respond(response, 200, "drained\n"));
    }
    const answer = request.socket.localPort === metricsPort ? probes?.ask(request.url ?? "") : undefined;
    if (answer !== undefined) {
      admit(response, awaited, maxAwaited);
      return void answer.then(({ status, text }) => respond(response, status, `${text}\n`));
    }
    // Istio's agent answers at both.
    const isMetrics = request.url === metricsPath || request.url === "/metrics";
    if (request.url !== healthPath && !isMetrics) respond(response, 404, "not found\n");
    else if (request.method !== "GET" && request.method !== "HEAD") respond(response, 405, "GET only\n");
    else if (isMetrics) {
      admit(response, pages, maxPages);
      void metrics.page(request.headers).then(({ contentType, text }) => respond(response, 200, text, contentType));
    } else void tellReadiness(request, response);
  };
  const isReady = async (): Promise<boolean> => !leaving.aborted && ((await dataPlane()?.isReady()) ?? false);
  const tellReadiness = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let ready = await isReady();
    const waitMs = ready ? preferredWaitMs(request) : 0;
    // Who has gone meanwhile takes no place: his connection would never end again.
    if (waitMs > 0 && !leaving.aborted && !response.destroyed) {
      admit(response, awaited, maxAwaited);
      await untilLeaving(leaving, waitMs, response);
      ready = await isReady();
    }
    const text = ready ? "ready" : leaving.aborted ? "the agent is stopping" : "the proxy is not ready";
    respond(response, ready ? 200 : 503, `${text}\n`);
  };
  const servers: Server[] = [];
  const close = async (): Promise<void> => void (await Promise.all(servers.map(closeServer)));
  try {
    for (const port of [healthPort, metricsPort]) servers.push(await listen(onRequest, port, podAddress));
  } catch (error) {
    await close();
    throw error;
  }
  return { [Symbol.asyncDispose]: close };
}

function respond(
  response: ServerResponse,
  status: number,
  body: string,
  contentType = "text/plain; charset=UTF-8",
): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": contentType, connection: "close" });
  response.end(body);
}

/**
 * Who asks whether the proxy is ready may prefer to be told when it is not any more (RFC 7240, section 4.3): one
 * question, then, in the place of many. Zero for who does not.
 */
function preferredWaitMs({ headers }: IncomingMessage): number {
  const [, seconds = "0"] = /(?:^|,)\s*wait=(\d{1,4})\s*(?:,|$)/.exec(String(headers["prefer"] ?? "")) ?? [];
  return Math.min(Number(seconds), maxWaitSeconds) * 1000;
}

/** Resolves when the pod leaves, after that time, or when nobody waits any more. */
async function untilLeaving(leaving: AbortSignal, waitMs: number, response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMs).unref();
  const onEnd = (): void => resolve();
  leaving.addEventListener("abort", onEnd);
  response.once("close", onEnd);
  await promise;
  clearTimeout(timer);
  leaving.removeEventListener("abort", onEnd);
}

function admit(response: ServerResponse, open: Set<ServerResponse>, most: number): void {
  const [oldest] = open;
  if (open.size >= most) {
    // Forgotten at once: its end comes later.
    open.delete(oldest!);
    oldest!.destroy();
  }
  open.add(response);
  response.once("close", () => open.delete(response));
}

/** 127.0.0.6 is the proxy, which calls in the name of others. */
function isOfPod({ socket }: IncomingMessage): boolean {
  return /^(?:(?:::ffff:)?127\.0\.0\.1|::1)$/.test(socket.remoteAddress ?? "");
}

async function listen(onRequest: RequestListener, port: number, address: string): Promise<Server> {
  const server = createServer(onRequest);
  server.maxConnections = maxConnections;
  oldestMakesWay(server, maxWaiting);
  const begin = async (host: string): Promise<void> => {
    const listening = Promise.withResolvers<void>();
    server.once("error", listening.reject);
    server.listen({ port, host, backlog: acceptBacklog }, listening.resolve);
    await listening.promise.finally(() => server.off("error", listening.reject));
  };
  await begin(address).catch(async (error: NodeJS.ErrnoException) => {
    // A pod without IPv6.
    if (address !== "::" || !["EAFNOSUPPORT", "EADDRNOTAVAIL"].includes(error.code ?? "")) throw error;
    await begin("0.0.0.0");
  });
  return server;
}

async function closeServer(server: Server): Promise<void> {
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  server.closeAllConnections();
  await closed.promise;
}
