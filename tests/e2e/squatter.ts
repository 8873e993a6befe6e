// A program under another user's id that takes an address as soon as it is free, and says what it is sent there:
// started as root, it gives up that id first. It answers what it is told to, COUNT being a number that grows.
import { createServer } from "node:http";

const [, , uid, ip, port, body = "[]"] = process.argv;
let count = 0;
process.setgroups!([]);
process.setgid!(Number(uid));
process.setuid!(Number(uid));
if (process.getuid!() !== Number(uid)) throw new Error("still the user of before");
const server = createServer((request, response) => {
  process.stdout.write(`asked ${request.method} ${request.url}\n`);
  response.end(body.replaceAll("COUNT", String((count += 1000))));
});
server.on("connection", (socket) => socket.once("data", () => process.stdout.write("got bytes\n")));
const listen = (): void => void server.listen({ host: ip!, port: Number(port) });
server.on("error", () => setImmediate(listen));
server.on("listening", () => process.stdout.write("listens\n"));
process.stdout.write("tries\n");
listen();
