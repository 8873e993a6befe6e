// Which codec a downstream connection gets.
import type { Socket } from "node:net";
import type { DataPath } from "../worker/data-path.ts";
import { AutoServerCodec } from "./auto-server-codec.ts";
import type { Http1ServerSettings } from "./http1/http1-server-settings.ts";
import { Http1ServerConnection } from "./http1/server-connection.ts";
import { Http2ServerConnection, type Http2ServerSettings } from "./http2/http2-server-connection.ts";
import type { ServerCodec, ServerCodecOwner } from "./server-codec.ts";

/** Limits and time-outs of a connection, whatever it speaks. */
export type ServerCodecSettings = Http1ServerSettings & Http2ServerSettings;

/** For a connection that has been opened; whoever reads the socket feeds `onData`. `auto`: the first bytes tell. */
export function openServerCodec(
  protocol: "HTTP/1.1" | "HTTP/2" | "auto",
  socket: Socket,
  owner: ServerCodecOwner,
  settings: ServerCodecSettings,
  dataPath: DataPath,
): ServerCodec {
  if (protocol === "auto") {
    return new AutoServerCodec(socket, owner, settings.idleTimeoutMs, dataPath, (chosen) =>
      openServerCodec(chosen === "HTTP/2" ? chosen : "HTTP/1.1", socket, owner, settings, dataPath),
    );
  }
  if (protocol === "HTTP/2") return new Http2ServerConnection(socket, owner, settings, dataPath);
  return new Http1ServerConnection(socket, owner, settings, dataPath);
}
