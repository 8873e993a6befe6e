// `tulle capture install`: the options of istio-iptables, by its letters, so that a template that starts the one starts
// the other.
import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import {
  addPassthroughAddress,
  type AnnotationProblem,
  captureRules,
  type CaptureSettingName,
  type CaptureSettings,
  installCapture,
  nameserversIn,
  parseAnnotationsFile,
  planOfAnnotations,
  removeCapture,
} from "@tulle/capture";
import type { CommandContext } from "../../command/command-module.ts";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import { optionName } from "../../command/command-options.ts";
import { withCaptureFailures } from "../../command/capture-failures.ts";
import { proxyIsReady, type Waiting, waitOption } from "../../command/wait-for-proxy.ts";

/** Each sets what its long name says; `summary` ends with the default. */
const settings = [
  ["-p", "outbound-port", "port", "where the proxy takes what programs send (15001)"],
  ["-z", "inbound-port", "port", "where the proxy takes what comes in (15006)"],
  ["-e", "tunnel-port", "port", "port of the proxy's own, left as it is (15008)"],
  ["-u", "proxy-uid", "uids", "users whose connections are the proxy's own, and left alone (1337)"],
  ["-g", "proxy-gid", "gids", "groups likewise (the same numbers as the users)"],
  ["-b", "include-inbound-ports", "ports", 'ports whose callers are captured; "*" for all, "" for none (*)'],
  ["-d", "exclude-inbound-ports", "ports", "where all are: but not these (15020,15021,15090)"],
  ["-i", "include-outbound-ip-ranges", "ip", 'captured destinations; "*" for all, "" for none (*)'],
  ["-x", "exclude-outbound-ip-ranges", "ip", "destinations that are not captured"],
  ["-q", "include-outbound-ports", "ports", "ports that are captured whatever -i says"],
  ["-o", "exclude-outbound-ports", "ports", "ports of destinations that are not captured"],
  ["-c", "exclude-interfaces", "names", "network interfaces where nothing is captured"],
  ["-k", "virtual-interfaces", "names", "interfaces of virtual machines, whose callers count as programs of the pod"],
] as const;

interface Options extends Waiting, Omit<CaptureSettings, "dns" | "nameservers"> {
  readonly redirectDns?: boolean;
  readonly captureAllDns?: boolean;
  readonly annotations?: string;
  readonly dryRun?: boolean;
}

export function registerInstall(command: Command, context: CommandContext): void {
  for (const [letter, name, value, summary] of settings) command.option(`${letter}, --${name} <${value}>`, summary);
  command.addOption(
    new Option("-m, --mode <mode>", "how connections reach the proxy (REDIRECT)").choices(["REDIRECT", "TPROXY"]),
  );
  command.option("--redirect-dns", "questions to the servers of /etc/resolv.conf go to the port of --dns-port");
  command.option("--capture-all-dns", "questions to any server do");
  command.option("--dns-port <port>", "where questions go (15053)");
  command.option("--annotations <file>", "a pod's annotations, as a downwardAPI volume has them; options come first");
  command.option("-n, --dry-run", "print the rules and change nothing");
  command.addOption(waitOption("then wait so long, or fail, until the pod's proxy is ready"));
  command.action(async ({ redirectDns, captureAllDns, annotations, dryRun, waitForProxy, ...texts }: Options) => {
    const { plan, problems } = planOfAnnotations(annotations === undefined ? {} : await readAnnotations(annotations), {
      ...texts,
      dns: captureAllDns === true ? "all" : redirectDns === true ? "resolvers" : undefined,
      nameservers: redirectDns === true ? await nameservers() : [],
    });
    if (plan === undefined) throw refusal(problems);
    if (plan === "none") {
      context.stdout("Nothing is captured: the pod's interceptionMode is NONE.\n");
      if (dryRun !== true) await withCaptureFailures(() => removeCapture());
    } else if (dryRun === true) context.stdout(captureRules(plan));
    else await withCaptureFailures(() => installCapture(plan).then(() => addPassthroughAddress()));
    if (waitForProxy !== undefined && dryRun !== true) await proxyIsReady(waitForProxy);
  });
}

async function readAnnotations(file: string): Promise<Readonly<Record<string, string>>> {
  try {
    return parseAnnotationsFile(await readFile(file, "utf8"));
  } catch (error) {
    throw new CommandFailure(`${file}: ${(error as Error).message}`, { exitCode: exitCodes.usage });
  }
}

async function nameservers(): Promise<readonly string[]> {
  return nameserversIn(await readFile("/etc/resolv.conf", "utf8").catch(() => ""));
}

function refusal(problems: readonly AnnotationProblem[]): CommandFailure {
  const lines = problems.map(({ place, message }) => {
    return `${"annotation" in place ? place.annotation : optionOf(place.setting)} ${message}`;
  });
  return new CommandFailure(lines.join("\n"), { exitCode: exitCodes.usage });
}

function optionOf(setting: CaptureSettingName): string {
  return `--${setting === "dns" ? "redirect-dns" : optionName(setting)}`;
}
