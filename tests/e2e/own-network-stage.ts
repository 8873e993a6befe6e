// Runs a strict shop in a network namespace of its own, where a test may do to the network what it likes: started by
// `unshare --net`, it lets a foreign program try everything and prints what came of it as JSON. All that it makes ends
// with it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { envoyPath } from "../tools/envoy-path.ts";
import { NetworkNamespace } from "../tools/network-namespace.ts";
import { startProcess, waitFor } from "../tools/processes.ts";
import type { Knowledge, Outcomes } from "./foreign-user-program.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";
import { gatherKnowledge, nobody, startStrictShop } from "./strict-shop.ts";

export interface StageResult {
  readonly outcomes: Outcomes;
  /** Tables of nftables: while the mesh runs, and when its supervisor has been killed. */
  readonly tables: readonly [during: string, afterwards: string];
  /**
   * What came of the owner's requests to another user's listener: at all of the machine's addresses, asked at one that
   * is not the mesh's and at one that is.
   */
  readonly squatted: Outcomes;
}

const meshAddress = "10.77.0.1";
const foreignAddress = "10.77.0.2";
/** Of every pod with a proxy; inbound traffic would be at 15006 under redirection. */
const podPorts = [15_000, 15_001, 15_006, 15_007, 15_020, 15_021];
const controlPlanePorts = [15_010, 15_012, 15_014];
const program = path.join(import.meta.dirname, "foreign-user-program.ts");
/** A caller, two that are called and a gateway have every kind of address. */
const without = ["productpage.yaml"];

const home = NetworkNamespace.current();

/** Every address of the shop where something may listen: pods, their applications, the control plane. */
async function portsOf(shop: ShopInstance, knowledge: Knowledge): Promise<readonly string[]> {
  const [controlPlane] = knowledge.xdsAddresses.map((at) => at.replace(/:\d+$/, ""));
  const ports = controlPlanePorts.map((port) => `${controlPlane}:${port}`);
  for (const { address, app } of await shop.pods()) {
    ports.push(...podPorts.map((port) => `${address}:${port}`));
    if (app !== null) ports.push(`${app.address}:${app.port}`, `${address}:${app.port}`);
  }
  return ports;
}

async function knowledgeOf(shop: ShopInstance): Promise<Knowledge> {
  const knowledge = await gatherKnowledge(shop, await shop.pod("catalog-v1"), await shop.pod("webapp"));
  return { ...knowledge, ports: await portsOf(shop, knowledge) };
}

async function outcomesOf(command: readonly string[], knowledge: Knowledge): Promise<Outcomes> {
  const [first, ...rest] = [...command, process.execPath, program];
  await using started = await startProcess(first, rest, {
    name: "a foreign program",
    input: JSON.stringify(knowledge),
  });
  const [line] = await started.waitForOutput(/^\{.*\}$/m);
  return JSON.parse(line) as Outcomes;
}

/** With a cable to this one; it sends here what it has for any address, loopback included. */
async function foreignNetwork(): Promise<NetworkNamespace> {
  const there = await NetworkNamespace.create();
  await home.connect(there, "cable");
  await home.mustRun("ip", "address", "add", `${meshAddress}/24`, "dev", "cable");
  await there.mustRun("ip", "address", "flush", "dev", "lo");
  await there.mustRun("ip", "address", "add", `${foreignAddress}/24`, "dev", "cable");
  await there.mustRun("ip", "route", "add", "default", "via", meshAddress);
  await there.mustRun("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/cable/route_localnet");
  await there.mustRun("ip", "route", "add", "127.0.0.0/8", "via", meshAddress, "src", foreignAddress);
  assert.match(await there.mustRun("ip", "route", "get", "127.0.0.1"), new RegExp(`via ${meshAddress} dev cable`));
  return there;
}

