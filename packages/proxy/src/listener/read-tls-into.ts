// Lets a TLS socket read into the worker's one buffer, as `adoptSocket` does for plain ones. Node offers `onread` only
// to sockets that it connects itself; a TLS socket over an accepted one takes it through the same private fields.
import net from "node:net";
import type { TLSSocket } from "node:tls";
import type { DataPath } from "../worker/data-path.ts";

function privateField(name: string): symbol {
  const found = Object.getOwnPropertySymbols(new net.Socket()).find(({ description }) => description === name);
  if (found === undefined)
    throw new Error(`net.Socket has no field ${name}: the runtime is not the one this is made for`);
  return found;
}

const bufferField = privateField("kBuffer");
const callbackField = privateField("kBufferCb");

interface TlsInternals {
  [field: symbol]: unknown;
  _handle: { useUserBuffer(buffer: Buffer): void };
}

/** Called in the handshake's last step, before the first byte of payload has been read. */
export function readTlsInto(socket: TLSSocket, dataPath: DataPath, onRead: (chunk: Buffer) => void): void {
  const internals = socket as unknown as TlsInternals;
  internals[bufferField] = dataPath.readBuffer;
  internals[callbackField] = (bytes: number): boolean => {
    onRead(dataPath.readView(bytes));
    return true;
  };
  internals._handle.useUserBuffer(dataPath.readBuffer);
}
