// What the kernel tells of a connection that nobody redirected; of redirected ones tells
// packages/proxy/src/listener/original-destination-parity.test.ts.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { originalDestination, roundTripMicros } from "./kernel.ts";

test("a connection that nobody redirected has its own address, or none where the kernel tracks none", async (t) => {
  const server = net.createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const client = net.connect(port, "127.0.0.1");
  t.after(() => client.destroy());
  const [accepted] = (await once(server, "connection")) as [net.Socket];
  t.after(() => accepted.destroy());
  const { fd } = (accepted as unknown as { readonly _handle: { readonly fd: number } })._handle;
  const destination = originalDestination(fd, "127.0.0.1");
  if (destination !== undefined) assert.deepEqual(destination, { ip: "127.0.0.1", port });
  assert.equal(originalDestination(fd, "::1"), undefined, "of a connection over IPv4");
  const micros = roundTripMicros(fd);
  assert.ok(micros !== undefined && micros > 0 && micros < 60_000_000, String(micros));
});

test("what is no socket has neither a destination nor a round trip", () => {
  assert.equal(roundTripMicros(-1), undefined);
  assert.equal(originalDestination(-1, "127.0.0.1"), undefined);
  assert.equal(originalDestination(-1, "::1"), undefined);
});
