// Two connections that are one: what comes by either leaves by the other, its end and its failure too.
import type { Socket } from "node:net";

/** Both allow to be half open: an end leads on, and the other way goes on. */
export function joinConnections(one: Socket, other: Socket): void {
  leadOn(one, other);
  leadOn(other, one);
}

function leadOn(from: Socket, to: Socket): void {
  from.pipe(to);
  from.on("error", () => to.resetAndDestroy());
  from.on("close", () => {
    // What has been read is still written; a connection that was cut leaves no other one half open.
    if (!from.readableEnded) to.destroy();
  });
}
