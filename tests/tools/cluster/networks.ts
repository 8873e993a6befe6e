// The cluster's networks: one wire with both nodes on it, and beside them the place where tests run. All of it lies in
// the namespaces of the process that calls, and ends with them.
import { lastLines, runCommand } from "../run-command.ts";
import { nodes, outside, type NodePlace } from "./addresses.ts";

const bridge = "wire";

/** Prefix lengths of the wire's two ranges. */
const prefixes = ["24", "64"] as const;

export async function makeNetworks(): Promise<void> {
  await ip(["link", "set", "lo", "up"]);
  await ip(["link", "add", bridge, "type", "bridge"]);
  for (const [family, address] of outside.entries()) await ip(addressOf(`${address}/${prefixes[family]}`, bridge));
  await ip(["link", "set", bridge, "up"]);
  for (const each of nodes) await makeNode(each);
  // Who is no pod answers pods, as a machine beside a cluster does.
  for (const { addresses, podRanges } of nodes) {
    for (const [family, range] of podRanges.entries()) await ip(["route", "add", range, "via", addresses[family]!]);
  }
}

async function makeNode(node: NodePlace): Promise<void> {
  const { name } = node;
  await ip(["netns", "add", name]);
  await ip(["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name]);
  await ip(["link", "set", name, "master", bridge, "up"]);
  const within = ["-n", name];
  await ip([...within, "link", "set", "lo", "up"]);
  for (const [family, address] of node.addresses.entries()) {
    await ip([...within, ...addressOf(`${address}/${prefixes[family]}`, "eth0")]);
  }
  await ip([...within, "link", "set", "eth0", "up"]);
  // To the world outside, which ends there; Kubernetes' programs look for it to learn their own address.
  for (const address of outside) await ip([...within, "route", "add", "default", "via", address]);
  for (const other of nodes.filter((each) => each !== node)) {
    for (const [family, range] of other.podRanges.entries()) {
      await ip([...within, "route", "add", range, "via", other.addresses[family]!]);
    }
  }
  const settings = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"];
  await mustRun("nsenter", [`--net=/run/netns/${name}`, "sysctl", "-qw", ...settings]);
}

const addressOf = (address: string, device: string): readonly string[] => [
  "address",
  "add",
  address,
  "dev",
  device,
  // Nobody else is on the wire; a first packet need not wait until that is found out.
  ...(address.includes(":") ? ["nodad"] : []),
];

const ip = (args: readonly string[]): Promise<void> => mustRun("ip", args);

async function mustRun(command: string, args: readonly string[]): Promise<void> {
  const result = await runCommand(command, args);
  if (result.code !== 0) throw new Error(`${command} ${args.join(" ")}: ${lastLines(result)}`);
}
