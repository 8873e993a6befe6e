// What a program under another user's id, perhaps in another network namespace, tries against a running mesh; started
// as root, it gives up that id before it tries anything, and prints what came of each try as JSON.
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { createCertificate, encodeRequest, openByteStream, resourceType, type ClientTls } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";

/** All that is no secret, and what the program may have made itself. */
export interface Knowledge {
  readonly uid: number;
  /** Where the control plane's TLS may be, `host:port`. */
  readonly xdsAddresses: readonly string[];
  readonly rootsPem: string;
  readonly nodeId: string;
  readonly csrPem: string;
  readonly tokens: Readonly<Record<string, string>>;
  /** Key and chain that claim to be the workload, of the program's own authority. */
  readonly selfSigned: { readonly privateKeyPem: string; readonly certChainPem: string };
  readonly files: readonly string[];
  readonly sockets: readonly string[];
  /** Ports of a workload under STRICT, `host:port`. */
  readonly workloads: readonly string[];
  /** Asked in plain HTTP, `host:port`. */
  readonly ports: readonly string[];
}

export type Outcomes = Readonly<Record<string, string>>;

const serverName = "tulled.tulle-system.svc";
const patienceMs = 5_000;

async function readingFile(file: string): Promise<string> {
  try {
    return await Promise.resolve(`read ${readFileSync(file).byteLength} bytes`);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

/** "connected", what was said first when something is asked, or why not. */
async function talking(socket: Socket, opened: string, question?: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.setTimeout(patienceMs, () => resolve("silence"));
  socket.once(opened, () => (question === undefined ? resolve("connected") : socket.write(question)));
  socket.once("data", (chunk) => resolve(`answered ${chunk.toString("latin1").split("\r\n")[0]}`));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(`refused ${error.code ?? error.message}`));
  socket.once("close", () => resolve("closed"));
  const outcome = await promise;
  socket.destroy();
  return outcome;
}

async function askingForCertificate(knowledge: Knowledge, at: string, token: string | undefined): Promise<string> {
  const answer = await createCertificate({
    target: `https://${at}`,
    tls: () => ({ rootsPem: knowledge.rootsPem, serverName }),
    csrPem: knowledge.csrPem,
    ...(token === undefined ? {} : { bearerToken: token }),
    timeoutMs: patienceMs,
  });
  return answer.ok ? "issued" : `${answer.status}: ${answer.details}`;
}

async function openingXds(
  knowledge: Knowledge,
  at: string,
  identity: ClientTls["identity"] | "plaintext",
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const isPlain = identity === "plaintext";
  const tls: ClientTls = {
    rootsPem: knowledge.rootsPem,
    serverName,
    ...(isPlain || identity === undefined ? {} : { identity }),
  };
  const stream = openByteStream(
    `${isPlain ? "http" : "https"}://${at}`,
    {
      onOpen: () => {
        const request = { type: resourceType("CDS"), names: [], versionInfo: "", nonce: "", error: undefined };
        stream.write(encodeRequest({ ...request, first: true }, create(NodeSchema, { id: knowledge.nodeId })));
      },
      onMessage: () => resolve("configuration"),
      onEnd: (reason) => resolve(`refused ${reason}`),
    },
    isPlain ? {} : { tls: () => tls },
  );
  const timer = setTimeout(() => resolve("silence"), patienceMs);
  const outcome = await promise;
  clearTimeout(timer);
  stream.close();
  return outcome;
}

/** Each try by its name. */
function triesOf(knowledge: Knowledge): ReadonlyMap<string, () => Promise<string>> {
  const tries = new Map<string, () => Promise<string>>();
  for (const file of knowledge.files) tries.set(`file ${file}`, () => readingFile(file));
  for (const path of knowledge.sockets) tries.set(`socket ${path}`, () => talking(connect({ path }), "connect"));
  for (const at of knowledge.xdsAddresses) {
    tries.set(`certificate without a token, ${at}`, () => askingForCertificate(knowledge, at, undefined));
    for (const [name, token] of Object.entries(knowledge.tokens)) {
      tries.set(`certificate for ${name}, ${at}`, () => askingForCertificate(knowledge, at, token));
    }
    tries.set(`xDS without a certificate, ${at}`, () => openingXds(knowledge, at, undefined));
    tries.set(`xDS with a certificate of its own, ${at}`, () => openingXds(knowledge, at, knowledge.selfSigned));
    tries.set(`xDS in the clear, ${at}`, () => openingXds(knowledge, at, "plaintext"));
  }
  for (const workload of knowledge.workloads) addWorkload(tries, knowledge, workload);
  for (const at of knowledge.ports) {
    const { hostname: host, port } = new URL(`http://${at}`);
    const question = "GET http://catalog/items HTTP/1.1\r\nhost: catalog\r\nconnection: close\r\n\r\n";
    tries.set(`port ${at}`, () => talking(connect({ host, port: Number(port) }), "connect", question));
  }
  return tries;
}

function addWorkload(tries: Map<string, () => Promise<string>>, knowledge: Knowledge, workload: string): void {
  const { hostname: host, port } = new URL(`http://${workload}`);
  const question = `GET / HTTP/1.1\r\nhost: ${workload}\r\nconnection: close\r\n\r\n`;
  const to = { host, port: Number(port) };
  const tls = { ...to, rejectUnauthorized: false, ALPNProtocols: ["istio-http/1.1", "istio"] };
  const { privateKeyPem: key, certChainPem: cert } = knowledge.selfSigned;
  const overTls = (more: object): Promise<string> =>
    talking(connectTls({ ...tls, ...more }), "secureConnect", question);
  tries.set(`${workload} in the clear`, () => talking(connect(to), "connect", question));
  tries.set(`${workload} without a certificate`, () => overTls({}));
  tries.set(`${workload} with a certificate of its own`, () => overTls({ key, cert }));
}

/** At once: where packets get lost each of them takes all its patience. */
async function tryAll(knowledge: Knowledge): Promise<Outcomes> {
  const tries = [...triesOf(knowledge)].map(async ([name, attempt]) => [name, await attempt()] as const);
  return Object.fromEntries(await Promise.all(tries));
}

const knowledge = JSON.parse(readFileSync(0, "utf8")) as Knowledge;
// gRPC is loaded by the first call; another user may not be able to read this clone.
await createCertificate({
  target: "http://127.0.0.1:1",
  tls: () => ({ rootsPem: "", serverName }),
  csrPem: "",
  timeoutMs: 1000,
});
process.setgroups!([]);
process.setgid!(knowledge.uid);
process.setuid!(knowledge.uid);
if (process.getuid!() !== knowledge.uid) throw new Error("still the user of before");
process.stdout.write(`${JSON.stringify(await tryAll(knowledge))}\n`);
