// The admin interface: plain HTTP on a loopback or pod address. Whoever reaches it may stop the proxy, so that a
// browser page from elsewhere is refused even when it runs on this machine.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { acceptBacklog } from "@tulle/listening";
import { BootstrapError } from "../bootstrap/read-bootstrap.ts";
import type { AdminPage, AdminResponse, AdminTargets } from "./admin-page.ts";
import { text } from "./admin-page.ts";
import { OwnUserGate } from "../own-user/own-user-gate.ts";
import { foreignPageFault } from "./foreign-page.ts";
import { adminPage, helpText } from "./pages.ts";
import { sendPieces } from "./send-pieces.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { createServer } = process.getBuiltinModule("node:http");

/** A form of `/logging` is short; more is not read. */
const maxBodyBytes = 64 * 1024;

export interface AdminServer {
  readonly address: { readonly ip: string; readonly port: number };
  close(): Promise<void>;
}

/** @throws when the address cannot be bound. */
export async function startAdmin(
  address: { readonly ip: string; readonly port: number },
  targets: AdminTargets & { readonly isForOwnUser: boolean },
): Promise<AdminServer> {
  const log = targets.logging.logger("admin");
  const answerOrFail = async (request: IncomingMessage): Promise<AdminResponse> => {
    try {
      return await answer(request, targets);
    } catch (error) {
      log.error("an admin page failed", { path: request.url, reason: String(error) });
      return text("internal error\n", 500);
    }
  };
  const server = createServer((request, response) => {
    void answerOrFail(request).then((result) => {
      log.debug("request", { method: request.method, path: request.url, status: result.status });
      send(request, response, result);
    });
  });
  if (targets.isForOwnUser) {
    const gate = new OwnUserGate(log);
    server.on("connection", (socket) => void gate.admits(socket, "admin"));
  }
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const words = error.code === "EADDRINUSE" ? "Address already in use" : error.message;
      reject(new BootstrapError([`admin: cannot bind '${address.ip}:${address.port}': ${words}`]));
    });
    server.listen({ host: address.ip, port: address.port, exclusive: true, backlog: acceptBacklog }, resolve);
  });
  const bound = server.address() as AddressInfo;
  log.info("admin address", { address: bound.address, port: bound.port });
  return {
    address: { ip: bound.address, port: bound.port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, targets: AdminTargets): Promise<AdminResponse> {
  const fault = foreignPageFault(request.headers);
  if (fault !== undefined) return text(fault, 403);
  const asked = request.url ?? "/";
  const target = asked.startsWith("/") ? `http://admin${asked}` : asked;
  const url = URL.canParse(target) ? new URL(target) : undefined;
  const page = url && adminPage(url.pathname);
  if (url === undefined || page === undefined) return text(`invalid path. ${helpText()}`, 404);
  const method = request.method ?? "GET";
  if (page.changesSomething === true && method !== "POST") {
    return text(`Method ${method} not allowed, POST required.`, 405);
  }
  if (method !== "GET" && method !== "HEAD" && method !== "POST") {
    return text(`Method ${method} not allowed.`, 405);
  }
  return page.handle(await parameters(page, request, url), targets, request.headers);
}

/** A form's fields count as parameters, as in Envoy. */
async function parameters(page: AdminPage, request: IncomingMessage, url: URL): Promise<URLSearchParams> {
  const isForm = request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded") === true;
  if (page.changesSomething !== true || !isForm) return url.searchParams;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) break;
    chunks.push(chunk);
  }
  const form = new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
  return form.size > 0 ? form : url.searchParams;
}

function send(request: IncomingMessage, response: ServerResponse, result: AdminResponse): void {
  const headers = {
    "content-type": result.contentType,
    "cache-control": "no-cache, max-age=0",
    "x-content-type-options": "nosniff",
    server: "envoy",
  };
  const { body } = result;
  if (typeof body !== "string" && request.method !== "HEAD") {
    void sendPieces(request, response, { status: result.status, headers, pieces: body });
    return;
  }
  response.writeHead(result.status, headers);
  response.end(typeof body === "string" && request.method !== "HEAD" ? body : undefined, result.afterwards);
}
