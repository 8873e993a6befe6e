// What TLS clients say first, taken from themselves.
import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { inTime } from "../../../../tests/tools/processes.ts";

/** `connect` starts a client that comes to that port of 127.0.0.1. It is hung up on. */
export async function firstBytesOf(connect: (port: number) => void): Promise<Buffer> {
  const server = net.createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  connect((server.address() as net.AddressInfo).port);
  const [socket] = (await inTime(once(server, "connection"), "a client")) as [net.Socket];
  socket.on("error", () => undefined);
  const [bytes] = (await inTime(once(socket, "data"), "a hello")) as [Buffer];
  socket.destroy();
  server.close();
  return bytes;
}

export function helloOf(options: tls.ConnectionOptions): Promise<Buffer> {
  return firstBytesOf((port) => {
    tls.connect({ port, host: "127.0.0.1", ...options }).on("error", () => undefined);
  });
}
