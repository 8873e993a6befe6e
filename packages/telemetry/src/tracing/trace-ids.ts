// Ids of traces and spans: random hexadecimal digits, made by the hundred as ids of requests are.
import { randomFillSync } from "node:crypto";

const pooledBytes = 4096;
const random = Buffer.alloc(pooledBytes);
let digits = "";
let used = 0;

/** Sixteen digits, not all of them zero: a span's, or half of a trace's. */
export function newSpanId(): string {
  if (used >= digits.length) {
    digits = randomFillSync(random).toString("hex");
    used = 0;
  }
  const id = digits.slice(used, used + 16);
  used += 16;
  return id === "0000000000000000" ? newSpanId() : id;
}

/** Thirty-two digits. */
export function newTraceId(): string {
  return newSpanId() + newSpanId();
}
