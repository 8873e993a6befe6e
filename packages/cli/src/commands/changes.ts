// `tulle changes`: what was changed in the configuration, newest last, and whether the proxies have it.
import type { Command } from "commander";
import { parseDuration } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import type {
  ChangedWhileAway,
  ChangesResponse,
  ChangeSync,
  FieldChange,
  RecordedChange,
  RouteRevision,
} from "@tulle/config/api";
import { printable } from "@tulle/telemetry";
import { parseKind } from "../arguments/resource-arguments.ts";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption, NamespaceOption, OutputOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { poll } from "../instance/poll.ts";
import { pathFromHere } from "../printing/path-from-here.ts";
import { timedLine } from "../printing/timed-line.ts";
import { wrapBehind, wrapText } from "../printing/wrap-text.ts";

interface ChangesOptions extends OutputOption, InstanceOption, NamespaceOption {
  readonly since?: string;
  readonly revision?: string;
  readonly watch?: true;
}

type ObjectName = Pick<RecordedChange, "kind" | "namespace" | "name">;
type Wanted = (change: RecordedChange) => boolean;

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.argument("[kind/name]", "only changes of this object, or of a kind");
  command.option("-n, --namespace <namespace>", "only changes in this namespace");
  command.option("--since <duration>", "only the last 10m, 2h and so on");
  command.option("--revision <revision>", "only what made this revision, which access logs name, or ended it");
  command.option("-w, --watch", "go on with what is changed from now on, and when the proxies have it");
  addExamples(command, [
    ["tulle changes --since 10m", "what happened just now"],
    ["tulle changes VirtualService/catalog -n shop", "one object's history"],
    ["tulle changes --revision aa48d963b40d", "which edit made the routes that a line of an access log names"],
    ["tulle changes --watch --since 1s -o json", "what happens from now on, one JSON object a line"],
  ]);
  command.action(async (object: string | undefined, options: ChangesOptions) => {
    const named = object === undefined ? undefined : parseObject(object);
    const isMeant = ({ kind, name, namespace }: ObjectName): boolean =>
      (options.namespace === undefined || namespace === options.namespace) &&
      (named === undefined || (kind === named.kind && (named.name === undefined || name === named.name)));
    const isWanted: Wanted = (change) =>
      (options.revision === undefined || hasRevision(change.proxies, options.revision)) &&
      (change.away === undefined ? isMeant(change) : change.away.named.some(isMeant));
    const since = sinceOf(options.since);
    const instance = await context.instance(options);
    const ask = (from: string | undefined): Promise<ChangesResponse> =>
      withApiFailures(instance, () => connect(instance).call(endpoints.changes, { since: from }));
    if (options.watch === true) {
      await watchChanges(ask, since, isWanted, options, context);
      return;
    }
    const answer = await ask(since);
    const shown = { ...answer, changes: answer.changes.filter(isWanted) };
    await context.printData(shown, options.output, () => changesText(shown, context));
  });
}

/** Changes of so long ago are looked at again: the clock may have been set back, or a control plane have lost one. */
const lookBackMs = 60_000;
/** More than a control plane keeps. */
const maxTold = 5000;

/** Each change when it is first seen, and again, as data, or how it ended, as text, once the proxies have answered. */
async function watchChanges(
  ask: (from: string | undefined) => Promise<ChangesResponse>,
  since: string | undefined,
  isWanted: Wanted,
  { output }: OutputOption,
  context: CommandContext,
): Promise<void> {
  /** By id and time; whether all that there is to say was said. */
  const told = new Map<string, boolean>();
  let from = since;
  const print = async (change: RecordedChange, text: string): Promise<void> => {
    if (output === "json") context.stdout(`${JSON.stringify(change)}\n`);
    else await context.printData(change, output, () => text);
    if (output === "yaml") context.stdout("---\n");
  };
  for await (const answer of poll(() => ask(from))) {
    if (answer === undefined) continue;
    for (const change of answer.changes.filter(isWanted)) {
      const key = `${change.id} ${change.time}`;
      const isDone = !isUnderWay(change);
      const before = told.get(key);
      told.set(key, isDone);
      if (before === undefined) await print(change, changeText(change, context, isDone));
      else if (isDone && !before)
        await print(
          change,
          `${timedLine(change.time, `${nameOf(change)}:`, context.columns)}\n${syncText(change, context.columns)}`,
        );
    }
    for (const oldest of told.keys()) if (told.size > maxTold) told.delete(oldest);
    const open = answer.changes.find(isUnderWay);
    const times = [open, answer.changes.at(-1)].flatMap((change) =>
      change === undefined ? [] : Date.parse(change.time),
    );
    const back = new Date(Math.min(...times) - lookBackMs);
    if (times.length > 0 && (since === undefined || back > new Date(since))) from = back.toISOString();
  }
}

