// Opens connections to a proxy, makes one request on each, and keeps all of them until it is ended. Prints `held`
// when the last one has been answered. Arguments: port, count.
import { connect } from "node:net";

const [port = 0, count = 0] = process.argv.slice(2).map(Number);
const atATime = 64;
let opened = 0;

async function openUntilAll(): Promise<void> {
  while (opened < count) {
    opened += 1;
    await openOne();
  }
}

function openOne(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the proxy closed a connection")));
  let received = 0;
  socket.on("data", (chunk) => {
    if (received === 0 && !chunk.toString("latin1").startsWith("HTTP/1.1 200"))
      reject(new Error(chunk.toString("latin1")));
    received += chunk.length;
    // Head and body of an answer: all of it has come once the body's length has.
    if (received > 1024) resolve();
  });
  socket.write("GET /api/catalog HTTP/1.1\r\nhost: bench\r\n\r\n");
  return promise;
}

function fail(error: Error): never {
  throw error;
}

await Promise.all(Array.from({ length: atATime }, openUntilAll));
process.stdout.write("held\n");
