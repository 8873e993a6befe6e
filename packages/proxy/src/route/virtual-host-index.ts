// Finds the virtual host of an authority by Envoy's rules: exact, then the longest `*.suffix`, then the longest
// `prefix.*`, then `*` (config.route.v3.VirtualHost.domains). One hash look-up serves the usual case.

export class VirtualHostIndex<T> {
  readonly #exact = new Map<string, T>();
  /** By length of the fixed part, longest first; a wildcard stands for at least one character. */
  readonly #suffixes: { readonly length: number; readonly hosts: Map<string, T> }[] = [];
  readonly #prefixes: { readonly length: number; readonly hosts: Map<string, T> }[] = [];
  #catchAll: T | undefined = undefined;
  readonly #ignoresPort: boolean;

  constructor(ignoresPort: boolean) {
    this.#ignoresPort = ignoresPort;
  }

  /** False when the domain is already taken. */
  add(domain: string, host: T): boolean {
    const lower = domain.toLowerCase();
    if (lower === "*") {
      if (this.#catchAll !== undefined) return false;
      this.#catchAll = host;
      return true;
    }
    if (lower.startsWith("*")) return addByLength(this.#suffixes, lower.slice(1), host);
    if (lower.endsWith("*")) return addByLength(this.#prefixes, lower.slice(0, -1), host);
    if (this.#exact.has(lower)) return false;
    this.#exact.set(lower, host);
    return true;
  }

  find(authority: string): T | undefined {
    let name = authority.toLowerCase();
    if (this.#ignoresPort) name = withoutPort(name);
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    for (const { length, hosts } of this.#suffixes) {
      if (name.length <= length) continue;
      const host = hosts.get(name.slice(name.length - length));
      if (host !== undefined) return host;
    }
    for (const { length, hosts } of this.#prefixes) {
      if (name.length <= length) continue;
      const host = hosts.get(name.slice(0, length));
      if (host !== undefined) return host;
    }
    return this.#catchAll;
  }
}

function addByLength<T>(
  groups: { readonly length: number; readonly hosts: Map<string, T> }[],
  fixed: string,
  host: T,
): boolean {
  let group = groups.find((candidate) => candidate.length === fixed.length);
  if (group === undefined) {
    group = { length: fixed.length, hosts: new Map() };
    groups.push(group);
    groups.sort((a, b) => b.length - a.length);
  }
  if (group.hosts.has(fixed)) return false;
  group.hosts.set(fixed, host);
  return true;
}

/** `host:80` → `host`; `[::1]:80` → `[::1]`. */
function withoutPort(authority: string): string {
  const match = /:\d{1,5}$/.exec(authority);
  return match === null ? authority : authority.slice(0, match.index);
}
