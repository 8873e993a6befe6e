// `npm run bench`: each row of the table below is a scenario; they run one after the other, since the cores are what is
// measured. `--only NAME`, `--rounds N`, `--seconds N` (load in a round), `--json` (everything measured), `--proxies
// Envoy,Tulle` (which of those built in), `--also NAME=COMMAND` (one more), `--compare COMMIT` (this tree beside a
// commit, CPU alone), `--help`.
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { measureAuthorizationServer } from "./authorization-server/measure-authorization-server.ts";
import { measureCaptured } from "./captured/measure-captured.ts";
import { compareCommits, comparisonTable } from "./compare-commits.ts";
import { measureDns } from "./dns/measure-dns.ts";
import { measureBodies } from "./one-proxy/measure-bodies.ts";
import { measureObservability, measureSteadyObservability } from "./one-proxy/measure-observability.ts";
import { measureGrpc, measureHttp1, measureHttp2 } from "./one-proxy/measure-requests.ts";
import { measureHandshakes } from "./handshakes/measure-handshakes.ts";
import { measureIdle, measureIdleHttp2 } from "./idle/measure-idle.ts";
import { measureUpgrade } from "./mesh/measure-upgrade.ts";
import { measureKubernetes } from "./kubernetes/measure-kubernetes.ts";
import { measureMtls, measureMtlsGrpc, measureMtlsHttp2 } from "./mtls/measure-mtls.ts";
import { measurePush } from "./push/measure-push.ts";
import { measurePolicies } from "./policies/measure-policies.ts";
import { measureRest } from "./rest/measure-rest.ts";
import type { Scenario, ScenarioResult } from "./scenario.ts";
import { measureStats } from "./stats/measure-stats.ts";
import { ownTree } from "./tree.ts";
import { measureNamespaces, measureUpToReady } from "./up-to-ready.ts";

const scenarios: readonly Scenario[] = [
  {
    name: "http1",
    summary: "HTTP/1.1, 1 KB answers, 64 keep-alive connections, access log on, one core",
    run: measureHttp1,
    isCompared: true,
  },
  {
    name: "http2",
    summary: "HTTP/2 on both sides, 1 KB answers, 8 streams on each of 8 connections, access log on, one core",
    run: measureHttp2,
    isCompared: true,
  },
  {
    name: "grpc",
    summary: "gRPC, messages of 100 bytes both ways, 8 calls on each of 8 connections, access log on, one core",
    run: measureGrpc,
    isCompared: true,
  },
  {
    name: "bodies",
    summary: "bodies of 1 MiB and streams of messages, 16 at a time, access log on, one core",
    run: measureBodies,
    isCompared: true,
  },
  {
    name: "tracing",
    summary: "what logs, metrics and traces add to a request of HTTP/1.1, one core",
    run: measureObservability,
    isCompared: true,
  },
  {
    name: "tracing-steady",
    summary: "the same at 6,400 requests a second, a fifth of full load or less",
    run: measureSteadyObservability,
    isCompared: true,
  },
  {
    name: "mtls",
    summary: "two sidecars with mutual TLS 1.3, one policy and one token, the same xDS, access log on, one core",
    run: measureMtls,
    isCompared: true,
  },
  {
    name: "mtls-http2",
    summary: "the same pair with HTTP/2 from end to end, one policy and no token",
    run: measureMtlsHttp2,
    isCompared: true,
  },
  {
    name: "mtls-grpc",
    summary: "the same pair with gRPC calls, one policy and no token",
    run: measureMtlsGrpc,
    isCompared: true,
  },
  {
    name: "upgrade",
    summary: "HTTP/1.1 of applications, between two sidecars as it is and as streams of HTTP/2",
    run: measureUpgrade,
    isCompared: true,
  },
  {
    name: "handshakes",
    summary: "mutual TLS 1.3 handshakes of a server's sidecar, the same xDS, one core",
    run: measureHandshakes,
    isCompared: true,
  },
  {
    name: "captured",
    summary: "connections that the kernel leads to a proxy, new and kept, beside those to its own address; takes root",
    run: measureCaptured,
    isCompared: false,
  },
  {
    name: "dns",
    summary: "DNS answers of the mesh: A over UDP, a table of 1,000 names, 32 questions at a time, one core",
    run: measureDns,
    isCompared: false,
  },
  {
    name: "policies",
    summary: "what 1,000 rules of AuthorizationPolicy add to a request of the same pair",
    run: measurePolicies,
    isCompared: true,
  },
  {
    name: "idle",
    summary: "memory with 10,000 idle keep-alive connections",
    run: measureIdle,
    isCompared: false,
  },
  {
    name: "idle-http2",
    summary: "memory with 10,000 idle connections of HTTP/2",
    run: measureIdleHttp2,
    isCompared: false,
  },
  {
    name: "push",
    summary: "a push of 10,000 routes under 2,000 requests/s",
    run: measurePush,
    isCompared: false,
  },
  {
    name: "stats",
    summary: "scrapes of 10,000 series under 2,000 requests/s",
    run: measureStats,
    isCompared: false,
  },
  {
    name: "authorization-server",
    summary: "a whole code flow on the authorization server and on node-oidc-provider, one core",
    run: measureAuthorizationServer,
    isCompared: true,
  },
  {
    name: "rest",
    summary: "the sample shop while nobody asks: memory of a sidecar, CPU and wake-ups of every process",
    run: measureRest,
    isCompared: false,
  },
  { name: "up", summary: "tulle up samples/shop until Ready", run: measureUpToReady, isCompared: false },
  {
    name: "namespaces",
    summary: "ten pods until Ready, in networks of their own and in loopback mode; takes root",
    run: measureNamespaces,
    isCompared: false,
  },
  {
    name: "kubernetes",
    summary: "a cluster's control plane, its webhook, and what a sidecar adds to a pod's start; takes root and Go",
    run: measureKubernetes,
    isCompared: false,
  },
];

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string" },
    proxies: { type: "string" },
    json: { type: "boolean", default: false },
    also: { type: "string", multiple: true, default: [] },
    compare: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  process.stdout
    .write(`npm run bench -- [--only SCENARIO] [--rounds 5] [--seconds 4] [--proxies Envoy,Tulle] [--also NAME=COMMAND] [--json]
       npm run bench -- --compare COMMIT [--only SCENARIO] [--rounds 5] [--seconds 12] [--json]

Scenarios, one after the other:
${scenarios.map(({ name, summary }) => `  ${name.padEnd(22)}${summary}`).join("\n")}
`);
  process.exit(0);
}

