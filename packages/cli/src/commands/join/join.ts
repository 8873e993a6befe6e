// `tulle join`: makes this machine one of a mesh, once by a token and ever after by its certificate, and runs its agent
// until it is told to stop.
import os from "node:os";
import path from "node:path";
import { type Command, Option } from "commander";
import { joinMachine, machineCertificate, type MachineIdentity, readMachine } from "@tulle/agent/machine";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { asOwnerOf, folderOwner, giveFolder } from "../../machine/folder-owner.ts";
import { runMachine } from "./run-machine.ts";
import { installUnit, unitText } from "./systemd-unit.ts";
import { readToken, type TokenOptions } from "./read-token.ts";

interface Options extends TokenOptions {
  readonly state: string;
  readonly address?: string;
  readonly hostname: string;
  readonly capture?: boolean;
  readonly excludeInboundPorts: string;
  readonly dns?: boolean;
  readonly systemd?: boolean;
  readonly printUnit?: boolean;
}

/** Istio's user of a proxy, whose connections capture leaves alone. */
const proxyUser = 1337;

export function register(command: Command, context: CommandContext): void {
  command
    .option("--token <token>", "as tulle vm token prints it; other users of the machine see it: take the next ones")
    .option("--token-file <file>", "a file that holds it, - for standard input; TULLE_JOIN_TOKEN is the third way")
    .option("--state <folder>", "what the machine keeps of itself", "/var/lib/tulle")
    .option("--address <ip>", "where the machine is reached; from where it calls the control plane unless told")
    .option("--hostname <name>", "what listings call it", os.hostname())
    .option("--capture", "lead all connections of the machine through its proxy (root, nftables)")
    .option("--exclude-inbound-ports <ports>", "with --capture: ports that are left alone", "22,15020,15021,15090")
    .option("--dns", "answer questions for names of the mesh at localhost:15053; --capture does, and leads them there")
    .option("--systemd", "write and start a unit that does this at each start of the machine, and end")
    .addOption(new Option("--print-unit", "print that unit, and end"));
  addExamples(command, [
    ["tulle join --token-file token", "join, and run until Ctrl-C"],
    ["tulle join", "run again: its certificate says who it is"],
    ["tulle join --token-file token --capture --systemd", "as a service, for all programs of the machine"],
  ]);
  command.action((options: Options) => join(options, context));
}

async function join(options: Options, context: CommandContext): Promise<void> {
  const stateFolder = path.resolve(context.cwd, options.state);
  const isCaptured = options.capture === true;
  if (isCaptured && process.geteuid?.() !== 0) {
    throw new CommandFailure("--capture takes root: it changes the machine's network", { exitCode: exitCodes.usage });
  }
  const unit = { stateFolder, options: unitOptions(options) };
  if (options.printUnit === true) {
    context.stdout(unitText(unit));
    return;
  }
  if (isCaptured) giveFolder(stateFolder, proxyUser);
  checkOwner(stateFolder, isCaptured ? proxyUser : process.geteuid?.());
  const machine = await asOwnerOf(stateFolder, () => knownOrJoined(stateFolder, options, context));
  context.stdout(`${machine.name}.${machine.namespace}, of the group ${machine.group}, at ${machine.controlPlane}\n`);
  if (options.systemd === true) {
    await installUnit(unit);
    context.stdout("It runs as tulle.service: systemctl status tulle\n");
    return;
  }
  await runMachine({
    machine,
    stateFolder,
    address: options.address,
    capture: isCaptured ? { user: proxyUser, excludeInboundPorts: options.excludeInboundPorts } : undefined,
    answersDns: isCaptured || options.dns === true,
    context,
  });
}

/** The agent would refuse it at each of its starts, after the token is used. */
function checkOwner(stateFolder: string, agentUser: number | undefined): void {
  const owner = folderOwner(stateFolder);
  if (owner === undefined || owner === agentUser) return;
  throw new CommandFailure(`${stateFolder} belongs to user ${owner}, and the agent would run as user ${agentUser}`, {
    hint:
      "Join as before, with --capture or without; or run tulle leave and remove that folder first, " +
      "or name another one by --state.",
  });
}

/** By what is kept, or else by the token. */
async function knownOrJoined(stateFolder: string, options: Options, context: CommandContext): Promise<MachineIdentity> {
  const known = readMachine(stateFolder);
  const found = known && (await machineCertificate(stateFolder));
  if (known !== undefined && found !== undefined && "certificate" in found) return known;
  const token = await readToken(options, context);
  if (token === undefined) {
    const why =
      known === undefined ? "this machine has not joined" : `${known.name} has to join again: ${reasonOf(found)}`;
    throw new CommandFailure(why, {
      hint: "Make a token beside the control plane (tulle vm token), and give it by --token-file.",
      exitCode: exitCodes.usage,
    });
  }
  const { hostname, address } = options;
  const joined = await joinMachine({ token, stateFolder, hostname, address });
  if (!joined.ok) throw new CommandFailure(`this machine cannot join: ${joined.reason}`);
  return joined.machine;
}

function reasonOf(found: Awaited<ReturnType<typeof machineCertificate>> | undefined): string {
  return found !== undefined && "reason" in found ? found.reason : "";
}

/** What the unit is started with: all but the token. */
function unitOptions({ address, capture, dns, excludeInboundPorts }: Options): readonly string[] {
  return [
    ...(address === undefined ? [] : ["--address", address]),
    ...(capture === true ? ["--capture", "--exclude-inbound-ports", excludeInboundPorts] : []),
    ...(dns === true ? ["--dns"] : []),
  ];
}