/** The foreign program is in a network of its own, with a way here. */
async function tryFromAnotherNetwork(): Promise<StageResult> {
  await using shop = await startStrictShop({ without });
  using there = await foreignNetwork();
  const witness = createServer((_request, response) => response.end("here"));
  try {
    await new Promise<void>((resolve) => {
      witness.listen(0, meshAddress, resolve);
    });
    const knowledge = await knowledgeOf(shop);
    const here = (at: string): string => at.replace(/^.*:/, `${meshAddress}:`);
    const outcomes = await outcomesOf(there.enter, {
      ...knowledge,
      xdsAddresses: [...knowledge.xdsAddresses, ...knowledge.xdsAddresses.map(here)],
      workloads: [...knowledge.workloads, ...knowledge.workloads.map(here)],
      ports: [
        ...new Set([...knowledge.ports, ...knowledge.ports.map(here)]),
        `${meshAddress}:${(witness.address() as AddressInfo).port}`,
      ],
    });
    return { outcomes, tables: ["", ""], squatted: {} };
  } finally {
    witness.close();
  }
}

/**
 * Another user listens where a pod may be called. `cookies` are what a listener that is flooded accepts by; the kernel
 * can be told to use them always, and its answers then belong to no socket.
 */
async function tryToAnswer(controlPlane: string): Promise<Outcomes> {
  const inMesh = controlPlane.replace(/\d+$/, "200");
  const squat = path.join(import.meta.dirname, "squatter.ts");
  const port = 7999;
  await using squatter = await startProcess(process.execPath, [squat, String(nobody), "0.0.0.0", String(port)]);
  await squatter.waitForOutput(/^listens$/m);
  const ask = async (at: string, name: string): Promise<string> => {
    const request = httpRequest(`http://${at}:${port}/${name}`, { timeoutMs: 1500 });
    const asked = `asked GET /${name}\n`;
    const isAnswered = await request.then(
      () => true,
      () => false,
    );
    if (isAnswered) await waitFor(() => squatter.output().includes(asked), { what: asked });
    return `${isAnswered ? "answered" : "no answer"}, ${squatter.output().includes(asked) ? "received" : "not received"}`;
  };
  const outcomes: Record<string, string> = {
    elsewhere: await ask("127.0.0.1", "elsewhere"),
    mesh: await ask(inMesh, "mesh"),
  };
  await home.mustRun("sysctl", "-w", "net.ipv4.tcp_syncookies=2");
  outcomes["elsewhere by cookies"] = await ask("127.0.0.1", "elsewhere-by-cookies");
  outcomes["mesh by cookies"] = await ask(inMesh, "mesh-by-cookies");
  return outcomes;
}

/** The foreign program is in the mesh's own network, and the mesh keeps other users out. */
async function tryOwnUserOnly(): Promise<StageResult> {
  const env = { TULLE_ENVOY: await envoyPath() };
  await using shop = await startStrictShop({ args: ["--own-user-only", "--proxy", "envoy"], env, without });
  const knowledge = await knowledgeOf(shop);
  const outcomes = await outcomesOf([], { ...knowledge, ports: [...knowledge.ports, `127.0.0.1:${shop.port}`] });
  const during = await home.mustRun("nft", "list", "ruleset");
  const squatted = await tryToAnswer(knowledge.xdsAddresses[0]!.replace(/:\d+$/, ""));
  // Nobody is asked to clean up.
  shop.up.kill("SIGKILL");
  const tables = async (): Promise<string> => (await home.mustRun("nft", "list", "tables")).trim();
  const afterwards = await waitFor(async () => (await tables()) === "" && "none", { what: "the table to go" });
  return { outcomes, tables: [during, afterwards], squatted };
}

const stages = { "another-network": tryFromAnotherNetwork, "own-user-only": tryOwnUserOnly };

await home.mustRun("ip", "link", "set", "lo", "up");
const result = await stages[process.argv[2] as keyof typeof stages]();
process.stdout.write(`${JSON.stringify(result)}\n`);
