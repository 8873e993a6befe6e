// Every command that shows something, on terminals of three widths, against a shop that runs. Commands are found by
// their table: a new one has to say here how it is typed, or why not.
import assert from "node:assert/strict";
import { Command } from "commander";
import { exitCodes } from "../command/command-failure.ts";
import { chooseInstance } from "../instance/choose-instance.ts";
import type { CommandContext } from "../command/command-module.ts";
import { commands } from "../commands.ts";
import { processContext } from "../process-context.ts";
import { runCli } from "../run-cli.ts";
import { textWidth } from "../printing/text-width.ts";

const base = processContext();

/** `POD` and `OTHER` stand for pods, `SHOP` for the folder. */
const typed: Readonly<Record<string, readonly string[] | { readonly not: string }>> = {
  up: { not: "up-progress.test.ts" },
  down: { not: "it would end the shop" },
  pods: ["pods"],
  logs: { not: "lines are the programs' own" },
  exec: { not: "what it shows is the command's own" },
  apply: ["apply -f SHOP/catalog.yaml"],
  delete: { not: "a line that names what it was given" },
  "rollout start": { not: "a line that names what it was given" },
  "rollout pause": { not: "a line that names what it was given" },
  "rollout resume": { not: "a line that names what it was given" },
  "rollout promote": { not: "a line that names what it was given" },
  "rollout abort": { not: "a line that names what it was given" },
  "rollout watch": { not: "rollouts.test.ts" },
  "rollout history": { not: "rollouts.test.ts" },
  "rollout restart": { not: "a line that names what it was given" },
  "rollout status": ["rollout status webapp"],
  changes: ["changes"],
  get: ["get pods -A", "get svc,eps,deploy -A", "get vs,dr,gw,ra,ap,pa,sa,ns -A"],
  analyze: ["analyze", "analyze SHOP"],
  "proxy-status": ["proxy-status", "proxy-status POD"],
  "proxy-config bootstrap": { not: "JSON" },
  "proxy-config cluster": ["proxy-config cluster POD"],
  "proxy-config endpoint": ["proxy-config endpoint POD"],
  "proxy-config listener": ["proxy-config listener POD"],
  "proxy-config log": ["proxy-config log POD"],
  "proxy-config route": ["proxy-config route POD"],
  "proxy-config secret": ["proxy-config secret POD"],
  "proxy-config rootca-compare": ["proxy-config rootca-compare POD OTHER"],
  "authz check": ["authz check POD"],
  "x describe pod": ["x describe pod POD"],
  "x describe service": ["x describe service webapp.shop"],
  "x prometheus-config": { not: "YAML" },
  "x check-inject": ["x check-inject POD", "x check-inject deploy/webapp"],
  "x wait": ["x wait"],
  "x authz check": ["x authz check POD"],
  "ca show": ["ca show"],
  "ca rotate-root": { not: "it would take the shop's root away" },
  "capture install": { not: "it changes the machine's own network" },
  "capture remove": { not: "the same" },
  cni: { not: "it runs until it is ended" },
  "capture validate": { not: "it prints nothing" },
  "capture show": { not: "it needs a network namespace of its own" },
  install: { not: "it takes a cluster: tests/kubernetes" },
  upgrade: { not: "the same" },
  uninstall: { not: "the same" },
  precheck: { not: "the same" },
  check: { not: "the same" },
  "manifest generate": { not: "YAML" },
  "tag set": { not: "it takes a cluster" },
  "tag list": { not: "the same" },
  "tag remove": { not: "the same" },
  "vm token": { not: "it is no table, and nothing is joined here" },
  "vm list": ["vm list"],
  "vm revoke": { not: "a line that names what it was given" },
  "vm remove": { not: "a line that names what it was given" },
  "vm audit": ["vm audit"],
  inject: { not: "manifests, and long names" },
  join: { not: "it runs until it is ended" },
  leave: { not: "machines.long.test.ts" },
  "control-plane": { not: "it runs until it is ended" },
  "agent wait": { not: "it prints nothing" },
  proxy: { not: "it runs until it is ended" },
  version: ["version"],
};
const ofTheAuthorizationServer = /^auth /;

export interface RunningShop {
  readonly folder: string;
  readonly pod: string;
  readonly other: string;
}

export async function checkCommandsOnTerminals({ folder, pod, other }: RunningShop): Promise<void> {
  const known = (await leaves()).filter((name) => !ofTheAuthorizationServer.test(name));
  assert.deepEqual(known.toSorted(), Object.keys(typed).toSorted(), "each command says how it is typed");
  const words: Readonly<Record<string, string>> = { POD: pod, OTHER: other, SHOP: folder };
  for (const line of Object.values(typed).flatMap((each) => ("not" in each ? [] : each))) {
    const args = line.split(" ").map((arg) => arg.replace(/^[A-Z]+/, (word) => words[word] ?? word));
    for (const columns of [40, 80, 120]) await checkWidth(folder, args, columns);
  }
}

async function checkWidth(dir: string, args: readonly string[], columns: number): Promise<void> {
  let text = "";
  const take = (part: string): void => void (text += part);
  const env = { NO_COLOR: "1" };
  const context = Object.assign(Object.create(base) as CommandContext, {
    env,
    cwd: dir,
    isTerminal: true,
    instance: () => chooseInstance({ dir, env, cwd: dir }),
    stdout: take,
    stderr: take,
  });
  Object.defineProperty(context, "columns", { value: columns });
  const code = await runCli(args, context);
  const called = `tulle ${args.join(" ")} in ${columns} columns`;
  assert.ok(code === exitCodes.ok || code === exitCodes.findings, `${called}: ${text}`);
  assert.notEqual(text, "", called);
  // A word that is too long is told whole, on a line of its own.
  const wide = text.split("\n").filter((line) => textWidth(line) > columns && /\S\s+\S/.test(line));
  assert.deepEqual(wide, [], called);
}

/** What can be typed, by the table: commands without commands below them. */
async function leaves(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const row of commands) {
    const command = new Command(row.name);
    (await row.load()).register(command, {} as CommandContext);
    const walk = (each: Command, name: string): void => {
      if (each.commands.length === 0) found.push(name);
      for (const below of each.commands) walk(below, `${name} ${below.name()}`);
    };
    walk(command, row.name);
  }
  return found;
}
