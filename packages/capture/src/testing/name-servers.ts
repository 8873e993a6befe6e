// For tests of the name server beside a workload: name servers of the machine that answer as a test says, the server in
// front of them with names of a small mesh, and questions to it.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { promises as dns } from "node:dns";
import { type EventEmitter, once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import packet from "dns-packet";
import { MetricRegistry } from "@tulle/telemetry";
import { type Clock, systemClock } from "@tulle/timing";
import { type RunningDnsServer, startDnsServer } from "../dns/dns-server.ts";
import type { NameServer } from "../dns/forwarder.ts";
import { LengthPrefixed, withLength } from "../dns/length-prefixed.ts";
import { NameTable } from "../dns/name-table.ts";

export const manyAddresses = Array.from({ length: 60 }, (_, index) => `10.244.0.${index}`);
export const testTable = new NameTable(
  [
    {
      hostname: "catalog.shop.svc.cluster.local",
      addresses: ["10.96.0.7"],
      isKubernetes: true,
      ports: [{ name: "http", protocol: "tcp", port: 80 }],
    },
    { hostname: "many.example", addresses: manyAddresses },
  ],
  { namespace: "shop", serviceDomain: "svc.cluster.local", searchDomains: () => [] },
);

export type Answer = (query: Buffer) => readonly Buffer[];

export const addressAnswer = (query: Buffer, address: string): Buffer => {
  const { id, questions } = packet.decode(query);
  const [question] = questions ?? [];
  assert.ok(question !== undefined);
  return packet.encode({
    type: "response",
    ...(id === undefined ? {} : { id }),
    questions: [question],
    answers: [{ type: "A", name: question.name, data: address }],
  });
};

export interface Upstream {
  readonly server: NameServer;
  /** Emits `message` for each question. */
  readonly socket: EventEmitter;
  /** What it was asked. */
  readonly asked: readonly Buffer[];
}

/** A name server of the machine. */
export async function upstream(t: TestContext, answer: Answer): Promise<Upstream> {
  const asked: Buffer[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (message, remote) => {
    asked.push(message);
    for (const each of answer(message)) socket.send(each, remote.port, remote.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  t.after(() => socket.close());
  return { server: { address: "127.0.0.1", port: socket.address().port }, socket, asked };
}

/** The same over TCP. */
export async function streamUpstream(t: TestContext, answer: Answer): Promise<Omit<Upstream, "socket">> {
  const asked: Buffer[] = [];
  const server = createServer((socket) => {
    const messages = new LengthPrefixed();
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      for (const message of messages.take(chunk)) {
        asked.push(message);
        for (const each of answer(message)) socket.write(withLength(each));
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { server: { address: "127.0.0.1", port: (server.address() as AddressInfo).port }, asked };
}

export interface Started {
  readonly running: RunningDnsServer;
  readonly resolver: dns.Resolver;
  readonly metrics: MetricRegistry;
  readonly at: NameServer;
}

export interface StartOptions {
  readonly servers?: readonly NameServer[] | (() => readonly NameServer[]);
  readonly names?: NameTable | undefined;
  readonly timeoutMs?: number;
  readonly attempts?: number;
  /** The machine's when missing. */
  readonly clock?: Clock;
}

export async function startServer(t: TestContext, options: StartOptions = {}): Promise<Started> {
  const metrics = new MetricRegistry();
  const running = await startDnsServer({
    addresses: [{ address: "127.0.0.1", port: 0 }],
    names: () => ("names" in options ? options.names : testTable),
    ownDomains: [],
    forwarding: () => {
      const { servers = [], timeoutMs = 10_000, attempts = 1 } = options;
      return { servers: typeof servers === "function" ? servers() : servers, timeoutMs, attempts };
    },
    metrics,
    clock: options.clock ?? systemClock,
  });
  t.after(() => running.close());
  const [at] = running.addresses;
  assert.ok(at !== undefined);
  const resolver = new dns.Resolver();
  resolver.setServers([`${at.address}:${at.port}`]);
  t.after(() => resolver.cancel());
  return { running, resolver, metrics, at };
}

export const count = (metrics: MetricRegistry, name: string): number => metrics.counter({ name }).value;

/** The answer to one datagram, as bytes. */
export async function exchange(t: TestContext, { address, port }: NameServer, query: Buffer): Promise<Buffer> {
  const socket = createSocket("udp4");
  t.after(() => socket.close());
  socket.send(query, port, address);
  const [answer] = (await once(socket, "message")) as [Buffer];
  return answer;
}

export const query = (name: string, id = 7): Buffer =>
  packet.encode({ type: "query", id, flags: packet.RECURSION_DESIRED, questions: [{ type: "A", name }] });
