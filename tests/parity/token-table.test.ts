// Good and bad tokens on Tulle's proxy and on a stock Envoy: the same answers, in the same words, to the same requests
// by HTTP/1.1 and by HTTP/2.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { type AccessLogLine, parseAccessLogLine } from "./access-log-line.ts";
import { callMeshed, type MeshedOutcome } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { implementedFields, usedFields } from "./policy-fields.ts";
import { closed, requestAuthentications, type TokenRow, tokenRows } from "./token-rows.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const port = 3000;
const rows = await tokenRows();

interface Case {
  readonly row: TokenRow;
  readonly version: HttpVersion;
  readonly path: string;
  /** Finds its access-log line again. */
  readonly agent: string;
}

const cases = rows.flatMap((row, index) =>
  (row.http1Alone === undefined ? versions : (["HTTP/1.1"] as const)).map((version): Case => ({
    row,
    version,
    path: row.path === undefined ? `/${index}` : `/${row.path}/${index}`,
    agent: `row ${index}, ${version}`,
  })),
);

test("every field of RequestAuthentication is in the table", () => {
  const specs = requestAuthentications.map((resource) => (resource as { readonly spec: object }).spec);
  assert.deepEqual(
    new Set(specs.flatMap((spec) => usedFields(spec))),
    new Set(implementedFields("RequestAuthentication")),
  );
});

describe("tokens", () => {
  let mesh: MeshedProxies;
  const outcomes = new Map<string, MeshedOutcome>();
  const lines = new Map<ProxyKind, ReadonlyMap<string, AccessLogLine>>();

  before(
    async () => {
      mesh = await MeshedProxies.start({
        pods: kinds.map((proxy) => ({ name: `server-${proxy}`, namespace: "shop", proxy, labels: { kind: "server" } })),
        ports: [port],
        manifests: [...requestAuthentications, closed].map((resource) => JSON.stringify(resource)).join("\n---\n"),
      });
      for (const kind of kinds) {
        for (const { row, version, path, agent } of cases) {
          const outcome = await callMeshed({
            host: mesh.pod(`server-${kind}`).address,
            port,
            version,
            path: row.query === undefined ? path : `${path}?${row.query}`,
            headers: [["user-agent", agent], ...row.headers],
          });
          outcomes.set(`${kind} ${agent}`, outcome);
        }
        lines.set(kind, await linesOf(kind));
      }
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  function linesOf(kind: ProxyKind): Promise<ReadonlyMap<string, AccessLogLine>> {
    const all = (): ReadonlyMap<string, AccessLogLine> | undefined => {
      const text = mesh.output(`server-${kind}`).split("\n");
      const found = text.flatMap((line) => parseAccessLogLine(line) ?? []);
      const byAgent = new Map(found.map((line) => [line.userAgent, line]));
      return cases.every(({ agent }) => byAgent.has(agent)) ? byAgent : undefined;
    };
    return waitFor(all, { what: `the access log of ${kind}`, intervalMs: 200 });
  }

  for (const { row, version, path, agent } of cases) {
    const { name, expected } = row;
    test(`${name}, ${version}: ${expected.status}`, () => {
      const seen = kinds.map((kind) => {
        const outcome = outcomes.get(`${kind} ${agent}`)!;
        assert.equal(outcome.type, "answered", kind);
        const { request, flags, details } = lines.get(kind)!.get(agent)!;
        assert.ok(request.endsWith(` ${version}`), request);
        return { outcome, flags, details };
      });
      const told = seen.map(({ outcome, flags, details }) => ({
        status: outcome.status,
        body: outcome.status === 200 ? "" : outcome.body,
        challenge: challengeOf(outcome.answerHeaders["www-authenticate"], `http://server${path}`),
        flags,
        details,
      }));
      const { status, body = "", challenge = null, details = "via_upstream", received = {} } = expected;
      const wanted = { status, body, challenge, flags: "-", details };
      assert.deepEqual(Object.fromEntries(kinds.map((kind, at) => [kind, told[at]])), { tulle: wanted, envoy: wanted });
      for (const { outcome } of seen) {
        for (const [header, value] of Object.entries(received)) {
          assert.equal(outcome.echo?.headers[header] ?? null, value, header);
        }
      }
    });
  }
});

/** What stands behind the realm, which is the address that was asked for. */
function challengeOf(header: string | undefined, address: string): string | null {
  if (header === undefined) return null;
  assert.ok(header.startsWith(`Bearer realm="${address}`), header);
  return header.slice(header.lastIndexOf('", ') + 3);
}
