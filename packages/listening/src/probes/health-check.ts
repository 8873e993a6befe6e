// Probes of a program: it is asked itself, past its proxy, as a kubelet does.
import { request as requestOverTls } from "node:https";
import type { Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

/** The fields of Kubernetes' probes that are asked here. */
export interface Probe {
  readonly timeoutSeconds?: number | undefined;
  readonly httpGet?:
    | {
        readonly path?: string | undefined;
        readonly port: number | string;
        readonly host?: string | undefined;
        readonly scheme?: string | undefined;
        readonly httpHeaders?: readonly { readonly name: string; readonly value?: string | undefined }[] | undefined;
      }
    | undefined;
  readonly tcpSocket?: { readonly port: number | string; readonly host?: string | undefined } | undefined;
}

/** A port that a probe may name. */
export interface NamedPort {
  readonly name: string | undefined;
  readonly port: number;
}

/** Opens a connection to an address, in whichever network the program is. */
export type Connect = (to: { readonly host: string; readonly port: number }) => Socket;

/** Takes why an answer was not well, in a kubelet's words. */
export type OnFailure = (answer: string) => void;

/** One question to a container; true when it answered well. Never rejects. */
export type Check = (onFailure?: OnFailure) => Promise<boolean>;

export interface CheckTarget {
  readonly address: string;
  readonly connect: Connect;
  readonly ports: readonly NamedPort[];
}

const defaultTimeoutSeconds = 1;

/** The check that a probe describes; undefined for kinds of probe that cannot be asked here (`exec`, `grpc`). */
export function checkOf(probe: Probe, target: CheckTarget): Check | undefined {
  const timeoutMs = (probe.timeoutSeconds || defaultTimeoutSeconds) * 1000;
  if (probe.httpGet !== undefined) {
    const { path = "/", host, httpHeaders = [] } = probe.httpGet;
    const port = portNumber(probe.httpGet.port, target.ports);
    if (port === undefined) return undefined;
    const headers = Object.fromEntries(httpHeaders.map(({ name, value = "" }) => [name, value]));
    const isTls = probe.httpGet.scheme === "HTTPS";
    return (onFailure) =>
      httpCheck(
        { address: target.address, connect: target.connect, port, path, headers, host, isTls, timeoutMs },
        onFailure,
      );
  }
  if (probe.tcpSocket !== undefined) {
    const port = portNumber(probe.tcpSocket.port, target.ports);
    return port === undefined ? undefined : (onFailure) => tcpCheck(target, port, timeoutMs, onFailure);
  }
  return undefined;
}

/** The port that a probe asks at; undefined where it cannot be asked here. */
export function probedPort(probe: Probe, ports: readonly NamedPort[]): number | undefined {
  const port = (probe.httpGet ?? probe.tcpSocket)?.port;
  return port === undefined ? undefined : portNumber(port, ports);
}

function portNumber(port: number | string, ports: readonly NamedPort[]): number | undefined {
  return typeof port === "number" ? port : ports.find(({ name }) => name === port)?.port;
}

export interface HttpCheck {
  readonly address: string;
  readonly connect: Connect;
  readonly port: number;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Host header, where it is not the address. */
  readonly host?: string | undefined;
  readonly isTls?: boolean;
  readonly timeoutMs: number;
}

/** Well is any status from 200 to 399 (Kubernetes: httpGet probes). */
export function httpCheck(check: HttpCheck, onFailure: OnFailure = () => undefined): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const headers = { "user-agent": "tulle-probe", ...check.headers };
  const outgoing = (check.isTls === true ? requestOverTls : request)({
    host: check.address,
    port: check.port,
    path: check.path,
    headers: check.host === undefined ? headers : { ...headers, host: check.host },
    // A connection of its own each time: a reused one would not see that the program no longer accepts any.
    createConnection: () => {
      const socket: Socket = check.connect({ host: check.address, port: check.port });
      // Kubernetes: "scheme: HTTPS … the kubelet skips the certificate verification".
      return check.isTls === true ? connectSecurely({ socket, rejectUnauthorized: false }) : socket;
    },
    timeout: check.timeoutMs,
  });
  outgoing.once("response", (response) => {
    response.resume();
    const isWell = response.statusCode! >= 200 && response.statusCode! < 400;
    if (!isWell) onFailure(`HTTP probe failed with statuscode: ${response.statusCode}`);
    resolve(isWell);
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer in ${check.timeoutMs} ms`)));
  outgoing.once("error", (error) => {
    onFailure(`GET ${check.path} at ${check.address}:${check.port}: ${error.message}`);
    resolve(false);
  });
  outgoing.once("close", () => resolve(false));
  outgoing.end();
  return promise;
}

export function tcpCheck(
  { address, connect }: Pick<CheckTarget, "address" | "connect">,
  port: number,
  timeoutMs: number,
  onFailure: OnFailure = () => undefined,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address, port }).setTimeout(timeoutMs);
  socket.once("connect", () => resolve(true));
  socket.once("timeout", () => {
    onFailure(`no connection to ${address}:${port} in ${timeoutMs} ms`);
    resolve(false);
  });
  socket.once("error", (error) => {
    onFailure(error.message);
    resolve(false);
  });
  void promise.then(() => socket.destroy());
  return promise;
}
