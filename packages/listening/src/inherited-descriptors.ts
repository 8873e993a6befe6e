// Listening sockets that the parent process has bound and left open for us, by port. Their address is the parent's
// affair: a published port of the supervisor leads to the listener whose port it names, beside the listener's own.

/** Port of the listener → descriptor numbers: several ports of the machine may lead to one. */
export type InheritedDescriptors = ReadonlyMap<number, readonly number[]>;

/**
 * Reads `TULLE_LISTEN_FDS`, such as `8080=3,8443=4`: descriptor 3 accepts for what listens at port 8080 in this
 * process's configuration. Throws on any other form: the variable comes from our own supervisor.
 */
export function parseListenDescriptors(text: string | undefined): InheritedDescriptors {
  const descriptors = new Map<number, number[]>();
  if (text === undefined || text === "") return descriptors;
  for (const pair of text.split(",")) {
    const match = /^(\d{1,5})=(\d{1,6})$/.exec(pair.trim());
    if (match === null) throw new Error(`TULLE_LISTEN_FDS: expected <port>=<descriptor>, got "${pair}"`);
    const [port, descriptor] = [Number(match[1]), Number(match[2])];
    descriptors.set(port, [...(descriptors.get(port) ?? []), descriptor]);
  }
  return descriptors;
}
