// A table of nft(8) as data, and the transactions that make it: whole, or what differs from the one that is there. What
// the kernel itself writes into sets stays through a change.

export interface RuleChain {
  /** Where the kernel enters it (`filter hook input priority filter`); undefined: other chains lead here. */
  readonly hook?: string;
  readonly rules: readonly string[];
}

/** A set of keys, or a map from keys to values. */
export interface RuleSet {
  readonly kind: "set" | "map";
  /** Type and properties, as nft takes them: `type ipv4_addr; flags interval;`. */
  readonly properties: string;
  /** From each key to its value; "" in sets. */
  readonly elements: ReadonlyMap<string, string>;
}

export interface RuleTable {
  readonly name: string;
  readonly chains: ReadonlyMap<string, RuleChain>;
  readonly sets: ReadonlyMap<string, RuleSet>;
}

/** Adding it first is what makes it no error that there is none. */
export function removalText(name: string): string {
  return `add table inet ${name}\ndelete table inet ${name}\n`;
}

/** In the place of whatever is there under its name. */
export function wholeText(table: RuleTable): string {
  const nothing: RuleTable = { name: table.name, chains: new Map(), sets: new Map() };
  return `${removalText(table.name)}add table inet ${table.name}\n${changeText(nothing, table)}`;
}

/** From one table to the next; empty where nothing differs. */
export function changeText(before: RuleTable, after: RuleTable): string {
  const at = `inet ${after.name}`;
  const script: string[] = [];
  const kept = keptNames(before, after);
  // What is made first may be named by what follows.
  for (const [name, { kind, properties }] of after.sets) {
    if (!kept.has(name)) script.push(`add ${kind} ${at} ${name} { ${properties} }`);
  }
  for (const [name, { hook }] of after.chains) {
    if (before.chains.has(name)) continue;
    script.push(`add chain ${at} ${name}${hook === undefined ? "" : ` { type ${hook}; policy accept; }`}`);
  }
  const changed = [...after.chains].filter(([name, chain]) => !isSameChain(before.chains.get(name), chain));
  const gone = [...before.chains.keys()].filter((name) => !after.chains.has(name));
  for (const name of [...changed.map(([each]) => each), ...gone]) {
    if (before.chains.has(name)) script.push(`flush chain ${at} ${name}`);
  }
  for (const [name, { elements }] of before.sets) {
    const next = after.sets.get(name)?.elements;
    if (next === undefined || !kept.has(name)) continue;
    const stale = [...elements].filter(([key, value]) => next.get(key) !== value).map(([key]) => key);
    if (stale.length > 0) script.push(`delete element ${at} ${name} { ${stale.join(", ")} }`);
  }
  for (const [name, { elements }] of after.sets) {
    const previous = kept.has(name) ? before.sets.get(name)!.elements : undefined;
    const added = [...elements].filter(([key, value]) => previous?.get(key) !== value).map(elementText);
    if (added.length > 0) script.push(`add element ${at} ${name} { ${added.join(", ")} }`);
  }
  for (const [name, { rules }] of changed) {
    for (const rule of rules) script.push(`add rule ${at} ${name} ${rule}`);
  }
  for (const name of gone) script.push(`delete chain ${at} ${name}`);
  for (const [name, { kind }] of before.sets) {
    if (!after.sets.has(name)) script.push(`delete ${kind} ${at} ${name}`);
  }
  return script.map((line) => `${line}\n`).join("");
}

/** Sets of both tables; one whose properties change is given another name by who makes them. */
function keptNames(before: RuleTable, after: RuleTable): ReadonlySet<string> {
  return new Set([...after.sets.keys()].filter((name) => before.sets.has(name)));
}

function isSameChain(before: RuleChain | undefined, { rules }: RuleChain): boolean {
  if (before === undefined) return rules.length === 0;
  return before.rules.length === rules.length && rules.every((rule, index) => before.rules[index] === rule);
}

function elementText([key, value]: readonly [string, string]): string {
  return value === "" ? key : `${key} : ${value}`;
}
