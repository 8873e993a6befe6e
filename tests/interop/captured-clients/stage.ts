// A captured workload, the one that it calls, and a machine outside of the mesh, on one bridge: runs programs that know
// nothing of a mesh, and prints what they printed, and what went over the bridge, as JSON.
import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { bridge, CapturedMesh, type CapturedPod, proxyGroup } from "../../tools/captured-mesh.ts";
import { testCertificate } from "../../tools/certificates.ts";
import type { ProxyKind } from "../../tools/meshed-proxies.ts";
import { type CapturedConnection, PacketCapture } from "../../tools/packet-capture.ts";
import { type CommandResult, lastLines, runCommand } from "../../tools/run-command.ts";
import { waitFor } from "../../tools/processes.ts";
import { negotiatedVersion, tlsRecords } from "../../tools/tls-records.ts";
import { type ForeignCall, foreignCalls, type ForeignPrograms, forbiddenCalls, plainCalls } from "./calls.ts";
import { client as clientIps, outside as outsideHosts, server as serverIps, services } from "./destinations.ts";

/** What the stage prints. */
export interface ForeignOutcome {
  readonly printed: Readonly<Record<string, readonly string[]>>;
  /** Of each connection between the two sidecars where it goes to, and what is wrong with it. */
  readonly between: readonly (readonly [to: string, fault: string])[];
  /** Connections of the captured workload to the machine outside in which a request can be read. */
  readonly readableOutside: number;
}

const ports = [
  { name: "http", port: 80, targetPort: 8080 },
  { name: "grpc", port: 9000, targetPort: 9000 },
  { name: "tcp-postgresql", port: 5432, targetPort: 5432 },
  // Whose protocol the sidecars have to find out.
  { name: "cache", port: 6379, targetPort: 6379 },
];
const serviceOf = (family: "four" | "six"): object[] => [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: family, namespace: "shop" },
    spec: { clusterIP: services[family].address, selector: { app: "server" }, ports },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: family, namespace: "shop", labels: { "kubernetes.io/service-name": family } },
    addressType: family === "four" ? "IPv4" : "IPv6",
    ports: ports.map(({ name, targetPort }) => ({ name, port: targetPort })),
    endpoints: [{ addresses: [serverIps[family]], targetRef: { kind: "Pod", name: "server", namespace: "shop" } }],
  },
];
/** Who may call the server: an account of the namespace. */
const manifests = (account: string): string =>
  [
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "server", namespace: "shop", labels: { app: "server", "security.istio.io/tlsMode": "istio" } },
      spec: { serviceAccountName: "server", containers: [{ name: "app" }] },
    },
    ...serviceOf("four"),
    ...serviceOf("six"),
    {
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: "shop" },
      spec: { mtls: { mode: "STRICT" } },
    },
    {
      apiVersion: "security.istio.io/v1",
      kind: "AuthorizationPolicy",
      metadata: { name: "callers", namespace: "shop" },
      spec: {
        selector: { matchLabels: { app: "server" } },
        rules: [{ from: [{ source: { principals: [`cluster.local/ns/shop/sa/${account}`] } }] }],
      },
    },
  ]
    .map((each) => JSON.stringify(each))
    .join("\n---\n");
const searchDomains = "shop.svc.cluster.local svc.cluster.local cluster.local";
const asProxy = ["setpriv", `--regid=${proxyGroup}`, "--clear-groups"];
const app = path.resolve(import.meta.dirname, "../../e2e/captured-app.ts");

const [clientProxy, serverProxy, programsJson] = process.argv.slice(2) as [ProxyKind, ProxyKind, string];
const programs = JSON.parse(programsJson) as ForeignPrograms;
const postgresqlFolder = path.dirname(programs.psql);
await using mesh = await CapturedMesh.open(manifests("client"));
const client = await mesh.addPod("client", [clientIps.four, clientIps.six]);
const server = await mesh.addPod("server", [serverIps.four, serverIps.six]);
const outside = await mesh.addPod("outside", [outsideHosts.four.address, outsideHosts.six.address]);
const resolverFile = path.join(mesh.folder, "resolv.conf");
// Nobody has that address: only capture leads a question to the name server beside the workload.
await writeFile(resolverFile, `nameserver 10.96.0.53\nsearch ${searchDomains}\noptions ndots:5\n`);
await chmod(mesh.folder, 0o755);
await startDatabases();
for (const [pod, httpPorts] of [
  [server, "8080,8081"],
  [outside, "80"],
] as const) {
  const { key, certificate } = await testCertificate({ names: ["DNS:server"] });
  await listens(pod, [process.execPath, app, key, certificate, httpPorts], /^listens$/m);
  await listens(pod, [programs.grpcGo, "serve", ":9000"], /^listening$/m);
  const redis = ["--port", "6379", "--bind", "0.0.0.0", "::", "--protected-mode", "no", "--save", ""];
  await listens(pod, ["redis-server", ...redis], /Ready to accept connections/);
}
await listens(outside, [process.execPath, path.join(import.meta.dirname, "outside-names.ts")], /^listens$/m);
const names = Object.fromEntries(
  Object.values(services).map(({ host, address }) => [`${host}.shop.svc.cluster.local`, address]),
);
const nameServer = [path.join(import.meta.dirname, "name-server.ts"), JSON.stringify(names)];
await listens(
  client,
  [...asProxy, process.execPath, ...nameServer, outsideHosts.four.address, searchDomains],
  /^listens$/m,
);
await mesh.startProxy(server, serverProxy);
await mesh.startProxy(client, clientProxy, { dns: "all" });

