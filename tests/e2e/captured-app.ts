// An application that knows nothing of a mesh: HTTP at the ports that it is given, a protocol whose server speaks
// first, and TLS of its own. Says what it was asked, by whom.
import http from "node:http";
import net from "node:net";
import tls from "node:tls";

const [, , keyPem = "", certificatePem = "", httpPorts = "8080,8081"] = process.argv;

const tell: http.RequestListener = ({ socket, headers, url }, response) => {
  const caller = /URI=([^;,]*)/.exec(String(headers["x-forwarded-client-cert"]))?.[1] ?? "nobody";
  const to = `${socket.localAddress?.replace("::ffff:", "")}:${socket.localPort}`;
  response.end(`${url} at ${to} by ${caller}\n`);
};
const servers: readonly (readonly [net.Server, number])[] = [
  ...httpPorts.split(",").map((port) => [http.createServer(tell), Number(port)] as const),
  [net.createServer((socket) => socket.on("error", () => undefined).end("220 mail.test\r\n")), 2525],
  [
    tls.createServer(
      { key: keyPem, cert: certificatePem },
      (socket) =>
        void socket
          .on("error", () => undefined)
          .once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nsecure\n")),
    ),
    8443,
  ],
];
let waiting = servers.length;
for (const [server, port] of servers) {
  server.listen(port, "::", () => {
    waiting -= 1;
    if (waiting === 0) process.stdout.write("listens\n");
  });
}
