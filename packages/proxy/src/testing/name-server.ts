// A small name server for tests of clusters by DNS: it answers over UDP as a test says, and counts what it is asked.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import packet from "dns-packet";

export interface NameAnswer {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  /** The name is another one's alias for so many seconds. */
  readonly aliasSeconds?: number;
  readonly ttlSeconds?: number;
  /** 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED. */
  readonly code?: number;
  readonly isSilent?: boolean;
}

export interface TestNameServer {
  readonly port: number;
  readonly address: string;
  /** Names that it knows; for all others it answers NXDOMAIN. */
  readonly names: Map<string, NameAnswer>;
  /** How often a name was asked for. */
  asked(name: string): number;
  /** From which ports. */
  askedFrom(name: string): readonly number[];
  close(): void;
}

export async function startTestNameServer(): Promise<TestNameServer> {
  const names = new Map<string, NameAnswer>();
  const asked = new Map<string, number[]>();
  const socket = createSocket("udp4");
  socket.on("message", (message, remote) => {
    const { id = 0, questions = [] } = packet.decode(message);
    const [question] = questions;
    assert.ok(question !== undefined);
    const name = question.name.toLowerCase();
    asked.set(name, [...(asked.get(name) ?? []), remote.port]);
    const answer = names.get(name) ?? { code: 3 };
    if (answer.isSilent === true) return;
    const ttl = answer.ttlSeconds ?? 60;
    const owner = answer.aliasSeconds === undefined ? question.name : `alias.${question.name}`;
    const alias =
      answer.aliasSeconds === undefined
        ? []
        : [{ type: "CNAME", name: question.name, ttl: answer.aliasSeconds, data: owner } as const];
    const of = (type: "A" | "AAAA", addresses: readonly string[] = []) =>
      question.type === type ? addresses.map((data) => ({ type, name: owner, ttl, data }) as const) : [];
    const bytes = packet.encode({
      type: "response",
      id,
      flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | (answer.code ?? 0),
      questions: [question],
      answers: [...alias, ...of("A", answer.a), ...of("AAAA", answer.aaaa)],
    });
    socket.send(bytes, remote.port, remote.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  return {
    port,
    address: `127.0.0.1:${port}`,
    names,
    asked: (name) => asked.get(name)?.length ?? 0,
    askedFrom: (name) => asked.get(name) ?? [],
    close: () => socket.close(),
  };
}
