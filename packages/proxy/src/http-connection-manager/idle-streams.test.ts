// The idle time-outs of several streams on one connection, which HTTP/1.1 does not have at once: one timer serves them
// all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ConnectionInfo } from "../listener/connection-info.ts";
import { FakeSocket } from "../testing/fake-socket.ts";
import { handBuiltConnectionManager, prefixRoutes } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { DataPath } from "../worker/data-path.ts";
import type { DownstreamStream } from "./downstream-stream.ts";
import { HttpConnection } from "./http-connection.ts";

test("each stream ends at its own time, and those that have ended are forgotten", () => {
  const clock = new ManualClock();
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock });
  const { socket } = new FakeSocket();
  const connection = new HttpConnection(handBuiltConnectionManager(prefixRoutes({}), { log: () => undefined }), {
    info: new ConnectionInfo(socket),
    networkFilters: [],
    openSocket: () => socket,
    bufferLimitBytes: 1024,
    dataPath,
    onClosed: () => undefined,
  });
  const ended: string[] = [];
  const watch = (name: string, atMs: number): DownstreamStream => {
    const stream = {
      idleLeftMs: (nowMs: number) => atMs - nowMs,
      onIdleTimeout() {
        ended.push(name);
        connection.unwatchIdle(stream);
      },
    } as unknown as DownstreamStream;
    connection.watchIdle(stream, atMs - dataPath.turn.nowMs);
    return stream;
  };
  const startMs = dataPath.turn.nowMs;
  watch("late", startMs + 9000);
  watch("early", startMs + 5000);
  const answered = watch("answered", startMs + 5000);
  connection.unwatchIdle(answered);
  clock.advance(5100);
  assert.deepEqual(ended, ["early"]);
  clock.advance(4100);
  assert.deepEqual(ended, ["early", "late"]);
});
