// The language in which manifests are written, once, for both of their readers: `tulle manifest generate` evaluates
// them with values (evaluate.ts), and the charts hold them as Helm's templates (print-template.ts). A manifest is
// plain data in which few words stand for what the values decide. Each word has two meanings of a few lines each, side
// by side in those two files; nothing else differs between the two ways, so that what they make is equal as far as the
// words are. Running the functions with symbolic values in the place of a language would leave conditions to
// JavaScript, which no template sees; templates as the source would leave the command line without types, and with
// Go's template engine.
import type { GroupPath, LeafPath } from "./values.ts";

export type Scalar = string | number | boolean | null;

export type Condition =
  /** Neither false, empty nor missing. */
  | { readonly is: "set"; readonly path: LeafPath }
  | { readonly is: "equal"; readonly path: LeafPath; readonly to: string }
  | { readonly is: "not"; readonly condition: Condition }
  | { readonly is: "all"; readonly of: readonly Condition[] };

export type Words =
  /** A value as it is, be it a text or a mapping. */
  | { readonly word: "value"; readonly path: LeafPath }
  /** Where the release is installed. */
  | { readonly word: "namespace" }
  | { readonly word: "text"; readonly parts: readonly (string | Expression)[] }
  | {
      readonly word: "choose";
      readonly condition: Condition;
      readonly chosen: string | Expression;
      readonly otherwise: string | Expression;
    }
  /** A mapping of the values, and what is fixed, which wins. */
  | { readonly word: "merged"; readonly own: Readonly<Record<string, string | Expression>>; readonly path: LeafPath }
  /** JSON as text, such as a ConfigMap holds: of one value, or of several under names. */
  | { readonly word: "json"; readonly of: LeafPath | Readonly<Record<string, LeafPath | GroupPath>> };

/** A class, so that no mapping of a manifest is taken for one. */
export class Expression {
  readonly words: Words;

  constructor(words: Words) {
    this.words = words;
  }
}

/** An entry of a mapping, an item of a list or a whole manifest that is there under a condition. */
export class When {
  readonly condition: Condition;
  readonly template: Template;

  constructor(condition: Condition, template: Template) {
    this.condition = condition;
    this.template = template;
  }
}

export type Template = Scalar | Expression | When | readonly Template[] | { readonly [name: string]: Template };

/** An object of Kubernetes, or one that is there under a condition. */
export type Manifest = { readonly [name: string]: Template } | When;

export const value = (path: LeafPath): Expression => new Expression({ word: "value", path });
export const releaseNamespace = new Expression({ word: "namespace" });
export const json = (of: LeafPath | Readonly<Record<string, LeafPath | GroupPath>>): Expression =>
  new Expression({ word: "json", of });
export const when = (condition: Condition, template: Template): When => new When(condition, template);
export const isSet = (path: LeafPath): Condition => ({ is: "set", path });
export const isEqual = (path: LeafPath, to: string): Condition => ({ is: "equal", path, to });
export const not = (condition: Condition): Condition => ({ is: "not", condition });
export const all = (...of: readonly Condition[]): Condition => ({ is: "all", of });

export function choose(condition: Condition, chosen: string | Expression, otherwise: string | Expression): Expression {
  return new Expression({ word: "choose", condition, chosen, otherwise });
}

export function merged(own: Readonly<Record<string, string | Expression>>, path: LeafPath): Expression {
  return new Expression({ word: "merged", own, path });
}

/** Only texts may be parts: a number has no one spelling. */
export function joined(...parts: readonly (string | Expression)[]): Expression {
  return new Expression({ word: "text", parts });
}
