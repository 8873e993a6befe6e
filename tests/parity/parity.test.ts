// Tulle's proxy and a stock Envoy, driven by the same control plane with the same resources, answer the same calls alike.
// The mesh is `mesh/`, the calls are `calls.ts`; `/server_info` proves which proxy stood in each pod.
import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { envoyPath } from "../tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import { type Call, type Role, calls } from "./calls.ts";
import { type RawAnswer, exchangeBytes, parseAnswer } from "./raw-client.ts";

const root = path.resolve(import.meta.dirname, "../..");
const cli = path.join(root, "packages/cli/src/main.ts");
const outboundPort = 15_007;
const adminPort = 15_000;
const ports: Readonly<Record<Role, number>> = { gateway: 8080, outbound: outboundPort, inbound: 3000 };
const proxies = ["tulle", "envoy"] as const;
type Proxy = (typeof proxies)[number];

interface Pod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
}

/** The part of an access-log line that both proxies must agree on (Istio's format, reference order). */
interface LogLine {
  readonly request: string;
  readonly status: string;
  readonly flags: string;
  readonly details: string;
  readonly bytesReceived: string;
  readonly bytesSent: string;
  readonly cluster: string;
  readonly route: string;
}

const quoted = '"([^"]*)"';
const logPattern = new RegExp(
  `^\\[[^\\]]+\\] ${quoted} (\\S+) (\\S+) (.*?) (\\S+) ${quoted} (\\d+) (\\d+) \\d+ \\S+ ${quoted} ${quoted} ${quoted} ${quoted} ${quoted} (\\S+) \\S+ \\S+ \\S+ \\S+ (.*)$`,
);

function parseLogLine(line: string): { agent: string; fields: LogLine } | undefined {
  const match = logPattern.exec(line);
  if (match === null) return undefined;
  const [, request, status, flags, details, , , bytesReceived, bytesSent, , agent, , , , cluster, route] = match;
  return {
    agent: agent!,
    fields: {
      request: request!,
      status: status!,
      flags: flags!,
      details: details!,
      bytesReceived: bytesReceived!,
      bytesSent: bytesSent!,
      cluster: cluster!,
      route: route!,
    },
  };
}

const work = await mkdtemp(path.join(tmpdir(), "tulle-parity-"));
const meshFolder = path.join(work, "mesh");
let mesh: StartedProcess | undefined;
let pods: Pod[] = [];

async function tulle(...args: string[]): Promise<string> {
  const command = await startProcess(process.execPath, [cli, ...args, "--dir", meshFolder], {
    name: `tulle ${args[0]}`,
  });
  const exit = await command.exited;
  assert.equal(exit.code, 0, command.output());
  return command.stdout();
}

function podOf(role: Role, proxy: Proxy): Pod {
  const prefix = role === "gateway" ? "gateway" : "side";
  const pod = pods.find((candidate) => candidate.labels["app"] === `${prefix}-${proxy}`);
  assert.ok(pod, `no pod ${prefix}-${proxy}`);
  return pod;
}

before(
  async () => {
    await cp(path.join(import.meta.dirname, "mesh"), meshFolder, { recursive: true });
    await cp(path.join(import.meta.dirname, "backend.ts"), path.join(work, "backend.ts"));
    mesh = await startProcess(process.execPath, [cli, "up", meshFolder, "--restart", "never"], {
      name: "tulle up",
      group: true,
      env: { TULLE_ENVOY: await envoyPath() },
    });
    await mesh.waitForOutput(/^Ready/m, { timeoutMs: 60_000 });
    pods = JSON.parse(await tulle("pods", "-o", "json")) as Pod[];
  },
  { timeout: 120_000 },
);

after(async () => {
  await mesh?.stop({ timeoutMs: 20_000 });
  await rm(work, { recursive: true, force: true });
});

interface Outcome {
  readonly answer: RawAnswer;
  readonly echo: Record<string, unknown> | undefined;
}

const agentOf = (index: number, proxy: Proxy): string => `parity-${index}-${proxy}`;

async function makeCall(call: Call, index: number, proxy: Proxy): Promise<Outcome> {
  const bytes = call.bytes.replaceAll("%AGENT%", agentOf(index, proxy)).replaceAll("%KEY%", `${index}-${proxy}`);
  const answer = parseAnswer(
    await exchangeBytes(podOf(call.role, proxy).address, ports[call.role], bytes),
    call.method,
  );
  const isEcho = answer.headers.some(([name, value]) => name === "content-type" && value === "application/json");
  return {
    answer,
    echo: isEcho && answer.body !== "" ? (JSON.parse(answer.body) as Record<string, unknown>) : undefined,
  };
}

/** Values that differ from one run to the next on the same proxy; that they are there is still compared. */
const maskedHeaders = new Set([
  "date",
  "x-request-id",
  "x-envoy-upstream-service-time",
  "x-forwarded-for",
  "x-envoy-peer-metadata",
  "content-length",
  "user-agent",
]);

function mask(headers: readonly (readonly [string, string])[]): string[] {
  return headers.map(([name, value]) => (maskedHeaders.has(name) ? name : `${name}: ${value}`)).sort();
}

