// What compilation has to say about a resource: errors refuse it (NACK), warnings are logged. Both carry their place in
// the resource, in the proto's own field names, so that an operator finds the line.

export interface CompileProblem {
  readonly severity: "error" | "warning";
  /** Such as `virtual_hosts[0].routes[2].match`; empty for the resource as a whole. */
  readonly place: string;
  readonly message: string;
}

/** A path into a resource; its text is only made when there is something to say. */
export class Place {
  readonly #parent: Place | undefined;
  readonly #segment: string;

  constructor(parent: Place | undefined, segment: string) {
    this.#parent = parent;
    this.#segment = segment;
  }

  static readonly root = new Place(undefined, "");

  field(name: string, index?: number): Place {
    return new Place(this, index === undefined ? name : `${name}[${index}]`);
  }

  /** `name` is empty where this place is the map itself. */
  key(name: string, key: string): Place {
    return new Place(this, `${name}[${JSON.stringify(key)}]`);
  }

  toString(): string {
    const before = this.#parent === undefined ? "" : this.#parent.toString();
    return before === "" || this.#segment.startsWith("[") ? before + this.#segment : `${before}.${this.#segment}`;
  }
}

/** Collects the problems of one resource. */
export class Problems {
  readonly list: CompileProblem[] = [];
  #errors = 0;
  /** What has been refused where: a field that no part of the proxy takes may be found by two of them. */
  readonly #told = new Set<string>();

  error(place: Place, message: string): void {
    this.#errors += 1;
    const where = place.toString();
    const text = `${where}\n${message}`;
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.list.push({ severity: "error", place: where, message });
  }

  warning(place: Place, message: string): void {
    this.list.push({ severity: "warning", place: place.toString(), message });
  }

  add(others: Problems): void {
    this.#errors += others.#errors;
    this.list.push(...others.list);
  }

  get hasErrors(): boolean {
    return this.#errors > 0;
  }
}

export type Compiled<T> =
  | { readonly ok: true; readonly value: T; readonly warnings: readonly CompileProblem[] }
  | { readonly ok: false; readonly problems: readonly CompileProblem[] };

export function compiled<T>(value: T | undefined, problems: Problems): Compiled<T> {
  if (problems.hasErrors || value === undefined) return { ok: false, problems: problems.list };
  return { ok: true, value, warnings: problems.list };
}

/** One line for an ACK's error detail or a log. */
export function problemText(problem: CompileProblem): string {
  return problem.place === "" ? problem.message : `${problem.place}: ${problem.message}`;
}

export function problemsText(problems: readonly CompileProblem[]): string {
  return problems
    .filter((problem) => problem.severity === "error")
    .map(problemText)
    .join("; ");
}
