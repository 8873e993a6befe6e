// Mutual TLS between proxies of both kinds: who is let in at which port, what the application is told of the caller,
// and what a caller makes of a server that is not who it should be. Every row has one expectation, whatever proxy is at
// either end, and whether the client speaks HTTP/1.1 or HTTP/2.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ConnectionOptions } from "node:tls";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { TestAuthority } from "../tools/workload-secrets.ts";
import { parseAccessLogLine } from "./access-log-line.ts";
import { identityRules, type Identity } from "./identity-rules.ts";
import { callerOf, callMeshed, meshClient, type MeshedOutcome } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const strict = 3000;
const permissive = 3001;
const disabled = 3002;
/** STRICT, and callers believe that it is somebody else. */
const misnamed = 3003;
/** STRICT, and a rule lets callers speak plain text. */
const contradicted = 3004;
const ports = [strict, permissive, disabled, misnamed, contradicted];
const outboundPort = 15_007;

const resource = (kind: string, name: string, spec: object): string =>
  JSON.stringify({
    apiVersion: `${kind === "DestinationRule" ? "networking" : "security"}.tulle.io/v1`,
    kind,
    metadata: { name, namespace: "shop" },
    spec,
  });

const policies = [
  ...kinds.map((kind) =>
    resource("PeerAuthentication", `server-${kind}`, {
      selector: { matchLabels: { app: `server-${kind}` } },
      mtls: { mode: "STRICT" },
      portLevelMtls: { [permissive]: { mode: "PERMISSIVE" }, [disabled]: { mode: "DISABLE" } },
    }),
  ),
  ...kinds.map((kind) =>
    resource("DestinationRule", `server-${kind}`, {
      host: `server-${kind}`,
      trafficPolicy: {
        portLevelSettings: [
          {
            port: { number: misnamed },
            tls: { mode: "ISTIO_MUTUAL", subjectAltNames: ["spiffe://cluster.local/ns/shop/sa/somebody-else"] },
          },
          { port: { number: contradicted }, tls: { mode: "DISABLE" } },
        ],
      },
    }),
  ),
  ...identityRules.map(({ name, source, when }) =>
    resource("AuthorizationPolicy", name, {
      rules: [
        {
          ...(source === undefined ? {} : { from: [{ source }] }),
          to: [{ operation: { paths: [`/${name}/*`] } }],
          ...(when === undefined ? {} : { when }),
        },
      ],
    }),
  ),
];

interface Caller {
  readonly name: string;
  /** Undefined for plain text. */
  readonly tls: () => ConnectionOptions | undefined;
  /** Whether each port lets it in. */
  readonly expected: Readonly<Record<"strict" | "permissive" | "disabled", boolean>>;
  /** What the application is told of it. */
  readonly identity?: string;
}

