// An external authorizer as an application of the parity mesh, over HTTP and over gRPC: it judges by the word at the
// end of the request's path. It stands by itself, as the back ends do; its gRPC is as much as that takes.
import http from "node:http";
import http2 from "node:http2";

const host = process.env["HOST"] ?? "127.0.0.1";

http
  .createServer((request, response) => {
    if (request.url === "/ready") {
      response.end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const word = (request.url ?? "").split("?")[0]!.split("/").at(-1);
      const { "x-asked": asked = "", "x-hidden": hidden = "", "x-fixed": fixed = "" } = request.headers;
      const seen = [request.method, request.url, asked, hidden, fixed, Buffer.concat(chunks).toString()].join(" ");
      response.setHeader("x-user", "alice");
      response.setHeader("x-private", "secret");
      response.setHeader("x-seen", seen);
      response.setHeader("content-type", "text/plain");
      if (word === "deny") response.writeHead(401).end("who are you?");
      else if (word === "broken") response.writeHead(500).end();
      else response.end();
    });
  })
  .listen(Number(process.env["PORT_HTTP"]), host);

/** CheckResponse: empty allows; a status of 7 with denied_response { status: Unauthorized, body: "no" }. */
const allowed = Buffer.alloc(0);
const denied = Buffer.from("0a02080712090a030891031a026e6f", "hex");

http2
  .createServer()
  .on("stream", (stream: http2.ServerHttp2Stream) => {
    const chunks: Buffer[] = [];
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      const asked = Buffer.concat(chunks).toString("latin1");
      const status = asked.includes("/broken") ? "13" : "0";
      const message = asked.includes("/deny") ? denied : allowed;
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      stream.end(Buffer.concat([prefix, message]));
    });
  })
  .listen(Number(process.env["PORT_GRPC"]), host);
