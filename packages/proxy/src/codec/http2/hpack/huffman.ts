// The Huffman code of HPACK (RFC 7541 §5.2, Appendix B). The code is canonical: the lengths say all of it.

import { latin1Slice } from "../../../http/latin1-slice.ts";

/** Of the symbols 0 to 255 and of EOS: bits of each one's code, `A` = 5 to `Z` = 30. */
const codeLengths =
  "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAA" +
  "BCCCCCKGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWVZ";
const eos = 256;
const minBits = 5;
const maxBits = 30;

const bitsOf = Uint8Array.from(codeLengths, (letter) => letter.charCodeAt(0) - 65 + minBits);
const codeOf = canonicalCodes();

function canonicalCodes(): Uint32Array {
  const codes = new Uint32Array(bitsOf.length);
  let code = 0;
  for (let bits = minBits; bits <= maxBits; bits += 1) {
    for (let symbol = 0; symbol < bitsOf.length; symbol += 1) {
      if (bitsOf[symbol] === bits) codes[symbol] = code++;
    }
    code *= 2;
  }
  return codes;
}

// What half a byte does in a state, which is an inner node of the code's tree: the next state in bits 0–7, the symbol
// that is complete in bits 8–15 (no code is shorter than 5 bits: there is one at most).
const emits = 1 << 16;
const fails = 1 << 17;
/** The text may end after it: what is left over are at most 7 bits, the beginning of EOS (§5.2). */
const mayEnd = 1 << 18;
/** By state and half byte: 16 KB, made when the first text comes. */
let steps: Uint32Array | undefined;

function makeSteps(): Uint32Array {
  // Two children of each inner node; the other end of the number line stands for a symbol.
  const children: [number, number][] = [[0, 0]];
  const mayEndIn = [true];
  for (let symbol = 0; symbol <= eos; symbol += 1) {
    const bits = bitsOf[symbol]!;
    let node = 0;
    for (let index = bits - 1; index >= 0; index -= 1) {
      const bit = (codeOf[symbol]! >>> index) & 1;
      if (index === 0) {
        children[node]![bit] = -1 - symbol;
      } else if (children[node]![bit] === 0) {
        children[node]![bit] = children.length;
        mayEndIn.push(mayEndIn[node]! && bit === 1 && bits - index <= 7);
        node = children.length;
        children.push([0, 0]);
      } else {
        node = children[node]![bit]!;
      }
    }
  }
  const made = new Uint32Array(children.length * 16);
  for (let state = 0; state < children.length; state += 1) {
    for (let half = 0; half < 16; half += 1) {
      let node = state;
      let step = 0;
      for (let bit = 3; bit >= 0; bit -= 1) {
        node = children[node]![(half >> bit) & 1]!;
        if (node >= 0) continue;
        const symbol = -1 - node;
        step |= symbol === eos ? fails : emits | (symbol << 8);
        node = 0;
      }
      made[state * 16 + half] = step | node | (mayEndIn[node]! ? mayEnd : 0);
    }
  }
  return made;
}

let decoded = Buffer.allocUnsafe(256);

/**
 * The text of `bytes` from `start` to `end` as latin1; undefined where it is none: EOS in it, or padding that is not.
 */
export function huffmanDecode(bytes: Uint8Array, start: number, end: number): string | undefined {
  const table = (steps ??= makeSteps());
  const most = ((end - start) * 8) / minBits;
  if (decoded.length < most) decoded = Buffer.allocUnsafe(Math.ceil(most));
  const output = decoded;
  let length = 0;
  let step = mayEnd;
  for (let index = start; index < end; index += 1) {
    const byte = bytes[index]!;
    step = table[((step & 0xff) << 4) | (byte >> 4)]!;
    if ((step & (emits | fails)) !== 0) {
      if ((step & fails) !== 0) return undefined;
      output[length++] = (step >> 8) & 0xff;
    }
    step = table[((step & 0xff) << 4) | (byte & 15)]!;
    if ((step & (emits | fails)) !== 0) {
      if ((step & fails) !== 0) return undefined;
      output[length++] = (step >> 8) & 0xff;
    }
  }
  return (step & mayEnd) === 0 ? undefined : latin1Slice(output, 0, length);
}

/** Of latin1 text. */
export function huffmanBytes(text: string): number {
  let bits = 0;
  for (let index = 0; index < text.length; index += 1) bits += bitsOf[text.charCodeAt(index)]!;
  return Math.ceil(bits / 8);
}

/** Writes the code of latin1 text; gives the position behind it. */
export function huffmanEncode(text: string, target: Uint8Array, start: number): number {
  let at = start;
  let pending = 0;
  let pendingBits = 0;
  for (let index = 0; index < text.length; index += 1) {
    const symbol = text.charCodeAt(index);
    const code = codeOf[symbol]!;
    let left = bitsOf[symbol]!;
    // In steps of up to 8 bits: with what is pending, 30 bits do not fit into 32.
    while (left > 0) {
      const take = Math.min(left, 8);
      left -= take;
      pending = (pending << take) | ((code >>> left) & ((1 << take) - 1));
      pendingBits += take;
      if (pendingBits < 8) continue;
      pendingBits -= 8;
      target[at++] = pending >>> pendingBits;
      pending &= (1 << pendingBits) - 1;
    }
  }
  if (pendingBits > 0) target[at++] = (pending << (8 - pendingBits)) | (0xff >> pendingBits);
  return at;
}
