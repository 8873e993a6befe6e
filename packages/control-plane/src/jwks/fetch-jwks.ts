// One fetch of an issuer's keys over HTTP(S), bounded in time and size. What comes back is a key set with public keys
// alone, or the reason why there is none; nothing of an answer that is no key set is shown to anyone.
import { lookup } from "node:dns/promises";
import type http from "node:http";
import https from "node:https";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { listeningSocket, OwnPrograms, type SocketEnd, takerOf } from "@tulle/capture";
import { parseKeySet } from "@tulle/config";
import { userName } from "@tulle/identity/own";
import type { JwksLocation } from "../snapshot/mesh-snapshot.ts";
import { isFetchableAddress } from "./fetchable-address.ts";
import { connectInMesh, type MeshClient } from "./mesh-connection.ts";
import type { SocketEndpoint } from "./mesh-endpoint.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const plainHttp = process.getBuiltinModule("node:http");

/**
 * Key sets and discovery documents have a few kilobytes; a listener with a larger set would be a burden on every proxy.
 */
const maxBodyBytes = 262_144;
const ownPrograms = new OwnPrograms();

export type FetchedJwks = { readonly jwks: string } | { readonly problem: string };

/** Where a Service of the mesh listens; undefined for hosts outside. */
export type ResolveMeshHost = (url: URL) => SocketEndpoint | "none" | undefined;

/** How the mesh is reached, and as whom. */
export interface MeshAccess {
  readonly resolve: ResolveMeshHost;
  /** Read for each connection anew; missing where the mesh has no authority. */
  readonly client?: (() => MeshClient) | undefined;
  /** Whose answers are believed at a pod's address of this machine. */
  readonly own?: OwnPrograms;
}

/** `timeoutMs` is for the whole: discovery, names, connections, bodies. Never rejects. */
export async function fetchJwks(location: JwksLocation, timeoutMs: number, mesh: MeshAccess): Promise<FetchedJwks> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const body = await fetchText(location.url, mesh, signal);
    const keys = parseKeySet(location.isDiscovery ? await fetchDiscovered(body, mesh, signal) : body);
    return "problem" in keys ? keys : { jwks: keys.text };
  } catch (error) {
    if (signal.aborted) return { problem: `no complete answer within ${timeoutMs} ms` };
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function fetchDiscovered(document: string, mesh: MeshAccess, signal: AbortSignal): Promise<string> {
  const url = jwksUriOf(document);
  if (url === undefined) throw new Error("the discovery document names no jwks_uri");
  return fetchText(url, mesh, signal);
}

function jwksUriOf(document: string): string | undefined {
  try {
    const value: unknown = JSON.parse(document);
    if (typeof value !== "object" || value === null || !("jwks_uri" in value)) return undefined;
    return typeof value.jwks_uri === "string" ? value.jwks_uri : undefined;
  } catch {
    return undefined;
  }
}

/** Any document of an issuer, by the same rules. Never rejects. */
export async function fetchDocument(
  url: string,
  timeoutMs: number,
  mesh: MeshAccess,
): Promise<{ readonly text: string } | { readonly problem: string }> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return { text: await fetchText(url, mesh, signal) };
  } catch (error) {
    if (signal.aborted) return { problem: `no complete answer within ${timeoutMs} ms` };
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

async function fetchText(text: string, mesh: MeshAccess, signal: AbortSignal): Promise<string> {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new Error("not an http or https URL without credentials");
  }
  const endpoint = await resolve(url, mesh.resolve, signal);
  const { meshTls } = endpoint;
  if (meshTls === undefined || mesh.client === undefined) return request(url, endpoint, signal, { own: mesh.own });
  const socket = await connectInMesh({ ...endpoint, meshTls }, mesh.client(), signal);
  try {
    return await request(url, endpoint, signal, { within: socket });
  } finally {
    socket.destroy();
  }
}

/**
 * The address that is checked is the one that is connected to: a name that changes its mind meanwhile changes nothing.
 */
async function resolve(url: URL, resolveMeshHost: ResolveMeshHost, signal: AbortSignal): Promise<SocketEndpoint> {
  const inMesh = resolveMeshHost(url);
  if (inMesh === "none") throw new Error(`${url.hostname} has no ready endpoint for the port`);
  if (inMesh !== undefined) return inMesh;
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const found = isIP(host) === 0 ? await unlessAborted(lookup(host, { all: true }), signal) : [{ address: host }];
  const allowed = found.find(({ address }) => isFetchableAddress(address));
  if (allowed === undefined) throw new Error(`${host} has no address that keys are fetched from`);
  return { address: allowed.address, port };
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => aborted.reject(new Error("aborted")), { once: true });
  return Promise.race([promise, aborted.promise]);
}

interface Connection {
  /** A connection of the mesh, which carries the issuer's own TLS too where its URL is https. */
  readonly within?: Duplex;
  readonly own?: OwnPrograms | undefined;
}

/** Redirects are not followed: they would lead around the checks, and an issuer's URL is a constant. */
function request(
  url: URL,
  { address, port, ofPod }: SocketEndpoint,
  signal: AbortSignal,
  { within, own = ownPrograms }: Connection,
): Promise<string> {
  const { promise, resolve: succeed, reject } = Promise.withResolvers<string>();
  const isTls = url.protocol === "https:";
  const servername = isTls && isIP(url.hostname) === 0 ? url.hostname : undefined;
  const over = (socket: Duplex): Duplex =>
    isTls ? connectTls({ socket, ...(servername === undefined ? {} : { servername }) }) : socket;
  const options: https.RequestOptions = {
    host: address,
    port,
    path: url.pathname + url.search,
    headers: { host: url.host, accept: "application/json", "user-agent": "tulle-control-plane" },
    signal,
    ...(servername === undefined ? {} : { servername }),
    // An agent, even none, would make its own connection.
    ...(within === undefined ? { agent: false } : { createConnection: () => over(within) }),
  };
  const sent = (isTls ? https : plainHttp).request(options, (response) => {
    if (response.statusCode !== 200) {
      response.destroy();
      reject(new Error(`answered with status ${response.statusCode}`));
      return;
    }
    readBody(response).then(succeed, reject);
  });
  if (ofPod === true && within === undefined) refuseOthers(sent, { ip: address, port }, own);
  sent.on("error", reject);
  sent.end();
  return promise;
}

/**
 * Of pods on this machine's loopback: while a pod's program starts again another user may have its address, and would
 * say whose tokens are good. Nothing that it answers is read.
 */
function refuseOthers(sent: http.ClientRequest, host: SocketEnd, own: OwnPrograms): void {
  if (!host.ip.startsWith("127.")) return;
  const before = listeningSocket(host);
  const look = ({ localAddress: ip = "", localPort: port = 0 }: Socket): void => {
    const taker = takerOf(before, host, { ip, port });
    if (own.areAt(taker)) return;
    const who = typeof taker === "object" ? `a program of user ${userName(taker.uid)}` : "nobody any more";
    sent.destroy(new Error(`${host.ip}:${host.port} is held by ${who}, and not by the pod's own program`));
  };
  sent.on("socket", (socket) => socket.once("connect", () => look(socket)));
}

async function readBody(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new Error(`the answer is larger than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
