// Runs on the load's core: opens TLS connections to a proxy one after another, several at a time, and closes each when
// its handshake is over. Prints how many there were. Its input is a JSON document of `HandshakeLoad`.
import { text } from "node:stream/consumers";
import { connect, createSecureContext, type ConnectionOptions } from "node:tls";

export interface HandshakeLoad {
  readonly host: string;
  readonly port: number;
  readonly keyPem: string;
  readonly chainPem: string;
  /** Every connection takes the session of the first one up again. */
  readonly resumes: boolean;
  readonly atATime: number;
  readonly seconds: number;
}

export interface HandshakeCount {
  readonly handshakes: number;
}

const load = JSON.parse(await text(process.stdin)) as HandshakeLoad;
const options: ConnectionOptions = {
  host: load.host,
  port: load.port,
  secureContext: createSecureContext({ key: load.keyPem, cert: load.chainPem, minVersion: "TLSv1.3" }),
  ALPNProtocols: ["istio-http/1.1", "istio", "http/1.1"],
  // Who the server is, is its callers' matter and costs the server nothing.
  rejectUnauthorized: false,
  checkServerIdentity: () => undefined,
};

// A handshake that hangs must not hang the bench.
setTimeout(
  () => {
    throw new Error("the handshakes have not come to an end");
  },
  load.seconds * 1000 + 20_000,
).unref();

const session = load.resumes ? await firstSession() : undefined;
let handshakes = 0;
const endMs = performance.now() + load.seconds * 1000;
await Promise.all(Array.from({ length: load.atATime }, () => handshakeUntil(endMs)));
process.stdout.write(JSON.stringify({ handshakes } satisfies HandshakeCount));

async function handshakeUntil(untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    await handshake();
    handshakes += 1;
  }
}

function handshake(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ ...options, ...(session !== undefined && { session }) });
  let isOver = false;
  socket.once("secureConnect", () => {
    isOver = socket.isSessionReused() === load.resumes;
    if (!isOver) reject(new Error(load.resumes ? "the session was not taken up again" : "a session was taken up"));
    socket.end();
  });
  socket.on("error", reject);
  socket.once("close", () => {
    if (isOver) resolve();
    else reject(new Error("closed before the handshake was over"));
  });
  socket.resume();
  return promise;
}

/** TLS 1.3 sends tickets after the handshake; BoringSSL, with the first bytes that the server has to say. */
function firstSession(): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const socket = connect(options);
  socket.write("GET /api/catalog HTTP/1.1\r\nhost: server\r\n\r\n");
  socket.once("session", (ticket) => {
    resolve(ticket);
    socket.end();
  });
  socket.once("error", reject);
  socket.once("close", () => reject(new Error("closed without a session")));
  socket.resume();
  return promise;
}
