// Whose turn it is when a window opens, and that a client cannot make us ask streams that may not send.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionWindows, type SendingStream } from "./connection-windows.ts";
import { FloodGuard } from "./flood-guard.ts";
import type { FrameOutput } from "./frame-output.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { defaultHttp2Options } from "./http2-options.ts";

class Body implements SendingStream {
  readonly id: number;
  sendWindowBytes: number;
  framedBytesSent = 0;
  askedCount = 0;
  left: Buffer;
  readonly #stage: Stage;

  constructor(stage: Stage, id: number, bytes: number, windowBytes: number) {
    this.#stage = stage;
    this.id = id;
    this.left = Buffer.alloc(bytes);
    this.sendWindowBytes = windowBytes;
  }

  flushWaiting(): boolean {
    this.askedCount += 1;
    this.left = this.left.subarray(this.#stage.windows.write(this, this.left, 0, false));
    return this.left.length === 0;
  }
}

class Stage {
  readonly sent: string[] = [];
  isOutputOver = false;
  readonly windows: ConnectionWindows;

  constructor() {
    const output = { isOverHighWatermark: () => this.isOutputOver } as unknown as FrameOutput;
    const frames = {
      data: (id: number, _chunk: Buffer, start: number, end: number) => this.sent.push(`${id}:${end - start}`),
    } as unknown as FrameWriter;
    this.windows = new ConnectionWindows(output, frames, new FloodGuard(defaultHttp2Options), 65_535, () => false);
    // Nothing of the connection's window is left.
    const first = new Body(this, 1, 65_535, 65_535);
    this.windows.flush(first);
    this.sent.length = 0;
  }

  /** Streams from 3 on, which wait. */
  bodies(count: number, bytes: number, windowBytes: number): readonly Body[] {
    return Array.from({ length: count }, (_, index) => {
      const body = new Body(this, 2 * index + 3, bytes, windowBytes);
      this.windows.waitForTurn(body);
      return body;
    });
  }

  widen(bytes: number): void {
    this.windows.widen(bytes);
    this.windows.takeTurns();
  }
}

test("each stream gets a turn, then those that have waited again", () => {
  const stage = new Stage();
  stage.bodies(3, 10, 100);
  stage.widen(15);
  stage.widen(10);
  stage.widen(10);
  assert.deepEqual(stage.sent, ["3:10", "5:5", "7:10", "5:5"]);
});

test("streams are not asked when the connection's window has nothing for them, nor when their own is closed", () => {
  const stage = new Stage();
  const open = stage.bodies(1000, 10, 100);
  const closed = stage.bodies(1000, 10, 0);
  for (let count = 0; count < 100; count += 1) stage.widen(1);
  const asked = (bodies: readonly Body[]): number => bodies.reduce((sum, { askedCount }) => sum + askedCount, 0);
  assert.equal(asked(open), 100);
  assert.equal(asked(closed), 0);
  closed[5]!.sendWindowBytes = 4;
  stage.windows.flush(closed[5]!);
  assert.equal(stage.sent.length, 100);
});

test("a socket that takes no more gets nothing, and then all in their turn", () => {
  const stage = new Stage();
  stage.bodies(2, 10, 100);
  stage.isOutputOver = true;
  stage.widen(100);
  assert.deepEqual(stage.sent, []);
  stage.isOutputOver = false;
  stage.windows.onDrained();
  assert.deepEqual(stage.sent, ["3:10", "5:10"]);
});

test("who stopped for the socket hears of it though the connection's window is closed", () => {
  const stage = new Stage();
  const body = new Body(stage, 3, 0, 100);
  stage.windows.waitForSocket(body);
  stage.widen(0);
  assert.equal(body.askedCount, 0);
  stage.windows.onDrained();
  assert.equal(body.askedCount, 1);
});
