// How long a connection that the proxy ends waits for a client that does not end its side, beside a stock Envoy.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, loopback } from "../testing/envoy-json.ts";
import { countersOf, type Side, type Sides, startSides } from "../testing/parity-pair.ts";

/** By the listener's name; "default" is a second. */
const timeouts = { none: "0s", short: "0.1s", default: undefined, long: "3600s" } as const;
type Name = keyof typeof timeouts;
const names = Object.keys(timeouts) as Name[];

function bootstrap(): string {
  const listeners = names.map((name) => {
    const timeout = timeouts[name];
    const manager = connectionManager([{ match: { prefix: "/" }, direct_response: { status: 200 } }], {
      stat_prefix: name,
      ...(timeout !== undefined && { delayed_close_timeout: timeout }),
    });
    return { name, address: loopback(0), filter_chains: [{ filters: [{ name: "last", typed_config: manager }] }] };
  });
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners } });
}

const open: net.Socket[] = [];
let sides: Sides;
before(async () => {
  sides = await startSides(http.createServer(), names.length, bootstrap);
});
after(async () => {
  for (const socket of open) socket.destroy();
  await sides.stop();
});

/** Asks for the end and never ends its own side. */
async function ask({ ports }: Side, name: Name, text: string | Buffer): Promise<void> {
  const socket = net.connect({ port: ports.get(name)!, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  open.push(socket);
  socket.write(text);
  socket.resume();
  await once(socket, "data");
}

const last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
/** A frame on a stream that a client cannot have. */
const broken = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
  Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
]);

for (const { what, text } of [
  { what: "HTTP/1.1", text: last },
  { what: "HTTP/2", text: broken },
]) {
  test(`connections of ${what} that we end go when their time is over, and count`, async () => {
    const seen = async (side: Side) => {
      const counters = await countersOf(
        side,
        /^http\.(none|short|default|long)\.downstream_cx_(destroy|delayed_close_timeout)$/,
      );
      return names.map((name) => [
        counters[`http.${name}.downstream_cx_destroy`],
        counters[`http.${name}.downstream_cx_delayed_close_timeout`],
      ]);
    };
    const moved = async (side: Side) => {
      const start = await seen(side);
      for (const name of names) await ask(side, name, text);
      let now = start;
      const difference = () => now.map((pair, index) => pair.map((value, at) => value! - start[index]![at]!));
      await waitFor(
        async () => {
          now = await seen(side);
          return difference()
            .slice(0, 3)
            .every(([gone]) => gone === 1);
        },
        { what: "three ends" },
      );
      return difference();
    };
    const [ours, envoys] = [await moved(sides.ours), await moved(sides.envoy)];
    assert.deepEqual(ours, envoys);
    // None, short, default, long: the last one waits still.
    assert.deepEqual(ours, [
      [1, 0],
      [1, 1],
      [1, 1],
      [0, 0],
    ]);
  });
}
