// Values that encoders without a dynamic table of their own (nginx, which has every answer's fields put into ours)
// write out each time: the last one of each name of the static table is known by its bytes in Huffman's code. To decode
// four of them took 1 µs of 20 a request.
import type { FieldKind } from "../field-syntax.ts";
import { staticCount, staticNames } from "./static-table.ts";

const maxBytes = 64;
/** How long a look takes would tell one client what another has sent. */
const secretNames: ReadonlySet<string> = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"]);

const rows = Array.from({ length: staticCount + 1 }, (_, index) => ({
  isOpen: index > 0 && !secretNames.has(staticNames[index]!),
  bytes: new Uint8Array(maxBytes),
  length: 0,
  value: "",
  kind: 0 as FieldKind,
}));

export interface RepeatedValue {
  readonly value: string;
  readonly kind: FieldKind;
}

/** What the bytes from `start` say as the value of the static name with that index, where they said it last time. */
export function repeatedValue(index: number, bytes: Uint8Array, start: number, end: number): RepeatedValue | undefined {
  const row = rows[index]!;
  const { length } = row;
  if (length !== end - start || length === 0) return undefined;
  for (let at = 0; at < length; at += 1) if (row.bytes[at] !== bytes[start + at]) return undefined;
  return row;
}

export function rememberValue(
  index: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  value: string,
  kind: FieldKind,
): void {
  const row = rows[index]!;
  if (!row.isOpen || end - start > maxBytes) return;
  row.length = end - start;
  for (let at = start; at < end; at += 1) row.bytes[at - start] = bytes[at]!;
  row.value = value;
  row.kind = kind;
}
