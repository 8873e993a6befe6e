// Output of one HTTP/2 connection: what a turn gathers, what waits for a slow peer and what it takes, and the end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { FakeSocket } from "../../testing/fake-socket.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { DataPath } from "../../worker/data-path.ts";
import { frameTypes } from "./frame.ts";
import { FrameOutput } from "./frame-output.ts";

function setUp(limitBytes = 1 << 20, onDrained = (): void => undefined) {
  const fake = new FakeSocket();
  const writes: number[] = [];
  const write = fake._write.bind(fake);
  fake._write = (data, encoding, callback) => {
    writes.push(data.length);
    write(data, encoding, callback);
  };
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock: new ManualClock() });
  let count = 0;
  const output = new FrameOutput(fake.socket, dataPath, limitBytes, () => {
    count += 1;
    onDrained();
  });
  return { fake, writes, turn: dataPath.turn, output, drained: () => count };
}

function writeData(output: FrameOutput, bytes: number, fill = "x"): void {
  output.beginFrame(bytes, frameTypes.data, 0, 1);
  output.copy(Buffer.alloc(bytes, fill), 0, bytes);
}

test("all frames of a turn leave in one write at its end", () => {
  const { fake, writes, turn, output } = setUp();
  turn.run(() => {
    output.beginFrame(4, frameTypes.windowUpdate, 0, 0x01020304);
    output.writeUint32(0x7fffffff);
    writeData(output, 2, "ab");
    assert.equal(fake.written, "");
  });
  assert.equal(fake.written, "\0\0\x04\x08\0\x01\x02\x03\x04\x7f\xff\xff\xff\0\0\x02\0\0\0\0\0\x01ab");
  assert.deepEqual([writes.length, output.bytesSent], [1, 24]);
});

test("more than a buffer holds leaves in several writes, in order", () => {
  const { fake, writes, turn, output } = setUp();
  turn.run(() => {
    for (let count = 0; count < 10; count += 1) writeData(output, 16_384, String(count));
  });
  assert.equal(fake.written.length, 10 * 16_393);
  assert.deepEqual(Array.from({ length: 10 }, (_, index) => fake.written[index * 16_393 + 9]).join(""), "0123456789");
  assert.ok(writes.length <= 4, `${writes.length} writes`);
});

test("what a peer does not take is gathered into full buffers, however small the pieces", () => {
  const { fake, writes, turn, output } = setUp();
  fake.blocked = true;
  for (let count = 0; count < 5000; count += 1) turn.run(() => writeData(output, 20));
  assert.equal(output.bytesSent - output.waitingBytes, 0);
  assert.deepEqual(writes, [29]);
  fake.blocked = false;
  fake.pending!();
  assert.equal(fake.written.length, 5000 * 29);
  assert.ok(writes.length <= 4, `${writes.length} writes`);
  assert.equal(output.waitingBytes, 0);
});

test("a peer that takes everything again is told of once, when nothing waits", () => {
  const { fake, turn, output, drained } = setUp(1000);
  fake.blocked = true;
  turn.run(() => writeData(output, 600));
  turn.run(() => writeData(output, 600));
  assert.equal(output.isOverHighWatermark(), true);
  fake.pending!();
  assert.equal(drained(), 0, "the second one is on its way");
  fake.pending!();
  assert.equal(drained(), 1);
  assert.equal(output.isOverHighWatermark(), false);
});

test("who hears that everything has left writes behind those who were writing, not between their frames", () => {
  let isTold = false;
  const { fake, turn, output } = setUp(1000, () => {
    isTold = true;
    writeData(output, 3, "new");
  });
  turn.run(() => {
    writeData(output, 60_000, "a");
    assert.equal(output.isOverHighWatermark(), true);
    writeData(output, 60_000, "b");
    writeData(output, 3, "c");
    assert.equal(isTold, false);
  });
  assert.equal(isTold, true);
  const bodies: string[] = [];
  for (let at = 0; at < fake.written.length;) {
    const length = (fake.written.charCodeAt(at + 1) << 8) | fake.written.charCodeAt(at + 2);
    bodies.push(`${length} ${fake.written[at + 9]}`);
    at += 9 + length;
  }
  assert.deepEqual(bodies, ["60000 a", "60000 b", "3 c", "3 n"]);
});

test("the end comes behind everything that waits", () => {
  const { fake, turn, output } = setUp();
  let ended = 0;
  fake.blocked = true;
  turn.run(() => writeData(output, 1, "1"));
  turn.run(() => writeData(output, 1, "2"));
  output.end(() => (ended += 1));
  assert.equal(fake.ended, false);
  fake.pending!();
  fake.pending!();
  assert.deepEqual([fake.written.length, fake.ended, ended], [20, true, 1]);
});