const capture = await PacketCapture.start("tcp", { networkInterface: bridge, enter: mesh.node.enter });
const printed: Record<string, readonly string[]> = {};
for (const call of foreignCalls(programs)) printed[call.name] = await linesOf(client, call);
for (const call of plainCalls(programs)) printed[call.name] = await outcomeOf(outside, call);
await mesh.setManifests(manifests("somebody-else"));
await mesh.settled();
const forbidden = forbiddenCalls(programs);
const isForbidden = async (): Promise<boolean> => (await outcomeOf(client, forbidden[0]!))[0] === "failed";
await waitFor(isForbidden, { what: "the other policy" });
for (const call of forbidden) printed[call.name] = await outcomeOf(client, call);
const connections = await capture.end();
await capture[Symbol.asyncDispose]();
const isFrom = (ips: readonly string[], end: string): boolean => ips.includes(end.slice(0, end.lastIndexOf(":")));
const written = (pod: CapturedPod): readonly string[] => pod.ips.map((ip) => (ip.includes(":") ? `[${ip}]` : ip));
const fromClient = connections.filter((each) => isFrom(written(client), each.client));
const outcome: ForeignOutcome = {
  printed,
  between: fromClient
    .filter((each) => isFrom(written(server), each.server))
    .map((each) => [each.server, faultOf(each)]),
  readableOutside: fromClient.filter(
    (each) => isFrom(written(outside), each.server) && each.fromClient?.includes("GET /curl ") === true,
  ).length,
};
process.stdout.write(`${JSON.stringify(outcome)}\n`);

/** PostgreSQL refuses to run as root, and to take a key that others may read. */
async function startDatabases(): Promise<void> {
  const folder = path.join(mesh.folder, "databases");
  await mkdir(folder);
  const asOwner = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
  const { key, certificate } = await testCertificate({ names: ["DNS:server"] });
  const files = ["server.key", "server.crt"].map((name) => path.join(folder, name));
  await writeFile(files[0]!, key, { mode: 0o600 });
  await writeFile(files[1]!, certificate);
  await mustRun("chown", "-R", "postgres:postgres", folder);
  for (const pod of [server, outside]) {
    const data = path.join(folder, pod.name);
    const options = ["-D", data, "-A", "trust", "-U", "tulle", "-E", "UTF8", "--no-sync"];
    await mustRun(...asOwner, path.join(postgresqlFolder, "initdb"), ...options);
    await writeFile(path.join(data, "pg_hba.conf"), "host all all all trust\n");
    const settings = [
      "listen_addresses=*",
      `unix_socket_directories=${data}`,
      "fsync=off",
      "ssl=on",
      `ssl_key_file=${files[0]}`,
      `ssl_cert_file=${files[1]}`,
    ].flatMap((setting) => ["-c", setting]);
    const command = [...asOwner, path.join(postgresqlFolder, "postgres"), "-D", data, ...settings];
    await listens(pod, command, /ready to accept connections/);
  }
}

async function mustRun(command = "", ...args: readonly string[]): Promise<void> {
  const result = await runCommand(command, args, { timeoutMs: 120_000 });
  if (result.code !== 0) throw new Error(`${command} ${args.join(" ")}: ${lastLines(result)}`);
}

async function listens(pod: CapturedPod, command: readonly string[], pattern: RegExp): Promise<void> {
  await (await mesh.start(pod, command, `${command.join(" ").slice(0, 60)} of ${pod.name}`)).waitForOutput(pattern);
}

/** Its lines, and what went wrong. The program asks the name server that its resolv.conf names. */
async function linesOf(pod: CapturedPod, { command }: ForeignCall): Promise<readonly string[]> {
  const { code, stdout, stderr } = await run(pod, command);
  const lines = stdout.trim().split("\n");
  return code === 0 ? lines : [...lines, `${code}: ${stderr.trim().slice(-2000)}`];
}

async function outcomeOf(pod: CapturedPod, { command }: ForeignCall): Promise<readonly string[]> {
  const { code, stdout } = await run(pod, command);
  return code === 0 ? stdout.trim().split("\n") : ["failed"];
}

function run({ network }: CapturedPod, command: string): Promise<CommandResult> {
  const script = 'mount --bind "$0" /etc/resolv.conf && exec sh -c "$1"';
  const inPod = ["--mount", "--", "sh", "-c", script, resolverFile, command];
  return runCommand("env", ["--", ...network.enter, "unshare", ...inPod], { timeoutMs: 120_000 });
}

/** Empty where it is TLS 1.3 and nothing else, both ways. */
function faultOf({ fromClient: sent, fromServer: got }: CapturedConnection): string {
  try {
    if (sent === undefined || got === undefined) return "some of its bytes were not seen";
    const [[hello], [answer]] = [tlsRecords(sent), tlsRecords(got)];
    if (hello?.type !== 22 || answer === undefined) return "no handshake";
    const version = negotiatedVersion(answer);
    return version === 0x0304 ? "" : `version ${version}`;
  } catch (error) {
    return (error as Error).message;
  }
}
