// Options and help texts that several commands share, so that they are spelled alike everywhere.
import { InvalidArgumentError, Option, type Command } from "commander";
import type { OutputFormat } from "./command-module.ts";

/** `--dir`, or `--context` and `--kubeconfig`: which running instance is meant. */
export function addInstanceOption(command: Command): Command {
  command.option(
    "--dir <folder>",
    "folder of the instance (default: TULLE_DIR, a .tulle found upwards, else the only one that runs below, or at all)",
  );
  return addClusterOptions(command);
}

export function addClusterOptions(command: Command): Command {
  return command
    .option("--context <name>", "a cluster by its context in the kubeconfig (default: the current one)")
    .option("--kubeconfig <file>", "a cluster by this kubeconfig (default: KUBECONFIG, else ~/.kube/config)");
}

/** `-o`: data for a program instead of text for people. */
export function addOutputOption(command: Command, formats: readonly OutputFormat[] = ["json", "yaml"]): Command {
  return command.addOption(new Option("-o, --output <format>", "print data instead of text").choices(formats));
}

/** Examples at the end of a command's help: command line and what it is for. */
export function addExamples(
  command: Command,
  examples: readonly (readonly [line: string, purpose: string])[],
): Command {
  const lines = examples.map(([line, purpose]) => `  # ${purpose}\n  ${line}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** For commander: a whole number in a range, with a message that says which. */
export function wholeNumber(minimum: number, maximum = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < minimum || value > maximum) {
      throw new InvalidArgumentError(
        maximum === Number.MAX_SAFE_INTEGER
          ? `It must be a whole number, ${minimum} or more.`
          : `It must be a whole number from ${minimum} to ${maximum}.`,
      );
    }
    return value;
  };
}

/** `exclude-inbound-ports`: the long option of a setting, whose values commander keeps as `excludeInboundPorts`. */
export function optionName(setting: string): string {
  return setting.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** `--workload-cert-ttl`, in milliseconds. An agent needs time to renew before the end. */
export function workloadCertTtlOption(): Option {
  return new Option("--workload-cert-ttl <duration>", "life of workloads' certificates (20s, 90m, 24h)").argParser(
    duration(10_000),
  );
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** For commander: `host:port`, an address of IPv6 in brackets. */
export function hostPort(text: string): Address {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.["v6"] ?? match?.groups?.["v4"];
  const port = Number(match?.groups?.["port"]);
  if (host === undefined || port > 65_535) throw new InvalidArgumentError("It must be <host>:<port>.");
  return { host, port };
}

export function hostPortText({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Of whoever runs a control plane. */
export function joinAddressOption(): Option {
  return new Option(
    "--join-address <host:port>",
    "where machines of other networks join, and get certificates and configuration (TLS); nowhere unless told",
  ).argParser(hostPort);
}

/** Of whoever runs a control plane; it may be given more than once. */
export function joinAdvertiseOption(): Option {
  return new Option(
    "--join-advertise <host:port>",
    "what tokens say of where to join, where machines get there another way: by a gateway, or NAT (again for more)",
  ).argParser<readonly string[] | undefined>((text, before = []) => [...before, hostPortText(hostPort(text))]);
}

/** In milliseconds. */
export function machineGraceOption(): Option {
  return new Option(
    "--machine-grace <duration>",
    "how long the WorkloadEntry of a machine that has vanished stays (default: 10s)",
  ).argParser(duration(0));
}

/** For commander: `20s`, `90m` or `24h` in milliseconds. */
export function duration(leastMs: number): (text: string) => number {
  return (text) => {
    const match = /^(\d{1,6})([smh])$/.exec(text);
    const durationMs = Number(match?.[1]) * (unitMs[match?.[2] ?? ""] ?? Number.NaN);
    if (!(durationMs >= leastMs)) {
      throw new InvalidArgumentError(`It must be at least ${leastMs / 1000}s, such as 20s, 90m or 24h.`);
    }
    return durationMs;
  };
}