function isUnderWay({ proxies }: RecordedChange): boolean {
  return proxies !== undefined && proxies.tookMs === undefined && proxies.isCutShort !== true;
}

function hasRevision(proxies: ChangeSync | undefined, revision: string): boolean {
  return proxies?.revisions?.some(({ before, after }) => before === revision || after === revision) === true;
}

function parseObject(text: string): { readonly kind: string; readonly name: string | undefined } {
  const slash = text.indexOf("/");
  return slash < 0
    ? { kind: parseKind(text), name: undefined }
    : { kind: parseKind(text.slice(0, slash)), name: text.slice(slash + 1) };
}

function sinceOf(duration: string | undefined): string | undefined {
  if (duration === undefined) return undefined;
  const durationMs = parseDuration(duration);
  if (durationMs === undefined)
    throw new CommandFailure(`--since takes a duration such as 10m, not ${duration}`, { exitCode: exitCodes.usage });
  return new Date(Date.now() - durationMs).toISOString();
}

type Terminal = Pick<CommandContext, "columns" | "cwd">;

/** One block a change. */
export function changesText({ changes, proxies }: ChangesResponse, terminal: Terminal): string {
  const blocks = changes.map((change) => changeText(change, terminal, true));
  const { connected, inSync } = proxies;
  const none = `${wrapText("No changes are remembered of that. 'tulle changes' without arguments has all that are.", terminal.columns)}\n`;
  const all = wrapText(`${inSync} of ${connected} proxies have everything that was sent.`, terminal.columns);
  return `${blocks.length === 0 ? none : blocks.join("")}${all}\n`;
}

function changeText(change: RecordedChange, terminal: Terminal, withSync: boolean): string {
  const { away, type, file, findings, by } = change;
  const { columns, cwd } = terminal;
  const where = file === undefined ? "over the API" : pathFromHere(file, cwd);
  const lines = [
    ...(away === undefined ? [] : awayLines(away, cwd)),
    ...(by === undefined ? [] : [`by ${by}`]),
    ...change.fields.map(fieldText),
    ...(change.moreFields === 0 ? [] : [`and ${change.moreFields} more`]),
    ...(findings.length === 0 ? [] : [`findings: ${findings.join(", ")}`]),
  ];
  const parts = [
    timedLine(change.time, away === undefined ? `${nameOf(change)} ${type}, ${where}` : awayTitle(away), columns),
    ...lines.map((line) => wrapBehind("  ", printable(line), columns, "  ")),
  ];
  return `${parts.join("\n")}\n${withSync ? syncText(change, columns) : ""}`;
}

function awayTitle({ named, more }: ChangedWhileAway): string {
  const count = named.length + more;
  return `changed while the control plane was away: ${count} object${count === 1 ? "" : "s"}`;
}

function awayLines({ named, more }: ChangedWhileAway, cwd: string): readonly string[] {
  const lines = named.map((each) => {
    const where = each.file === undefined ? "" : `, ${pathFromHere(each.file, cwd)}`;
    return `${nameOf(each)} ${each.type}${where}`;
  });
  return more === 0 ? lines : [...lines, `and ${more} more`];
}

function nameOf({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
}

function syncText({ batch, proxies }: RecordedChange, columns: number | undefined): string {
  // Kept by a control plane that did not count yet.
  if (batch === undefined) return "";
  const { revisions = [], moreRevisions = 0 } = proxies ?? {};
  const lines = [
    ...revisions.map(revisionText),
    ...(moreRevisions === 0 ? [] : [`and ${moreRevisions} more`]),
    proxies === undefined ? "no proxy needs it" : proxiesText(proxies),
  ];
  return lines.map((line) => `${wrapBehind("  ", printable(line), columns, "  ")}\n`).join("");
}

function revisionText({ virtualHost, before = "(none)", after = "(none)" }: RouteRevision): string {
  return `revision of ${virtualHost}: ${before} → ${after}`;
}

function proxiesText({ connected, inSync, refusing, tookMs, isCutShort }: ChangeSync): string {
  if (connected === 0) return "no proxy was connected";
  const soFar = isCutShort === true ? " when the control plane ended" : " so far";
  const after = tookMs === undefined ? soFar : ` after ${(tookMs / 1000).toFixed(2)} s`;
  const refused = refusing === 0 ? "" : `, ${refusing} refuse${refusing === 1 ? "s" : ""} something`;
  return `${inSync} of ${connected} proxies in sync${after}${refused}`;
}

function fieldText({ path, before = "(none)", after = "(none)" }: FieldChange): string {
  return `${path}: ${before} → ${after}`;
}
