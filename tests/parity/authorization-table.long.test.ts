// Who may do what, on Tulle's proxy and on a stock Envoy: every row of the tables is called at a sidecar of each kind,
// by HTTP/1.1 and by HTTP/2, by workloads with certificates of their own, and has one expected outcome for all, down
// to the policy that the log names.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ConnectionOptions } from "node:tls";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { type AccessLogLine, parseAccessLogLine } from "./access-log-line.ts";
import { actionRows, connectionRows } from "./authorization-action-rows.ts";
import { callerRows } from "./authorization-caller-rows.ts";
import { conditionRows, operationRows } from "./authorization-request-rows.ts";
import {
  type AuthorizationCall,
  type AuthorizationRow,
  type Caller,
  callers,
  httpPort,
  otherHttpPort,
  policiesOf,
  policyName,
} from "./authorization-row.ts";
import { callMeshed, meshClient, type MeshedOutcome } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { implementedFields, namedValues, usedFields } from "./policy-fields.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const issuers = ["https://issuer.test", "https://other.test"] as const;
const keys = await generateKeyPair("ES256");
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: "a", alg: "ES256" }] });

function tokenOf(claims: Readonly<Record<string, unknown>>): Promise<string> {
  const exp = Math.floor(Date.now() / 1000) + 36_000;
  return new SignJWT({ iss: issuers[0], sub: "someone", exp, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "a" })
    .sign(keys.privateKey);
}

const authentication = {
  apiVersion: "security.tulle.io/v1",
  kind: "RequestAuthentication",
  metadata: { name: "tokens", namespace: "shop" },
  spec: { jwtRules: issuers.map((issuer) => ({ issuer, jwks })) },
};

const authorizationRows = [...callerRows, ...operationRows, ...conditionRows, ...actionRows, ...connectionRows];

interface Case {
  readonly row: AuthorizationRow;
  readonly call: AuthorizationCall;
  /** Undefined where the port's traffic is no requests. */
  readonly version: HttpVersion | undefined;
  /** Finds its access-log line again. */
  readonly mark: string;
}

const cases = authorizationRows.flatMap((row) =>
  row.calls.flatMap((call, index) =>
    (row.tcpPort === undefined ? versions : [undefined]).map((version): Case => ({
      row,
      call,
      version,
      mark: `${row.name}-${index} ${version}`,
    })),
  ),
);

test("the table has at least 320 rows", () => assert.ok(cases.length >= 320, String(cases.length)));

