// Manifests as Helm's templates. Its twin is evaluate.ts, which does by itself what is told to Helm here. Values are
// printed as JSON, which is YAML in one line: no quoting, no indentation and no type can go wrong.
import { type Condition, Expression, type Manifest, type Template, When } from "./template.ts";

/** `chart` is the chart's own name: its values stand under it where charts are put together, and at the top in it. */
export function printManifests(manifests: readonly Manifest[], chart: string): string {
  const printer = new Printer(chart);
  return manifests.map((manifest) => printer.document(manifest)).join("");
}

/** As it stands in a template: whether a chart in a chart is wanted is asked elsewhere. */
class Printer {
  readonly #chart: string;

  constructor(chart: string) {
    this.#chart = chart;
  }

  document(manifest: Manifest): string {
    if (!(manifest instanceof When)) return `---\n${this.#mapping(manifest, "")}`;
    return `{{- if ${this.#condition(manifest.condition)} }}\n${this.document(manifest.template as Manifest)}{{- end }}\n`;
  }

  #mapping(mapping: { readonly [name: string]: Template }, indent: string): string {
    const entries = Object.entries(mapping);
    requireOneForSure(entries.map(([, of]) => of));
    return entries
      .map(([name, of]) => this.#guarded(of, (within) => this.#entry(`${indent}${key(name)}:`, within, `${indent}  `)))
      .join("");
  }

  #list(list: readonly Template[], indent: string): string {
    requireOneForSure(list);
    return list.map((item) => this.#guarded(item, (within) => this.#item(within, indent))).join("");
  }

  #guarded(template: Template, print: (within: Exclude<Template, When>) => string): string {
    if (!(template instanceof When)) return print(template);
    const inner = this.#guarded(template.template, print);
    return `{{- if ${this.#condition(template.condition)} }}\n${inner}{{- end }}\n`;
  }

  #entry(head: string, template: Exclude<Template, When>, indent: string): string {
    // Three quarters of a definition are its schemas, which `kubectl explain` shows better.
    if (head.trim() === "openAPIV3Schema:") return `${head} ${literalJson(template)}\n`;
    const line = this.#line(template);
    if (line !== undefined) return `${head} ${line}\n`;
    return Array.isArray(template)
      ? `${head}\n${this.#list(template as readonly Template[], indent)}`
      : `${head}\n${this.#mapping(template as { readonly [name: string]: Template }, indent)}`;
  }

  #item(template: Exclude<Template, When>, indent: string): string {
    const line = this.#line(template);
    if (line !== undefined) return `${indent}- ${line}\n`;
    // The dash on a line of its own: what comes first in a mapping may be there under a condition.
    const within = Array.isArray(template)
      ? this.#list(template as readonly Template[], `${indent}  `)
      : this.#mapping(template as { readonly [name: string]: Template }, `${indent}  `);
    return `${indent}-\n${within}`;
  }

  /** What is printed in one line; undefined for a mapping or a list with something in it. */
  #line(template: Exclude<Template, When>): string | undefined {
    if (template instanceof Expression) {
      const { words } = template;
      return `{{ ${words.word === "json" ? this.#json(words.of) : this.#expression(template)} | toJson }}`;
    }
    if (typeof template !== "object" || template === null) return literal(template);
    if (Object.keys(template).length > 0) return undefined;
    return Array.isArray(template) ? "[]" : "{}";
  }

  #expression({ words }: Expression): string {
    switch (words.word) {
      case "value":
        return this.#path(words.path);
      case "namespace":
        return ".Release.Namespace";
      case "text": {
        const format = words.parts
          .map((part) => (typeof part === "string" ? part.replaceAll("%", "%%") : "%s"))
          .join("");
        const given = words.parts.filter((part) => typeof part !== "string").map((part) => this.#operand(part));
        return `printf ${[JSON.stringify(format), ...given].join(" ")}`;
      }
      case "choose": {
        const [chosen, otherwise] = [words.chosen, words.otherwise].map((each) => this.#operand(each));
        return `ternary ${chosen} ${otherwise} (${this.#truth(words.condition)})`;
      }
      case "merged": {
        const own = Object.entries(words.own).map(([name, of]) => `${JSON.stringify(name)} ${this.#operand(of)}`);
        return `merge (dict ${own.join(" ")}) ${this.#path(words.path)}`;
      }
      case "json":
        return this.#json(words.of);
    }
  }

  #json(of: string | Readonly<Record<string, string>>): string {
    if (typeof of === "string") return `${this.#path(of)} | toPrettyJson`;
    const entries = Object.entries(of).map(([name, path]) => `${JSON.stringify(name)} ${this.#path(path)}`);
    return `dict ${entries.join(" ")} | toPrettyJson`;
  }

  #operand(part: string | Expression): string {
    return typeof part === "string" ? JSON.stringify(part) : `(${this.#expression(part)})`;
  }

  /** True or false, where a condition alone may be anything that counts as one. */
  #truth(condition: Condition): string {
    return `not (not (${this.#condition(condition)}))`;
  }

  #condition(condition: Condition): string {
    switch (condition.is) {
      case "set":
        return this.#path(condition.path);
      case "equal":
        return `eq ${this.#path(condition.path)} ${JSON.stringify(condition.to)}`;
      case "not":
        return `not (${this.#condition(condition.condition)})`;
      case "all":
        return `and ${condition.of.map((each) => `(${this.#condition(each)})`).join(" ")}`;
    }
  }

  #path(path: string): string {
    const [first, ...rest] = path.split(".");
    if (first === "global") return `.Values.${path}`;
    if (first !== this.#chart)
      throw new Error(`the chart ${this.#chart} reads ${path}, which another chart's values hold`);
    return `.Values.${rest.join(".")}`;
  }
}

/** With none it would be null in YAML, and an empty mapping or list elsewhere. */
function requireOneForSure(entries: readonly Template[]): void {
  if (entries.length > 0 && entries.every((entry) => entry instanceof When)) {
    throw new Error("a mapping or a list of a manifest has nothing that is always there");
  }
}

function key(name: string): string {
  return /^[A-Za-z][\w./-]*$/.test(name) ? name : literal(name);
}

/** JSON; what Helm would read in it is told apart. */
function literal(scalar: string | number | boolean | null): string {
  const text = typeof scalar === "string" && isPlain(scalar) ? scalar : JSON.stringify(scalar);
  return withoutActions(text);
}

/** Of what holds no words. */
function literalJson(template: Template): string {
  return withoutActions(JSON.stringify(template));
}

const withoutActions = (text: string): string => text.replaceAll("{{", '{{ "{{" }}');

/** A text that YAML can read as nothing else. */
function isPlain(scalar: string): boolean {
  return /^[A-Za-z][\w./-]*$/.test(scalar) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(scalar);
}
