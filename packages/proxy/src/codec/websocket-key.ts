// The two fields by which a WebSocket's handshake over HTTP/1.1 proves that both ends mean it (RFC 6455 §4.1, §4.2.2).
// Over HTTP/2 there are none (RFC 8441 §5): where one version becomes the other, we stand for the end that has none.
import { createHash, randomBytes } from "node:crypto";

const keyBytes = 16;
const acceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export const keyField = "sec-websocket-key";
export const acceptField = "sec-websocket-accept";

export function newWebSocketKey(): string {
  return randomBytes(keyBytes).toString("base64");
}

export function acceptOfKey(key: string): string {
  return createHash("sha1")
    .update(key + acceptSuffix)
    .digest("base64");
}