test("every field of AuthorizationPolicy is in the table, and every key of its conditions", () => {
  const specs = authorizationRows.flatMap(policiesOf).map(({ spec }) => spec);
  const fields = [...implementedFields("AuthorizationPolicy")];
  assert.deepEqual(
    new Set(specs.flatMap((spec) => usedFields(spec))),
    // Asking others has a table of its own.
    new Set(fields.filter((field) => field !== "provider.name")),
  );
  const keysOfConditions = specs.flatMap(({ rules }) => rules.flatMap(({ when = [] }) => when.map(({ key }) => key)));
  const withoutNames = keysOfConditions.map((key) =>
    key.replace(/\[.*\]$/, "[…]").replace(/^(experimental\.envoy\.filters)\..*(\[)/, "$1.…$2"),
  );
  assert.deepEqual(new Set(withoutNames), new Set(namedValues("AuthorizationPolicy", ["rules", "when", "key"])));
  assert.deepEqual(new Set(specs.map(({ action }) => action)), new Set(["ALLOW", "DENY", "AUDIT"]));
});

describe("who may do what", () => {
  let mesh: MeshedProxies;
  const clients = new Map<Caller, ConnectionOptions>();
  const outcomes = new Map<string, MeshedOutcome>();
  const lines = new Map<ProxyKind, readonly AccessLogLine[]>();

  before(
    async () => {
      const tcpPorts = authorizationRows.flatMap(({ tcpPort }) => tcpPort ?? []);
      const policies = authorizationRows.flatMap(policiesOf);
      mesh = await MeshedProxies.start({
        pods: kinds.map((proxy) => ({ name: `server-${proxy}`, namespace: "shop", proxy, labels: { kind: "server" } })),
        ports: [httpPort, otherHttpPort, ...tcpPorts],
        protocols: Object.fromEntries(tcpPorts.map((port) => [port, "tcp"])),
        manifests: [authentication, ...policies].map((resource) => JSON.stringify(resource)).join("\n---\n"),
      });
      for (const [caller, [namespace, account]] of Object.entries(callers)) {
        clients.set(caller as Caller, meshClient(await mesh.authority.issue(namespace, account)));
      }
      for (const kind of kinds) {
        for (const each of cases) outcomes.set(`${kind} ${each.mark}`, await make(kind, each));
        lines.set(kind, await requestLines(mesh.pod(`server-${kind}`).name));
      }
    },
    { timeout: 180_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  async function make(kind: ProxyKind, { row, call, version, mark }: Case): Promise<MeshedOutcome> {
    const tls = clients.get(call.caller);
    const authorization = call.claims === undefined ? {} : { authorization: `Bearer ${await tokenOf(call.claims)}` };
    return callMeshed({
      host: mesh.pod(`server-${kind}`).address,
      port: call.port ?? row.tcpPort ?? httpPort,
      ...(version === undefined ? {} : { version }),
      path: `/${row.name}/${call.path ?? "x"}`,
      headers: {
        ...call.headers,
        ...authorization,
        ...(call.host === undefined ? {} : { host: call.host }),
        "user-agent": mark,
      },
      ...(call.method === undefined ? {} : { method: call.method }),
      ...(call.from === undefined ? {} : { from: call.from }),
      ...(tls === undefined ? {} : { tls: call.sni === undefined ? tls : { ...tls, servername: call.sni } }),
    });
  }

  /** Proxies write their access logs in their own time. */
  function requestLines(pod: string): Promise<readonly AccessLogLine[]> {
    const marks = cases.filter(({ row }) => row.tcpPort === undefined).map(({ mark }) => mark);
    const all = (): readonly AccessLogLine[] | undefined => {
      const found = mesh
        .output(pod)
        .split("\n")
        .flatMap((line) => parseAccessLogLine(line) ?? []);
      const agents = new Set(found.map(({ userAgent }) => userAgent));
      return marks.every((mark) => agents.has(mark)) ? found : undefined;
    };
    return waitFor(all, { what: `the access log of ${pod}`, intervalMs: 200 });
  }

  for (const { row, call, version = "TCP", mark } of cases) {
    test(`${row.name}: ${nameOf(call)} is ${call.isAllowed ? "allowed" : "denied"}, ${version}`, () => {
      for (const kind of kinds) {
        const outcome = outcomes.get(`${kind} ${mark}`)!;
        const seen = resultOf(outcome);
        if (row.tcpPort !== undefined) {
          assert.equal(seen, call.isAllowed ? "200" : "closed", kind);
          continue;
        }
        assert.equal(seen, call.isAllowed ? "200" : (call.refusal ?? "403 RBAC: access denied"), kind);
        if (call.refusal !== undefined) continue;
        const line = lines.get(kind)!.find(({ userAgent }) => userAgent === mark)!;
        assert.ok(line.request.endsWith(` ${version}`), line.request);
        assert.equal(line.flags, "-", kind);
        const denied = `rbac_access_denied_matched_policy[${call.isUnmatched === true ? "none" : deniedBy(row)}]`;
        assert.equal(line.details, call.isAllowed ? "via_upstream" : denied, kind);
      }
    });
  }
});

function nameOf({ caller, name }: AuthorizationCall): string {
  return name === "" ? caller : `${caller}, ${name},`;
}

function resultOf(outcome: MeshedOutcome): string {
  if (outcome.type === "refused") return "closed";
  return outcome.echo === undefined ? `${outcome.status} ${outcome.body}` : String(outcome.status);
}

/** What a denial is logged with: the policy that denies, or that none allows. */
function deniedBy(row: AuthorizationRow): string {
  const index = row.policies.findIndex(
    ({ action, annotations }) => action === "DENY" && annotations?.["istio.io/dry-run"] !== "true",
  );
  return index === -1
    ? "none"
    : `ns[${row.policies[index]!.namespace ?? "shop"}]-policy[${policyName(row, index)}]-rule[0]`;
}
