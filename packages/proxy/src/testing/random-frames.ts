// Bytes of HTTP/2 at random: sound frames of either side, frames of any kind in any order, and a few bytes changed. The
// same seed gives the same bytes.
import { frameFlags, frameTypes } from "../codec/http2/frame.ts";
import { emptySettings, frame, plainFields } from "./http2-peer.ts";

const allTypes = [...Object.values(frameTypes), 11, 200];
const { endStream, endHeaders, padded, priority } = frameFlags;

export type Side = "client" | "host";

const pseudo: Readonly<Record<Side, readonly (readonly [string, string])[]>> = {
  client: [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "a"],
  ],
  host: [[":status", "200"]],
};
const fields: readonly (readonly [string, string])[] = [
  ["x-a", "b"],
  ["content-length", "5"],
  ["te", "trailers"],
  ["connection", "close"],
  ["X-Upper", "a"],
  ["x-crlf", "a\r\nb: c"],
  ["cookie", "a=b"],
  [":late", "a"],
  ["x-large", "y".repeat(9000)],
];

/** What `side` sends behind its preface. */
export function randomFrames(side: Side, random: () => number): Buffer {
  const below = (limit: number): number => Math.floor(random() * limit);
  if (random() < 0.05) return Buffer.from(Array.from({ length: below(300) }, () => below(256)));
  const frames = [emptySettings];
  const count = 1 + below(8);
  let nextId = 1;
  for (let index = 0; index < count; index += 1) {
    const isNew = side === "host" || index === 0 || random() < 0.7;
    const id = isNew ? nextId : 1 + 2 * below(4);
    if (isNew) nextId = (nextId + 2) % 13;
    frames.push(...randomFrame(side, id, random));
  }
  const bytes = Buffer.concat(frames);
  const changes = random() < 0.7 ? 0 : 1 + below(3);
  // What is changed in the body of a large value changes little.
  for (let change = 0; change < changes; change += 1) bytes[below(Math.min(bytes.length, 400))] = below(256);
  return random() < 0.1 ? bytes.subarray(0, below(bytes.length)) : bytes;
}

function randomFrame(side: Side, id: number, random: () => number): Buffer[] {
  const below = (limit: number): number => Math.floor(random() * limit);
  const flags = random() < 0.5 ? endStream : 0;
  const choice = below(6);
  if (choice < 3) {
    const more = fields.filter(() => random() < 0.15);
    const block = plainFields(random() < 0.9 ? [...pseudo[side], ...more] : more);
    if (random() < 0.7) return [frame(frameTypes.headers, flags | endHeaders, id, block)];
    const at = below(block.length);
    const rest = frame(frameTypes.continuation, endHeaders, id, block.subarray(at));
    return [frame(frameTypes.headers, flags, id, block.subarray(0, at)), rest];
  }
  if (choice < 5) {
    const body = Buffer.alloc(below(7), 97);
    if (random() < 0.5) return [frame(frameTypes.data, flags, id, body)];
    const padding = below(20);
    return [
      frame(frameTypes.data, flags | padded, id, Buffer.concat([Buffer.from([padding]), body, Buffer.alloc(padding)])),
    ];
  }
  const payload = Buffer.from(
    Array.from({ length: [0, 4, 5, 6, 8, 12, below(40)][below(7)]! }, () => (random() < 0.5 ? 0 : below(256))),
  );
  const anyFlags = random() < 0.5 ? 0 : below(2) * (padded | priority) + below(2);
  return [frame(allTypes[below(allTypes.length)]!, anyFlags, random() < 0.5 ? 0 : id, payload)];
}

/** All at once, byte by byte, and in random pieces. */
export function cutsOf(bytes: Buffer, random: () => number): Buffer[][] {
  const places = Array.from({ length: 3 }, () => Math.floor(random() * bytes.length)).sort((a, b) => a - b);
  const ends = [...places, bytes.length];
  const pieces = ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
  const all = [[bytes], pieces.filter(({ length }) => length > 0)];
  return bytes.length > 2000 ? all : [...all, Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))];
}
