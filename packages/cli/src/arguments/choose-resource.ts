// Which Service, Deployment or Rollout a person means, alike for every command that takes one: its name, or
// `<name>.<namespace>`.
import type { Deployment, Rollout, Service } from "@tulle/config";
import { CommandFailure } from "../command/command-failure.ts";

export interface ResourceChoice {
  readonly text: string;
  /** Value of `-n`. */
  readonly namespace?: string | undefined;
}

/**
 * In every namespace without `-n`.
 * @throws {CommandFailure} when there is none, or more than one
 */
export function chooseResource<T extends Service | Deployment | Rollout>(
  kind: T["kind"],
  all: readonly T[],
  { text, namespace }: ResourceChoice,
): T {
  const named = all.filter((each) => each.metadata.name === text || fullName(each) === text);
  const found = named.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (first !== undefined) {
    throw new CommandFailure(`there is more than one ${kind} ${text}`, { hint: `Say which:\n${listed(found)}` });
  }
  const where = namespace === undefined ? "" : ` in the namespace ${namespace}`;
  const elsewhere = named[0]?.metadata.namespace;
  const hint = elsewhere === undefined ? `${kind}s:\n${listed(all)}` : `There is one in ${elsewhere}: -n ${elsewhere}`;
  throw new CommandFailure(
    `there is no ${kind} ${text}${where}`,
    all.length === 0 ? { hint: `There is none at all. 'tulle apply -f FILE' brings one.` } : { hint },
  );
}

function listed(resources: readonly (Service | Deployment | Rollout)[]): string {
  return resources
    .map(fullName)
    .toSorted()
    .map((name) => `  ${name}`)
    .join("\n");
}

function fullName({ metadata }: Service | Deployment | Rollout): string {
  return `${metadata.name}.${metadata.namespace}`;
}