function comparable(outcome: Outcome, proxy: Proxy): unknown {
  const { answer, echo } = outcome;
  const unnamed = (text: string): string => text.replaceAll(`side-${proxy}`, "side-*").replaceAll(`-${proxy}`, "-*");
  return {
    status: answer.status,
    interim: answer.interim,
    headers: mask(answer.headers).map(unnamed),
    trailers: answer.trailers,
    truncated: answer.truncated,
    body:
      echo === undefined
        ? answer.body
        : {
            ...echo,
            version: unnamed(String(echo["version"])).replace(/^(tulle|envoy)$/, "*"),
            path: unnamed(String(echo["path"])),
            headers: mask(Object.entries(echo["headers"] as Record<string, string>)).map(unnamed),
          },
  };
}

function checkExpected(call: Call, outcome: Outcome, line: LogLine | undefined, proxy: Proxy): void {
  const { expected } = call;
  const where = `${proxy}, ${call.name}`;
  assert.equal(outcome.answer.status, expected.status, `${where}: ${outcome.answer.body}`);
  if (expected.version !== undefined && call.method !== "HEAD")
    assert.equal(outcome.echo?.["version"], expected.version, where);
  if (expected.interim !== undefined) assert.deepEqual(outcome.answer.interim, expected.interim, where);
  if (expected.bodyIncludes !== undefined) assert.ok(outcome.answer.body.includes(expected.bodyIncludes), where);
  if (expected.attempts !== undefined && outcome.echo !== undefined) {
    const headers = outcome.echo["headers"] as Record<string, string>;
    assert.equal(headers["x-envoy-attempt-count"], String(expected.attempts), where);
  }
  if (line === undefined) return;
  assert.equal(line.flags, expected.flags ?? "-", `${where}: ${JSON.stringify(line)}`);
  if (expected.details !== undefined) assert.equal(line.details, expected.details, where);
  if (expected.route !== undefined) assert.equal(line.route, expected.route, where);
}

async function accessLog(role: Role, proxy: Proxy, agents: ReadonlySet<string>): Promise<Map<string, LogLine>> {
  const pod = podOf(role, proxy);
  return waitFor(
    async () => {
      const text = await tulle("logs", pod.name, "-c", "proxy");
      const found = new Map<string, LogLine>();
      for (const line of text.split("\n")) {
        const parsed = parseLogLine(line);
        if (parsed !== undefined && agents.has(parsed.agent)) found.set(parsed.agent, parsed.fields);
      }
      if (found.size < agents.size) {
        const missing = [...agents].filter((agent) => !found.has(agent));
        throw new Error(`no access-log line for ${missing.slice(0, 5).join(", ")} (${missing.length} missing)`);
      }
      return found;
    },
    { what: `the access log of ${pod.name}`, timeoutMs: 20_000, intervalMs: 300 },
  );
}

test("each pod runs the proxy that its row says", async () => {
  for (const role of ["gateway", "outbound"] as const) {
    for (const proxy of proxies) {
      const response = await fetch(`http://${podOf(role, proxy).address}:${adminPort}/server_info`);
      const info = (await response.json()) as { version: string };
      assert.equal(/tulle/i.test(info.version), proxy === "tulle", `${role} ${proxy}: ${info.version}`);
    }
  }
});

test("the table has at least 80 calls, 30 a role", () => {
  assert.ok(calls.length >= 80, String(calls.length));
  assert.ok(calls.filter((call) => call.role === "gateway").length >= 30);
  assert.ok(calls.filter((call) => call.role !== "gateway").length >= 30);
});

describe("the same answers on both proxies", () => {
  const outcomes = new Map<string, Outcome>();
  const logs = new Map<string, LogLine>();

  before(
    async () => {
      for (const proxy of proxies) {
        for (const [index, call] of calls.entries())
          outcomes.set(agentOf(index, proxy), await makeCall(call, index, proxy));
        for (const role of ["gateway", "outbound", "inbound"] as const) {
          const logged = calls.flatMap((call, index) =>
            call.role === role && call.bytes.includes("%AGENT%") && call.expected.flags !== "DPE"
              ? [agentOf(index, proxy)]
              : [],
          );
          for (const [agent, line] of await accessLog(role, proxy, new Set(logged))) logs.set(agent, line);
        }
      }
    },
    { timeout: 180_000 },
  );

  for (const [index, call] of calls.entries()) {
    test(call.name, () => {
      for (const proxy of proxies) {
        checkExpected(call, outcomes.get(agentOf(index, proxy))!, logs.get(agentOf(index, proxy)), proxy);
      }
      const [tulleOutcome, envoyOutcome] = proxies.map((proxy) =>
        comparable(outcomes.get(agentOf(index, proxy))!, proxy),
      );
      assert.deepEqual(tulleOutcome, envoyOutcome);
      const [tulleLine, envoyLine] = proxies.map((proxy) => {
        const line = logs.get(agentOf(index, proxy));
        if (line === undefined) return undefined;
        const { request, ...rest } = line;
        return { ...rest, request: request.replaceAll(`-${proxy}`, ""), cluster: rest.cluster };
      });
      assert.deepEqual(tulleLine, envoyLine);
    });
  }
});
