// The machine's own address, as the control plane sees its calls: the kernel says which it would send from, and nothing
// is sent.
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";

/** Undefined while there is no way there. */
export async function ownAddressTowards(controlPlane: string): Promise<string | undefined> {
  const { hostname, port } = new URL(`https://${controlPlane}`);
  const found = await lookup(hostname.replace(/^\[(.*)\]$/, "$1")).catch(() => undefined);
  if (found === undefined) return undefined;
  const socket = createSocket(found.family === 6 ? "udp6" : "udp4");
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  socket.once("error", () => resolve(undefined));
  socket.connect(Number(port || 443), found.address, () => resolve(socket.address().address));
  const address = await promise;
  socket.close();
  return address;
}
