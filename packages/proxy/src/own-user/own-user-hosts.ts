// Keeps requests from programs of other users that have taken the address of one of this user's: an app's while it
// starts again, or a pod's. Where all of the mesh is on loopback an address proves nothing. Two questions to the kernel
// for each new connection (8 µs each), none for a request.
import { BlockList, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { listeningSocket, OwnPrograms, type SocketEnd, takerOf } from "@tulle/capture";
import { type Logger, SeldomWarning } from "@tulle/telemetry";
import { awaitVerification, verifiedEvent } from "../tls/ready-event.ts";

/** The code of the error that ends such a connection. */
export const otherUsersHost = "EOTHERUSER";

export class OwnUserHosts {
  readonly #range = new BlockList();
  readonly #warning: SeldomWarning;
  readonly #own: OwnPrograms;

  /** `range` is written as `127.16.4.0/22`; `starter` is the process that has started all of the mesh here. */
  constructor(range: string, log: Pick<Logger, "warning">, starter = process.ppid) {
    this.#own = new OwnPrograms(starter);
    const [network = "", bits = "32"] = range.split("/");
    this.#range.addSubnet(network, Number(bits));
    this.#warning = new SeldomWarning(log);
  }

  /**
   * Call it before the socket, which is to connect to `host`, gets listeners: a wrong host ends it with
   * `otherUsersHost`.
   */
  watch(socket: Socket, host: SocketEnd): void {
    if (!this.#range.check(host.ip)) return;
    const before = listeningSocket(host);
    const isPlain = !(socket instanceof TLSSocket);
    if (isPlain) awaitVerification(socket);
    socket.prependOnceListener("connect", () => {
      const { localAddress: ip = "", localPort: port = 0 } = socket;
      const taker = takerOf(before, host, { ip, port });
      if (this.#own.areAt(taker)) {
        if (isPlain) socket.emit(verifiedEvent);
        return;
      }
      const text = `${host.ip}:${host.port}`;
      // A program that has ended its listening socket since, or that is in another network namespace, has no name here.
      const [who, fields] =
        typeof taker === "object"
          ? ["a program of another user", { host: text, uid: taker.uid }]
          : ["somebody whom the kernel does not name", { host: text }];
      this.#warning.tell(`${who} answers at a host's address; nothing was sent`, fields);
      const error = new Error(`${who} answers at ${text}`);
      socket.destroy(Object.assign(error, { code: otherUsersHost }));
    });
  }
}
