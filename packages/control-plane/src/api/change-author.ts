// Who asks for a change, as far as it is certain: the kernel's word on a Unix socket, the token elsewhere.
import { unixSocketPeer } from "@tulle/capture";
import { userName } from "@tulle/identity/own";
import { descriptorOf } from "@tulle/listening";
import type { ApiRequest } from "./routes.ts";

/** `ann (uid 1000)`, or `the token's holder at 10.0.0.5`. */
export function changeAuthor({ transport, request: { socket } }: Pick<ApiRequest, "transport" | "request">): string {
  if (transport !== "socket") return `the token's holder at ${socket.remoteAddress ?? "an unknown address"}`;
  const peer = unixSocketPeer(descriptorOf(socket));
  return peer === undefined ? "the state directory's owner" : userName(peer.uid);
}