describe("mutual TLS", () => {
  let mesh: MeshedProxies;
  let trusted: TestAuthority;
  const clients = new Map<string, ConnectionOptions>();

  before(
    async () => {
      trusted = await TestAuthority.create("elsewhere.example");
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports,
        manifests: policies.join("\n---\n"),
        furtherRootsPem: trusted.rootsPem,
      });
      const own = await mesh.authority.issue("shop", "webapp");
      const stranger = await (await TestAuthority.create()).issue("shop", "webapp");
      const dayMs = 86_400_000;
      const now = Date.now();
      clients.set("mesh", meshClient(own));
      clients.set("without ALPN", meshClient(own, { ALPNProtocols: ["http/1.1"] }));
      clients.set("TLS 1.2", meshClient(own, { maxVersion: "TLSv1.2" }));
      clients.set("foreign", meshClient(await trusted.issue("shop", "webapp")));
      clients.set("stranger", meshClient(stranger));
      clients.set("expired", meshClient(await mesh.authority.issue("shop", "webapp", { atMs: now - dayMs / 2 })));
      clients.set("early", meshClient(await mesh.authority.issue("shop", "webapp", { atMs: now + dayMs / 2 })));
      clients.set("no certificate", meshClient(undefined));
      for (const { namespace, account } of identityRules.flatMap((rule) => rule.calls.flatMap(({ as }) => as ?? []))) {
        const name = `${namespace}/${account}`;
        if (!clients.has(name)) clients.set(name, meshClient(await mesh.authority.issue(namespace, account)));
      }
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  interface Direct {
    readonly server: ProxyKind;
    readonly version: HttpVersion;
  }
  const directs = kinds.flatMap((server) => versions.map((version): Direct => ({ server, version })));
  const pairs = kinds.flatMap((client) => directs.map((to) => ({ client, ...to })));

  const direct = ({ server, version }: Direct, port: number, tls: ConnectionOptions | undefined, path = "/anyone/x") =>
    callMeshed({
      host: mesh.pod(`server-${server}`).address,
      port,
      version,
      path,
      ...(tls === undefined ? {} : { tls }),
    });
  const throughSidecar = ({ client, server, version }: (typeof pairs)[number], port: number, path: string) =>
    callMeshed({
      host: mesh.pod(`client-${client}`).address,
      port: outboundPort,
      version,
      path,
      headers: { host: `server-${server}:${port}` },
    });

  const refusedEverywhere = { strict: false, permissive: false, disabled: false };
  const identity = "spiffe://cluster.local/ns/shop/sa/webapp";
  const client = (name: string) => () => clients.get(name)!;
  const callers: readonly Caller[] = [
    { name: "plain text", tls: () => undefined, expected: { strict: false, permissive: true, disabled: true } },
    {
      name: "a workload",
      tls: client("mesh"),
      expected: { strict: true, permissive: true, disabled: false },
      identity,
    },
    // A port that also takes plain text knows the mesh's TLS by its ALPN; a STRICT one has nothing to tell apart.
    {
      name: "a workload that offers no ALPN of the mesh",
      tls: client("without ALPN"),
      expected: { strict: true, permissive: false, disabled: false },
      identity,
    },
    { name: "TLS 1.2", tls: client("TLS 1.2"), expected: refusedEverywhere },
    { name: "another trust domain, whose root is trusted", tls: client("foreign"), expected: refusedEverywhere },
    { name: "the same name from another root", tls: client("stranger"), expected: refusedEverywhere },
    { name: "an expired certificate", tls: client("expired"), expected: refusedEverywhere },
    { name: "a certificate that is not yet valid", tls: client("early"), expected: refusedEverywhere },
    { name: "TLS without a certificate", tls: client("no certificate"), expected: refusedEverywhere },
  ];
  const modes = { strict, permissive, disabled } as const;

  for (const to of directs) {
    for (const mode of ["strict", "permissive", "disabled"] as const) {
      for (const caller of callers) {
        const isServed = caller.expected[mode];
        const outcomeName = isServed ? "served" : "refused";
        test(`${to.server}, ${mode}: ${caller.name} is ${outcomeName}, ${to.version}`, async () => {
          const outcome = await direct(to, modes[mode], caller.tls());
          assert.equal(served(outcome), isServed, JSON.stringify(outcome));
          if (isServed) assert.equal(callerOf(outcome), caller.identity);
        });
      }
    }
  }

  for (const server of kinds) {
    test(`${server}: plain text at a STRICT port is logged`, async () => {
      await direct({ server, version: "HTTP/1.1" }, strict, undefined);
      const isLogged = (): boolean =>
        mesh
          .output(`server-${server}`)
          .split("\n")
          .flatMap((line) => parseAccessLogLine(line) ?? [])
          .some(({ flags, details }) => flags === "NR" && details === "filter_chain_not_found");
      await waitFor(isLogged, { what: "the access log", intervalMs: 100 });
    });
  }

  for (const pair of pairs) {
    const { client: clientKind, server, version } = pair;
    const name = `${clientKind} to ${server}, ${version}`;
    for (const mode of ["strict", "permissive", "disabled"] as const) {
      test(`${name}, ${mode}: a sidecar speaks what its peer takes`, async () => {
        const outcome = await throughSidecar(pair, modes[mode], "/anyone/x");
        assert.equal(served(outcome), true, JSON.stringify(outcome));
        const expected = mode === "disabled" ? undefined : `spiffe://cluster.local/ns/shop/sa/client-${clientKind}`;
        assert.equal(callerOf(outcome), expected);
      });
    }
    test(`${name}: policies know the caller`, async () => {
      const answers = await Promise.all(
        ["/client-accounts/x", "/not-client-accounts/x"].map((path) => throughSidecar(pair, strict, path)),
      );
      assert.deepEqual(answers.map(statusOf), [200, 403]);
    });
    test(`${name}: a server that is somebody else`, async () => {
      const path = `/misnamed-${server}/${version}`;
      const outcome = await throughSidecar(pair, misnamed, path);
      assert.equal(statusOf(outcome), 503);
      assert.match(await flagsOf(mesh, `client-${clientKind}`, path), /\bUF\b/);
    });
    test(`${name}: plain text to a STRICT port`, async () => {
      const path = `/contradicted-${server}/${version}`;
      const outcome = await throughSidecar(pair, contradicted, path);
      assert.equal(statusOf(outcome), 503);
      assert.match(await flagsOf(mesh, `client-${clientKind}`, path), /\bU[CF]\b/);
    });
  }

  for (const to of directs) {
    for (const rule of identityRules) {
      for (const call of rule.calls) {
        const outcomeName = call.isAllowed ? "allowed" : "denied";
        test(`${to.server}: ${rule.name}: ${call.name} is ${outcomeName}, ${to.version}`, async () => {
          const outcome = await direct(to, permissive, tlsOf(call.as, clients), `/${rule.name}/x`);
          assert.equal(statusOf(outcome), call.isAllowed ? 200 : 403);
          if (!call.isAllowed && outcome.type === "answered") assert.equal(outcome.body, "RBAC: access denied");
        });
      }
    }
  }
});

function tlsOf(
  as: Identity | undefined,
  clients: ReadonlyMap<string, ConnectionOptions>,
): ConnectionOptions | undefined {
  return as === undefined ? undefined : clients.get(`${as.namespace}/${as.account}`)!;
}

function served(outcome: MeshedOutcome): boolean {
  return outcome.type === "answered" && outcome.status === 200;
}

function statusOf(outcome: MeshedOutcome): number | string {
  return outcome.type === "answered" ? outcome.status : outcome.reason;
}

/** The response flags of the proxy's access-log line for a path. */
function flagsOf(mesh: MeshedProxies, pod: string, path: string): Promise<string> {
  const find = (): string | undefined =>
    mesh
      .output(pod)
      .split("\n")
      .flatMap((line) => parseAccessLogLine(line) ?? [])
      .find(({ request }) => request.includes(` ${path} `))?.flags;
  return waitFor(find, { what: `the access log of ${path}`, intervalMs: 100 });
}
