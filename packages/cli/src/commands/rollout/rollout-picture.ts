// A Rollout in a few lines for people: what has which share of the requests, the steps, and the evidence.
import { createColors } from "picocolors";
import type { RolloutMetricView, RolloutView } from "@tulle/config/api";
import { printable } from "@tulle/telemetry";
import type { CommandContext } from "../../command/command-module.ts";
import { wrapBehind, wrapText } from "../../printing/wrap-text.ts";

/** Of a terminal whose height is not known: a picture that is taller than it could not be taken back. */
const shownSteps = 5;
const shownHistory = 3;
const barCells = 20;
const usualColumns = 100;

/** Lines, none wider than the terminal but for words that are. */
export function rolloutPicture(
  view: RolloutView,
  { isTerminal, columns, env }: Pick<CommandContext, "isTerminal" | "columns" | "env">,
): readonly string[] {
  const colors = createColors(isTerminal && (env["NO_COLOR"] ?? "") === "");
  // A full last column makes some terminals wrap.
  const width = isTerminal ? (columns ?? usualColumns) - 1 : undefined;
  const lines = (text: string, before = ""): string[] => wrapBehind(before, printable(text), width).split("\n");
  const paint = { Idle: colors.dim, Progressing: colors.cyan, Paused: colors.yellow } as const;
  const ended = { Completed: colors.green, Aborted: colors.red } as const;
  const color = { ...paint, ...ended }[view.phase];
  const edited = view.isEdited ? ["The resource was edited since; the next start takes what it says now."] : [];
  return [
    ...lines(`${view.name}.${view.namespace}: ${view.strategy} of ${view.host}, revision ${view.revision}`),
    ...wrapText(`${view.phase}: ${printable(view.message)}`, width, "  ")
      .split("\n")
      .map(color),
    ...edited.flatMap((text) => lines(text)),
    "",
    ...(view.isLaid ? shares(view, width) : []),
    ...stepLines(view, lines, colors),
    ...(view.metrics.length === 0 ? [] : ["", ...view.metrics.flatMap((metric) => metricLines(metric, lines, colors))]),
    ...(view.history.length === 0
      ? []
      : ["", ...view.history.slice(-shownHistory).flatMap((entry) => historyLines(entry, width).map(colors.dim))]),
  ];
}

type Colors = ReturnType<typeof createColors>;
type Wrap = (text: string, before?: string) => string[];

function shares({ stable, canary, weight, headerRoute }: RolloutView, width: number | undefined): string[] {
  const name = Math.max(stable.length, canary.length);
  const row = (version: string, percent: number): string => {
    const label = `  ${version.padEnd(name)}  ${`${percent} %`.padStart(5)}`;
    const cells = Math.round((barCells * percent) / 100);
    const bar = `  ${"█".repeat(cells)}${"░".repeat(barCells - cells)}`;
    return width !== undefined && label.length + barCells + 2 > width ? label : label + bar;
  };
  const byHeader =
    headerRoute === undefined ? [] : wrapBehind("  ", `and requests with ${headerRoute}`, width).split("\n");
  return [row(stable, 100 - weight), row(canary, weight), ...byHeader, ""];
}

function stepLines({ steps, step, phase }: RolloutView, lines: Wrap, colors: Colors): string[] {
  const first = Math.max(0, Math.min(step - Math.floor(shownSteps / 2), steps.length - shownSteps));
  const shown = steps.slice(first, first + shownSteps);
  const text = shown.flatMap((each, index) => {
    const number = first + index;
    const isNow = number === step && phase !== "Idle";
    const isDone = number < step || phase === "Completed";
    const mark = isDone ? "✓" : !isNow ? "·" : phase === "Aborted" ? "✗" : "▸";
    const [head = "", ...more] = lines(each, " ".repeat(`  ${mark} ${number + 1} `.length));
    const line = [`  ${mark} ${number + 1} ${head.trimStart()}`, ...more];
    return isNow ? line.map(colors.bold) : isDone ? line : line.map(colors.dim);
  });
  const left = steps.length - first - shown.length;
  return [
    ...(first > 0 ? [colors.dim(`    ${first} before`)] : []),
    ...text,
    ...(left > 0 ? [colors.dim(`    ${left} more`)] : []),
  ];
}

function metricLines(metric: RolloutMetricView, lines: Wrap, colors: Colors): string[] {
  const { name, place, good, bad, count, failureLimit, last, waiting } = metric;
  const wanted = count === undefined ? "" : ` of ${count}`;
  const limit = failureLimit === 0 ? "" : ` (${failureLimit} borne)`;
  const where = place === "background" ? ", beside the steps" : "";
  const head = lines(`${name}${where}: ${good}${wanted} good, ${bad} bad${limit}`, "  ");
  const color = last?.isGood === false ? colors.red : colors.green;
  return [
    ...head,
    ...(last === undefined ? [] : lines(last.text, "    ").map(color)),
    ...(waiting === undefined ? [] : lines(waiting, "    ").map(colors.yellow)),
  ];
}

function historyLines({ at, text }: RolloutView["history"][number], width: number | undefined): string[] {
  return wrapBehind("  ", `${at.slice(11, 19)}Z  ${printable(text)}`, width, "  ").split("\n");
}
