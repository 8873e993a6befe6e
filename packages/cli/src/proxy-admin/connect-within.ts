// Connections from within a pod's network, which this process is outside of: a program goes in, connects, and carries
// bytes. Who is not root could not go in and come back.
import { spawn } from "node:child_process";
import type { Socket } from "node:net";

const relay = `
const net = require("node:net");
const outside = new net.Socket({ fd: 3, readable: true, writable: true });
const inside = net.connect({ host: "127.0.0.1", port: Number(process.argv[1]) });
for (const [from, to] of [[outside, inside], [inside, outside]]) from.pipe(to).on("error", () => process.exit(1));
`;

/** `enter`: words before a program, which lead it into the network. */
export function connectWithin([program = "", ...words]: readonly string[], port: number): Socket {
  const child = spawn(program, [...words, process.execPath, "-e", relay, String(port)], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: {},
  });
  const socket = child.stdio[3] as Socket;
  child.once("error", (error) => socket.destroy(error));
  return socket;
}
