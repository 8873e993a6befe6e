// `tulle changes`: what was changed in the configuration, newest last, and whether the proxies have it.
import type { Command } from "commander";
import { parseDuration } from "@tulle/config";
import { type ChangesResponse, endpoints, type FieldChange, type RecordedChange } from "@tulle/config/api";
import { printable } from "@tulle/telemetry";
import { parseKind } from "../arguments/resource-arguments.ts";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption, OutputOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { timedLine } from "../printing/timed-line.ts";
import { wrapBehind, wrapText } from "../printing/wrap-text.ts";

interface ChangesOptions extends OutputOption, InstanceOption {
  readonly namespace?: string;
  readonly since?: string;
}

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.argument("[kind/name]", "only changes of this object, or of a kind");
  command.option("-n, --namespace <namespace>", "only changes in this namespace");
  command.option("--since <duration>", "only the last 10m, 2h and so on");
  addExamples(command, [
    ["tulle changes --since 10m", "what happened just now"],
    ["tulle changes VirtualService/catalog -n shop", "one object's history"],
  ]);
  command.action(async (object: string | undefined, options: ChangesOptions) => {
    const wanted = object === undefined ? undefined : parseObject(object);
    const since = sinceOf(options.since);
    const instance = await context.instance(options);
    const answer = await withApiFailures(instance, () => connect(instance).call(endpoints.changes, { since }));
    const changes = answer.changes.filter(
      ({ kind, name, namespace }) =>
        (options.namespace === undefined || namespace === options.namespace) &&
        (wanted === undefined || (kind === wanted.kind && (wanted.name === undefined || name === wanted.name))),
    );
    const shown = { ...answer, changes };
    await context.printData(shown, options.output, () => changesText(shown, context.columns));
  });
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

/** One block a change; `columns` is the width of the terminal, if there is one. */
export function changesText({ changes, proxies }: ChangesResponse, columns: number | undefined): string {
  const blocks = changes.map((change) => changeText(change, columns));
  const { connected, inSync } = proxies;
  const none = "No changes are remembered of that.\n";
  const proxiesText = wrapText(`${inSync} of ${connected} proxies have everything that was sent.`, columns);
  return `${blocks.length === 0 ? none : blocks.join("")}${proxiesText}\n`;
}

function changeText(change: RecordedChange, columns: number | undefined): string {
  const { kind, namespace, name, type, file = "over the API", findings } = change;
  const head = `${kind} ${namespace === "" ? "" : `${namespace}/`}${name} ${type}, ${file}`;
  const lines = [
    ...change.fields.map(fieldText),
    ...(change.moreFields === 0 ? [] : [`and ${change.moreFields} more`]),
    ...(findings.length === 0 ? [] : [`findings: ${findings.join(", ")}`]),
  ];
  const parts = [
    timedLine(change.time, head, columns),
    ...lines.map((line) => wrapBehind("  ", printable(line), columns, "  ")),
  ];
  return `${parts.join("\n")}\n`;
}

function fieldText({ path, before = "(none)", after = "(none)" }: FieldChange): string {
  return `${path}: ${before} → ${after}`;
}
