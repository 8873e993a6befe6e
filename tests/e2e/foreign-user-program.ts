// What a program under another user's id tries against a running mesh; started by foreign-user.test.ts as root, it gives up that id
// before it tries anything, and prints what came of each try as JSON.
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { createCertificate, encodeRequest, openByteStream, resourceType, type ClientTls } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";

/** All that is no secret, and what the program may have made itself. */
export interface Knowledge {
  readonly uid: number;
  /** `host:port` with TLS. */
  readonly xdsAddress: string;
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
  /** A pod's way out and its admin pages, `host:port`. */
  readonly ownPorts: readonly string[];
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

async function askingForCertificate(knowledge: Knowledge, token: string | undefined): Promise<string> {
  const answer = await createCertificate({
    target: `https://${knowledge.xdsAddress}`,
    tls: () => ({ rootsPem: knowledge.rootsPem, serverName }),
    csrPem: knowledge.csrPem,
    ...(token === undefined ? {} : { bearerToken: token }),
    timeoutMs: patienceMs,
  });
  return answer.ok ? "issued" : `${answer.status}: ${answer.details}`;
}

async function openingXds(knowledge: Knowledge, identity: ClientTls["identity"] | "plaintext"): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const isPlain = identity === "plaintext";
  const tls: ClientTls = {
    rootsPem: knowledge.rootsPem,
    serverName,
    ...(isPlain || identity === undefined ? {} : { identity }),
  };
  const stream = openByteStream(
    `${isPlain ? "http" : "https"}://${knowledge.xdsAddress}`,
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

async function tryAll(knowledge: Knowledge): Promise<Outcomes> {
  const outcomes: Record<string, string> = {};
  for (const file of knowledge.files) outcomes[`file ${file}`] = await readingFile(file);
  for (const path of knowledge.sockets) outcomes[`socket ${path}`] = await talking(connect({ path }), "connect");
  outcomes["certificate without a token"] = await askingForCertificate(knowledge, undefined);
  for (const [name, token] of Object.entries(knowledge.tokens)) {
    outcomes[`certificate for ${name}`] = await askingForCertificate(knowledge, token);
  }
  outcomes["xDS without a certificate"] = await openingXds(knowledge, undefined);
  outcomes["xDS with a certificate of its own"] = await openingXds(knowledge, knowledge.selfSigned);
  outcomes["xDS in the clear"] = await openingXds(knowledge, "plaintext");
  for (const workload of knowledge.workloads) {
    const { hostname: host, port } = new URL(`http://${workload}`);
    const question = `GET / HTTP/1.1\r\nhost: ${workload}\r\nconnection: close\r\n\r\n`;
    const to = { host, port: Number(port) };
    outcomes[`${workload} in the clear`] = await talking(connect(to), "connect", question);
    const tls = { ...to, rejectUnauthorized: false, ALPNProtocols: ["istio-http/1.1", "istio"] };
    outcomes[`${workload} without a certificate`] = await talking(connectTls(tls), "secureConnect", question);
    const { privateKeyPem: key, certChainPem: cert } = knowledge.selfSigned;
    const asSomebody = connectTls({ ...tls, key, cert });
    outcomes[`${workload} with a certificate of its own`] = await talking(asSomebody, "secureConnect", question);
  }
  for (const ownPort of knowledge.ownPorts) {
    const { hostname: host, port } = new URL(`http://${ownPort}`);
    const question = "GET http://catalog/items HTTP/1.1\r\nhost: catalog\r\nconnection: close\r\n\r\n";
    outcomes[`port ${ownPort}`] = await talking(connect({ host, port: Number(port) }), "connect", question);
  }
  return outcomes;
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
