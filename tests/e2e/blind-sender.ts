// A program under another user's id that connects, writes a request and closes, without waiting for a word: started as
// root, it gives up that id first, and ends when all requests have been sent.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";

export interface BlindRequests {
  readonly uid: number;
  readonly requests: readonly {
    /** `host:port` */
    readonly to: string;
    readonly text: string;
    readonly times: number;
  }[];
}

const { uid, requests } = JSON.parse(readFileSync(0, "utf8")) as BlindRequests;
process.setgroups!([]);
process.setgid!(uid);
process.setuid!(uid);
if (process.getuid!() !== uid) throw new Error("still the user of before");
let sent = 0;
for (const { to, text, times } of requests) {
  const { hostname: host, port } = new URL(`http://${to}`);
  for (let time = 0; time < times; time += 1) {
    const socket = connect({ host, port: Number(port) });
    await once(socket, "connect");
    await new Promise<void>((resolve) => socket.end(text, resolve));
    socket.destroy();
    await once(socket, "close");
    sent += 1;
  }
}
process.stdout.write(`sent ${sent}\n`);
