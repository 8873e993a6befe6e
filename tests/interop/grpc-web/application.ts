// A workload whose page speaks gRPC-Web to it: the page, its library and a WebSocket that echoes on the first port, and
// gRPC, which is all that the others take.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { WebSocketServer } from "ws";
import { grpcApplication } from "../../parity/grpc-application.ts";

const [library = "", pagePort, ...grpcPorts] = process.argv.slice(2);
const host = process.env["HOST"] ?? "127.0.0.1";

const server = createServer(async ({ url }, response) => {
  const isLibrary = url === "/page/grpc-web.js";
  const file = isLibrary ? library : path.join(import.meta.dirname, "page.html");
  response.setHeader("content-type", isLibrary ? "text/javascript" : "text/html");
  response.end(await readFile(file));
});
new WebSocketServer({ server }).on("connection", (socket) =>
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })),
);
server.listen(Number(pagePort), host);
for (const port of grpcPorts) await grpcApplication(`${host}:${port}`);
