// The times that a connection of the API has, on servers that listen and on those that connections are handed to.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { describe, test } from "node:test";
import { apiLimits, apiServer, handedApiServer } from "./api-server.ts";

// Long enough for what is sent to be read before: who is cut off with bytes unread is told nothing.
const short = { ...apiLimits, headersTimeoutMs: 1500, requestTimeoutMs: 2000, checkIntervalMs: 10 };

function handing(): Server {
  const requests = handedApiServer((request, response) => request.on("end", () => response.end("ok")).resume(), short);
  return createServer((socket) => requests.emit("connection", socket)).on("close", () => requests.close());
}

const servers = [
  { name: "one that listens", make: (): Server => apiServer((_request, response) => response.end("ok"), short) },
  { name: "one that connections are handed to", make: handing },
];

const halves = [
  { name: "half a head", text: "GET / HTTP/1.1\r\nhost: a\r\n" },
  { name: "half a body", text: "PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf" },
  {
    name: "a whole request and half of the next",
    text: "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n",
  },
];

describe("a connection that says half of what it should", { concurrency: true }, () => {
  for (const server of servers) {
    for (const { name, text } of halves) {
      test(`${server.name} ends a connection that sends ${name}, and then nothing`, async (t) => {
        const listening = server.make().listen({ host: "127.0.0.1", port: 0 });
        t.after(() => listening.close());
        await once(listening, "listening");
        const socket = connect({ host: "127.0.0.1", port: (listening.address() as AddressInfo).port });
        t.after(() => socket.destroy());
        let answer = "";
        socket.setEncoding("latin1").on("data", (chunk: string) => (answer += chunk));
        socket.write(text);
        await once(socket, "close");
        assert.match(answer, /HTTP\/1\.1 408 Request Timeout/);
      });
    }
  }
});
