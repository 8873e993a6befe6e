// Output of one connection: what is gathered, what waits for a slow peer, and when it is said to have drained.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { FakeSocket } from "../testing/fake-socket.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import type { BufferPool } from "./buffer-pool.ts";
import { DataPath } from "./data-path.ts";
import type { Turn } from "./turn.ts";
import { SocketOutput } from "./socket-output.ts";

function setUp(limitBytes = 10): {
  fake: FakeSocket;
  turn: Turn;
  buffers: BufferPool;
  output: SocketOutput;
  drained: () => number;
} {
  const fake = new FakeSocket();
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock: new ManualClock() });
  let count = 0;
  const output = new SocketOutput(fake.socket, dataPath, limitBytes, () => (count += 1));
  return { fake, turn: dataPath.turn, buffers: dataPath.buffers, output, drained: () => count };
}

test("what is written in one turn leaves in one write at its end", () => {
  const { fake, turn, output } = setUp();
  turn.run(() => {
    output.writeText("head ");
    output.writeBody(Buffer.from("body"));
    assert.equal(fake.written, "");
  });
  assert.equal(fake.written, "head body");
  assert.equal(output.bytesSent, 9);
});

test("large chunks take what stands before them along", () => {
  const { fake, turn, output } = setUp();
  const view = Buffer.alloc(10_000, 98);
  turn.run(() => {
    output.writeText("head ");
    output.writeChunk(view);
    view.fill(99);
  });
  assert.equal(fake.written, `head 2710\r\n${"b".repeat(10_000)}\r\n`);
});

test("what a slow peer does not take waits in order, and its going is told once", () => {
  const { fake, turn, output, drained } = setUp();
  fake.blocked = true;
  const two = "2".repeat(9000);
  turn.run(() => output.writeText("one "));
  turn.run(() => output.writeBody(Buffer.from(two)));
  for (const text of ["three ", "four "]) turn.run(() => output.writeText(text));
  assert.equal(fake.written, "one ");
  assert.equal(output.waitingBytes, 9015);
  assert.equal(output.isOverHighWatermark(), true);
  for (const expected of [`one ${two}`, `one ${two}three four `]) {
    fake.pending!();
    assert.equal(fake.written, expected);
    assert.equal(drained(), 0);
  }
  fake.pending!();
  assert.equal(drained(), 1);
  assert.equal(output.waitingBytes, 0);
  assert.equal(output.isOverHighWatermark(), false);
});

test("what fails to be written ends the connection, and nothing is told of it", () => {
  const { fake, turn, output, drained } = setUp();
  let ended = 0;
  fake.blocked = true;
  for (const text of ["one ", "two ", "three "]) turn.run(() => output.writeText(text));
  assert.equal(output.isOverHighWatermark(), true);
  output.end(() => (ended += 1));
  fake.pending!(new Error("EPIPE"));
  assert.deepEqual([fake.destroyed, fake.written, drained(), ended], [true, "one ", 0, 0]);
});

// Each piece was a write of its own, called from the call back of the one before: the stack ended, and the process with
// it.
test("a peer that reads again after 50,000 small pieces gets them all", () => {
  const { fake, turn, output, drained } = setUp(1024 * 1024);
  fake.blocked = true;
  const pieces = Array.from({ length: 50_000 }, (_each, index) => `${index},`);
  for (const piece of pieces) turn.run(() => output.writeText(piece));
  fake.blocked = false;
  fake.pending!();
  assert.equal(fake.written, pieces.join(""));
  assert.equal(output.waitingBytes, 0);
  assert.equal(drained(), 0);
});

test("a peer that reads again gets large pieces too, however many", () => {
  const { fake, turn, output } = setUp(Infinity);
  const piece = Buffer.alloc(9000, 97);
  fake.blocked = true;
  for (let count = 0; count < 4000; count += 1) turn.run(() => output.writeBody(piece));
  fake.blocked = false;
  fake.pending!();
  assert.equal(fake.written.length, 36_000_000);
});

test("the end comes behind everything that waits", () => {
  const { fake, turn, output } = setUp();
  let ended = 0;
  fake.blocked = true;
  turn.run(() => output.writeText("one"));
  turn.run(() => output.writeText("two"));
  output.end(() => (ended += 1));
  assert.equal(fake.ended, false);
  fake.pending!();
  fake.pending!();
  assert.deepEqual([fake.written, fake.ended, ended], ["onetwo", true, 1]);
});

test("a pooled buffer is used again only when it has been written", () => {
  const { fake, turn, output, buffers } = setUp();
  fake.blocked = true;
  turn.run(() => output.writeBody(Buffer.alloc(9000, 97)));
  const lent = fake.lastData as Buffer;
  assert.notEqual(buffers.take(1).buffer, lent.buffer);
  fake.pending!();
  assert.equal(buffers.take(1).buffer, lent.buffer);
});