const chosen = scenarios.filter((scenario) => values.only === undefined || scenario.name === values.only);
if (chosen.length === 0)
  throw new Error(`no scenario ${values.only}; there are ${scenarios.map(({ name }) => name).join(", ")}`);
const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryBytes: totalmem(),
  node: process.version,
};
const progress = (text: string): void => void process.stderr.write(`${text}\n`);
if (values.compare !== undefined) {
  const comparison = await compareCommits(chosen, values.compare, {
    starts: positiveInteger("rounds", values.rounds),
    seconds: positiveInteger("seconds", values.seconds ?? "12"),
    progress,
  });
  const { rows } = comparison;
  process.stdout.write(
    values.json ? `${JSON.stringify({ machine, rows }, null, 2)}\n` : `\n${comparisonTable(comparison)}\n`,
  );
  process.exit(0);
}
const options = {
  rounds: positiveInteger("rounds", values.rounds),
  seconds: positiveInteger("seconds", values.seconds ?? "4"),
  atOnce: false,
  trees: [ownTree],
  proxies: values.proxies?.split(","),
  also: values.also.map(parseContestant),
  progress,
};

const results: (ScenarioResult & { readonly name: string })[] = [];
for (const { name, summary, run } of chosen) {
  options.progress(`── ${name}: ${summary}`);
  const result = await run(options);
  results.push({ name, ...result });
  if (!values.json) process.stdout.write(`\n## ${summary}\n\n${result.markdown}\n`);
}
if (values.json) {
  process.stdout.write(
    `${JSON.stringify({ machine, results: results.map(({ name, data }) => ({ name, data })) }, null, 2)}\n`,
  );
} else {
  process.stdout.write(
    `\nOn ${machine.cores} cores of ${machine.cpu}, Node ${machine.node}; medians of ${options.rounds} rounds.\n`,
  );
}

function positiveInteger(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`--${name} takes a whole number from 1 on, not "${text}"`);
  return number;
}

/** `NAME=COMMAND`, where the command's `{listen}` and `{upstream}` are ports of 127.0.0.1. */
function parseContestant(text: string): { name: string; command: readonly string[] } {
  const at = text.indexOf("=");
  if (at < 1) throw new Error(`--also takes NAME=COMMAND, not "${text}"`);
  return { name: text.slice(0, at), command: text.slice(at + 1).split(" ") };
}
