// Numbers of connections, the clients' and those to hosts, by which logs tell them apart (Envoy: `connectionID`).
let last = 0;

export function nextConnectionId(): number {
  last += 1;
  return last;
}
