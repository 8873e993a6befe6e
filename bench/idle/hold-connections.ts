// Opens connections to a proxy, makes one request on each, and keeps all of them until it is ended. Prints `held`
// when the last one has been answered. Arguments: HTTP/1.1 or HTTP/2, port, count.
import { connect } from "node:net";

const [protocol = "", ...numbers] = process.argv.slice(2);
const [port = 0, count = 0] = numbers.map(Number);
const atATime = 64;
let opened = 0;

// Over HTTP/2: no settings of ours, what acknowledges the proxy's, and GET on stream 1, whose fields but path and
// authority are of HPACK's static table (RFC 9113 §3.4, §6.5; RFC 7541 §6).
const emptySettings = "\0\0\0\x04\0\0\0\0\0";
const settingsAck = "\0\0\0\x04\x01\0\0\0\0";
const block = "\x82\x86\x44\x0c/api/catalog\x41\x05bench";
const headers = `\0\0${String.fromCharCode(block.length)}\x01\x05\0\0\0\x01${block}`;
const request =
  protocol === "HTTP/2"
    ? `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${emptySettings}${settingsAck}${headers}`
    : "GET /api/catalog HTTP/1.1\r\nhost: bench\r\n\r\n";

async function openUntilAll(): Promise<void> {
  while (opened < count) {
    opened += 1;
    await openOne();
  }
}

function openOne(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the proxy closed a connection")));
  let received = Buffer.alloc(0);
  let isHeld = false;
  socket.on("data", (chunk: Buffer) => {
    if (isHeld) return;
    received = Buffer.concat([received, chunk]);
    if (!(protocol === "HTTP/2" ? hasEnded(received) : hasAnswer(received))) return;
    isHeld = true;
    received = Buffer.alloc(0);
    resolve();
  });
  socket.write(request, "latin1");
  return promise;
}

/** Head and body of an answer: all of it has come once the body's length has. */
function hasAnswer(received: Buffer): boolean {
  if (!received.toString("latin1").startsWith("HTTP/1.1 200")) fail(new Error(received.toString("latin1")));
  return received.length > 1024;
}

/** The last DATA frame, of an answer that has a body, is here. */
function hasEnded(received: Buffer): boolean {
  for (let at = 0; received.length - at >= 9;) {
    const [next, type, flags] = [at + 9 + received.readUIntBE(at, 3), received[at + 3], received[at + 4]!];
    if (received.length < next) return false;
    if (type === 1 && (flags & 1) !== 0) fail(new Error("an answer without a body"));
    if (type === 3 || type === 7) fail(new Error("RST_STREAM or GOAWAY"));
    if (type === 0 && (flags & 1) !== 0) return true;
    at = next;
  }
  return false;
}

function fail(error: Error): never {
  throw error;
}

await Promise.all(Array.from({ length: atATime }, openUntilAll));
process.stdout.write("held\n");
