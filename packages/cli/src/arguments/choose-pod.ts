// Which pod a person means, alike for every command that takes one: its name or how it begins, `<pod>.<namespace>`,
// `deploy/<name>`.
import { CommandFailure } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";

export interface NamedPod {
  readonly name: string;
  /** Undefined where nobody knows it any more. */
  readonly namespace: string | undefined;
  /** It ends: where another one is meant as well, that one is. */
  readonly isLeaving?: boolean;
}

export interface PodChoice {
  readonly text: string;
  /** Value of `-n`. */
  readonly namespace?: string | undefined;
  /** What is chosen among, for messages; `pod` when missing. */
  readonly what?: string;
  /** Above the list of those that there are; `Pods` when missing. */
  readonly heading?: string;
}

/** For the help of commands. */
export const podArgumentText = "pod, or how its name begins; <pod>.<namespace>; deploy/<name>";

const listedAtMost = 20;

/** @throws {CommandFailure} when there is none, or more than one; of a Deployment the first is taken, and told of */
export function choosePod<T extends NamedPod>(
  pods: readonly T[],
  choice: PodChoice,
  context: Pick<CommandContext, "stderr">,
): T {
  const { text, what = "pod" } = choice;
  const all = podsNamed(pods, choice);
  const staying = all.filter(({ isLeaving }) => isLeaving !== true);
  const found = staying.length > 0 ? staying : all;
  const [first] = found;
  if (first === undefined) throw noPod(inOption(pods, choice), podsNamed(pods, { text }), choice);
  if (found.length === 1) return first;
  if (!takenApart(text).isDeployment) {
    throw new CommandFailure(`there is more than one ${what} ${text}`, { hint: `Say which:\n${listed(found)}` });
  }
  context.stderr(`${text} has ${found.length}: this is ${fullName(first)}\n`);
  return first;
}

/** All that the text may mean. */
export function podsNamed<T extends NamedPod>(pods: readonly T[], choice: PodChoice): readonly T[] {
  const { isDeployment, name } = takenApart(choice.text);
  return inOption((isDeployment ? ofDeployment : named)(pods, name), choice);
}

function inOption<T extends NamedPod>(pods: readonly T[], { namespace }: PodChoice): readonly T[] {
  return pods.filter((pod) => namespace === undefined || (pod.namespace ?? namespace) === namespace);
}

function takenApart(text: string): { readonly isDeployment: boolean; readonly name: string } {
  const [, kind, name = ""] = /^(deploy|deployments?|pods?|po)\/(.*)$/.exec(text) ?? [];
  return kind === undefined ? { isDeployment: false, name: text } : { isDeployment: kind.startsWith("d"), name };
}

/** By its whole name before its beginning, in every namespace before the one that the text ends in. */
function named<T extends NamedPod>(pods: readonly T[], text: string): readonly T[] {
  const isName = (pod: T): boolean => pod.name === text || fullName(pod) === text;
  const beginsSo = ({ name }: T): boolean => name.startsWith(text);
  const exact = pods.filter(isName);
  if (exact.length > 0) return exact;
  const byStart = pods.filter(beginsSo);
  return byStart.length > 0 ? byStart : inNamespace(pods, text, (pod, name) => pod.name.startsWith(name));
}

function ofDeployment<T extends NamedPod>(pods: readonly T[], text: string): readonly T[] {
  // `<deployment>-<hash>-<5>`: neither of the last two has a dash.
  const isOf = (pod: T, deployment: string): boolean =>
    pod.name.startsWith(`${deployment}-`) && /^[a-z0-9]+-[a-z0-9]{5}$/.test(pod.name.slice(deployment.length + 1));
  const found = pods.filter((pod) => isOf(pod, text));
  return found.length > 0 ? found : inNamespace(pods, text, isOf);
}

/** `<name>.<namespace>`. */
function inNamespace<T extends NamedPod>(
  pods: readonly T[],
  text: string,
  matches: (pod: T, name: string) => boolean,
): readonly T[] {
  const dot = text.lastIndexOf(".");
  if (dot <= 0) return [];
  const namespace = text.slice(dot + 1);
  const name = text.slice(0, dot);
  return pods.filter((pod) => (pod.namespace ?? namespace) === namespace && matches(pod, name));
}

function noPod<T extends NamedPod>(
  pods: readonly T[],
  elsewhere: readonly T[],
  { text, namespace, what = "pod", heading = "Pods" }: PodChoice,
): CommandFailure {
  const where = namespace === undefined ? "" : ` in the namespace ${namespace}`;
  const [other] = elsewhere;
  if (other !== undefined) {
    const hint = `There is one in ${other.namespace}: -n ${other.namespace}`;
    return new CommandFailure(`there is no ${what} ${text}${where}`, { hint });
  }
  // Logs are kept of pods that have left: those that run are what somebody looks for, as long as they are known.
  const known = pods.filter((pod) => pod.namespace !== undefined);
  const list = listed(known.length > 0 ? known : pods);
  const hint = list === "" ? "There is none at all." : `${heading}:\n${list}`;
  return new CommandFailure(`there is no ${what} ${text}${where}`, { hint });
}

function listed(pods: readonly NamedPod[]): string {
  const names = pods.map(fullName).toSorted();
  const rest = names.length - listedAtMost;
  const lines = names.slice(0, listedAtMost).map((name) => `  ${name}`);
  return [...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])].join("\n");
}

function fullName({ name, namespace }: NamedPod): string {
  return namespace === undefined ? name : `${name}.${namespace}`;
}
