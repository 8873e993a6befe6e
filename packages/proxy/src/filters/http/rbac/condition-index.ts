// The first of many conditions that a request meets, at the cost of the few that it can meet: a request looks up its
// own path, host and peer in the conditions' anchors and then tests only what it found there, and what has no anchor.
import type { RequestHead } from "../../../http/message.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { ipv4Of, maskedIpv4 } from "./address.ts";
import type { AddressSource, Anchor, AnchorSet, Condition, TextSource } from "./condition.ts";
import { PrefixIndex } from "./prefix-index.ts";

/** Index of the first condition that the request meets; -1 = none. */
export type FirstMatch = (request: RequestHead, info: StreamInfo) => number;

/** Below this a walk through all costs less than the look-ups. */
const minIndexedConditions = 5;

export function firstMatchOf(conditions: readonly Condition[]): FirstMatch {
  if (conditions.length >= minIndexedConditions && conditions.some(({ anchorSets }) => anchorSets.length > 0)) {
    return indexedFirstMatch(conditions);
  }
  const tests = conditions.map(({ matches }) => matches);
  return (request, info) => {
    for (let index = 0; index < tests.length; index += 1) if (tests[index]!(request, info)) return index;
    return -1;
  };
}

export function anyOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 1) return conditions[0]!;
  const firstMatch = firstMatchOf(conditions);
  const sets = conditions.map(({ anchorSets }) => leastCommon(anchorSets, staticCost));
  return {
    matches: (request, info) => firstMatch(request, info) >= 0,
    anchorSets: sets.every((set) => set !== undefined) ? [sets.flat()] : [],
  };
}

function leastCommon(sets: readonly AnchorSet[], cost: (anchor: Anchor) => number): AnchorSet | undefined {
  let best: AnchorSet | undefined;
  let bestCost = Infinity;
  for (const set of sets) {
    const sum = set.reduce((total, anchor) => total + cost(anchor), 0);
    if (sum >= bestCost) continue;
    best = set;
    bestCost = sum;
  }
  return best;
}

/** How many requests are at an anchor, roughly, while nothing is known of the other conditions. */
function staticCost(anchor: Anchor): number {
  if (anchor.source.key === "header::method") return 16;
  if (anchor.kind === "exact") return 1;
  return anchor.kind !== "ipv4" && anchor.text === "" ? 8 : 4;
}

function anchorKey(anchor: Anchor): string {
  const { kind, source } = anchor;
  if (kind === "ipv4") return `${source.key}\0${anchor.network}/${anchor.prefixLength}`;
  return `${source.key}\0${kind}\0${anchor.ignoresCase ? "i" : ""}\0${anchor.text}`;
}

type Collector = (request: RequestHead, info: StreamInfo, found: number[]) => void;

function indexedFirstMatch(conditions: readonly Condition[]): FirstMatch {
  const tests = conditions.map(({ matches }) => matches);
  const unanchored: number[] = [];
  const collectors = collectorsOf(conditions, unanchored);
  const found: number[] = [];
  return (request, info) => {
    found.length = 0;
    for (const collect of collectors) collect(request, info, found);
    if (found.length > 1) found.sort((a, b) => a - b);
    let atFound = 0;
    let atUnanchored = 0;
    let last = -1;
    for (;;) {
      const one = atFound < found.length ? found[atFound]! : Infinity;
      const other = atUnanchored < unanchored.length ? unanchored[atUnanchored]! : Infinity;
      const index = Math.min(one, other);
      if (index === Infinity) return -1;
      if (index === one) atFound += 1;
      else atUnanchored += 1;
      if (index === last) continue;
      last = index;
      if (tests[index]!(request, info)) return index;
    }
  };
}

