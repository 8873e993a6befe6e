// The smuggling corpus with a few bytes changed: what is nearly a known technique is where the next one is found.
import { longField } from "./random-requests.ts";
import { smugglingCorpus } from "./smuggling-corpus.ts";

/** What parsers have disagreed on. */
const pieces = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  "\t",
  "\x0b",
  "\x85",
  ":",
  ",",
  ";",
  "0",
  "5",
  "f",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Connection: close\r\n",
  `${longField}\r\n`,
  "0\r\n\r\n",
];

/** llhttp takes all that is behind a request for an upgrade for the other protocol: there is nothing to compare. */
const seeds = smugglingCorpus.filter(({ text }) => !/upgrade|CONNECT/i.test(text));

type Mutation = (text: string, random: () => number) => string;

const place = (text: string, random: () => number): number => Math.floor(random() * (text.length + 1));
const anyOf = <T>(list: readonly T[], random: () => number): T => list[Math.floor(random() * list.length)]!;

const mutations: readonly Mutation[] = [
  (text, random) => {
    const at = place(text, random);
    return text.slice(0, at) + anyOf(pieces, random) + text.slice(at);
  },
  (text, random) => {
    const at = place(text, random);
    return text.slice(0, at) + text.slice(at + 1 + Math.floor(random() * 3));
  },
  (text, random) => {
    const at = place(text, random);
    return text.slice(0, at) + anyOf(pieces, random) + text.slice(at + 1);
  },
  (text, random) => {
    const from = place(text, random);
    const piece = text.slice(from, from + Math.floor(random() * 30));
    const at = place(text, random);
    return text.slice(0, at) + piece + text.slice(at);
  },
  // The beginning of one technique with the end of another.
  (text, random) => {
    const other = anyOf(seeds, random).text;
    return text.slice(0, place(text, random)) + other.slice(place(other, random));
  },
];

/** Latin1 text of a message that is up to three changes away from an entry. */
export function mutatedEntry(random: () => number): string {
  return changedBytes(anyOf(seeds, random).text, random);
}

/** Latin1 text with one to three changes. */
export function changedBytes(text: string, random: () => number): string {
  let changed = text;
  const changes = 1 + Math.floor(random() * 3);
  for (let index = 0; index < changes; index += 1) changed = anyOf(mutations, random)(changed, random);
  return changed;
}