function collectorsOf(conditions: readonly Condition[], unanchored: number[]): readonly Collector[] {
  // An anchor that many conditions share tells them apart badly, whatever it is: a path that a thousand policies name
  // is worth less than the principal that only one of them names.
  const shares = new Map<string, number>();
  for (const { anchorSets } of conditions) {
    for (const key of new Set(anchorSets.flat().map(anchorKey))) shares.set(key, (shares.get(key) ?? 0) + 1);
  }
  const cost = (anchor: Anchor): number => shares.get(anchorKey(anchor))! + staticCost(anchor) / 100;
  const texts = new Map<string, TextCollector>();
  const addresses = new Map<string, AddressCollector>();
  for (const [id, { anchorSets }] of conditions.entries()) {
    const set = leastCommon(anchorSets, cost);
    if (set === undefined) unanchored.push(id);
    for (const anchor of set ?? []) {
      const { key } = anchor.source;
      if (anchor.kind === "ipv4") {
        let collector = addresses.get(key);
        if (collector === undefined) addresses.set(key, (collector = new AddressCollector(anchor.source)));
        collector.add(anchor.network, anchor.prefixLength, id);
      } else {
        let collector = texts.get(key);
        if (collector === undefined) texts.set(key, (collector = new TextCollector(anchor.source)));
        collector.add(anchor, id);
      }
    }
  }
  return [...texts.values(), ...addresses.values()].map((collector) => collector.build());
}

function addId<K>(ids: Map<K, number[]>, key: K, id: number): void {
  const list = ids.get(key);
  if (list === undefined) ids.set(key, [id]);
  else if (list.at(-1) !== id) list.push(id);
}

function reversed(text: string): string {
  let result = "";
  for (let index = text.length - 1; index >= 0; index -= 1) result += text[index];
  return result;
}

/** Anchors of one source in one spelling: as they stand, or in lower case. */
class TextAnchors {
  readonly #exact = new Map<string, number[]>();
  readonly #prefixes = new Map<string, number[]>();
  readonly #reversedSuffixes = new Map<string, number[]>();

  add(kind: "exact" | "prefix" | "suffix", text: string, id: number): void {
    if (kind === "exact") addId(this.#exact, text, id);
    else if (kind === "prefix") addId(this.#prefixes, text, id);
    else addId(this.#reversedSuffixes, reversed(text), id);
  }

  build(): ((value: string, found: number[]) => void) | undefined {
    const exact = this.#exact;
    const prefixes = this.#prefixes.size > 0 ? new PrefixIndex(this.#prefixes) : undefined;
    const suffixes = this.#reversedSuffixes.size > 0 ? new PrefixIndex(this.#reversedSuffixes) : undefined;
    if (exact.size === 0 && prefixes === undefined && suffixes === undefined) return undefined;
    return (value, found) => {
      const ids = exact.get(value);
      if (ids !== undefined) for (const id of ids) found.push(id);
      prefixes?.collect(value, found);
      suffixes?.collect(reversed(value), found);
    };
  }
}

class TextCollector {
  readonly #source: TextSource;
  readonly #plain = new TextAnchors();
  readonly #lowerCase = new TextAnchors();

  constructor(source: TextSource) {
    this.#source = source;
  }

  add(anchor: Exclude<Anchor, { kind: "ipv4" }>, id: number): void {
    (anchor.ignoresCase ? this.#lowerCase : this.#plain).add(anchor.kind, anchor.text, id);
  }

  build(): Collector {
    const source = this.#source;
    const plain = this.#plain.build();
    const lowerCase = this.#lowerCase.build();
    const collect = (value: string, found: number[]): void => {
      plain?.(value, found);
      lowerCase?.(value.toLowerCase(), found);
    };
    return (request, info, found) => {
      const value = source.read(request, info);
      if (value === undefined) return;
      if (typeof value === "string") collect(value, found);
      else for (const one of value) collect(one, found);
    };
  }
}

class AddressCollector {
  readonly #source: AddressSource;
  readonly #networks = new Map<number, Map<number, number[]>>();

  constructor(source: AddressSource) {
    this.#source = source;
  }

  add(network: number, prefixLength: number, id: number): void {
    let networks = this.#networks.get(prefixLength);
    if (networks === undefined) this.#networks.set(prefixLength, (networks = new Map()));
    addId(networks, network, id);
  }

  build(): Collector {
    const source = this.#source;
    const byLength = [...this.#networks];
    return (_request, info, found) => {
      const ip = ipv4Of(source.read(info));
      if (ip < 0) return;
      for (const [prefixLength, networks] of byLength) {
        const ids = networks.get(maskedIpv4(ip, prefixLength));
        if (ids !== undefined) for (const id of ids) found.push(id);
      }
    };
  }
}
