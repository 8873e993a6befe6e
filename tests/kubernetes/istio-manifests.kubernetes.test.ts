// What users have written for Istio, in a cluster in which Istio is not: manifests of 1.17 and of 1.25 apply as they
// are, under Istio's labels; they take effect, with counted answers; and what is not honoured is told, at `kubectl
// apply` and in the status.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { httpRequest } from "../e2e/http-request.ts";
import { nodes } from "../tools/cluster/addresses.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { tulle } from "../tools/cluster/tulle-command.ts";
import { waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { untilAvailable } from "./cluster-shop.ts";

const manifests = path.join(import.meta.dirname, "istio");
const keys = await generateKeyPair("RS256");
const folder = temporaryFolder("tulle-istio-");
let address: string;

before(async () => {
  const values = [
    "base.istioCustomResources=true",
    "tulled.watchIstioResources=true",
    "tulled.replicaCount=1",
    "gateway.enabled=true",
    "gateway.service.type=NodePort",
  ];
  await tulle(["uninstall", "--purge", "-y"]);
  await tulle(["install", "-y", "--revision", "moved", "--set", values.join(",")]);
  await kubectl(["apply", "-f", path.join(manifests, "books.yaml")]);
  await untilAvailable("books");
  const ports = ["get", "service", "tulle-ingressgateway", "-n", "tulle-system"];
  const port = await kubectl([...ports, "-o", `jsonpath={.spec.ports[?(@.name=="http2")].nodePort}`]);
  address = `http://${nodes[0].addresses[0]}:${port}`;
});
after(async () => {
  await kubectl(["delete", "namespace", "books", "--ignore-not-found"]);
  await tulle(["uninstall", "--purge", "-y"]);
});

/** As its users do; what kubectl says. */
async function applied(release: string): Promise<string> {
  const { e, n } = await exportJWK(keys.publicKey);
  const jwks = JSON.stringify({ keys: [{ kty: "RSA", kid: "a", alg: "RS256", use: "sig", e, n }] });
  const file = path.join(folder, `${release}.yaml`);
  const text = await readFile(path.join(manifests, `${release}.yaml`), "utf8");
  await writeFile(file, text.replaceAll("KEYS", JSON.stringify(jwks)));
  const { code, stdout, stderr } = await runCommand("kubectl", ["apply", "-f", file], { timeoutMs: 120_000 });
  assert.equal(code, 1, "kinds that nothing reads are refused");
  return `${stdout}${stderr}`;
}

function token(issuer: string): Promise<string> {
  const claims = new SignJWT({ sub: "reader" }).setProtectedHeader({ alg: "RS256", kid: "a" });
  return claims.setIssuer(issuer).setExpirationTime("10m").sign(keys.privateKey);
}

/** How many of 20 requests are answered how. */
async function tally(target: string, headers: Readonly<Record<string, string>> = {}): Promise<object> {
  const answers: Record<string, number> = {};
  for (let count = 0; count < 20; count += 1) {
    const { status, body } = await httpRequest(`${address}${target}`, { headers });
    const answer = status === 200 ? body : String(status);
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}

async function answersBecome(
  expected: object,
  target: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  let last: object = {};
  const isSo = async (): Promise<boolean> => isDeepStrictEqual((last = await tally(target, headers)), expected);
  await waitFor(isSo, { what: `${JSON.stringify(expected)} of ${target}`, details: () => JSON.stringify(last) });
}

interface Told {
  readonly items: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly generation: number };
    readonly status?: {
      readonly observedGeneration?: number;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
      readonly validationMessages?: readonly { readonly type: { readonly code: string }; readonly message: string }[];
    };
  }[];
}

const kinds = [
  "gateways.networking",
  "virtualservices.networking",
  "destinationrules.networking",
  "serviceentries.networking",
  "workloadentries.networking",
  "workloadgroups.networking",
  "peerauthentications.security",
  "requestauthentications.security",
  "authorizationpolicies.security",
  "telemetries.telemetry",
];

/** Once all of them tell that they are accepted as they are now: what they tell besides. */
async function toldByStatus(): Promise<readonly string[]> {
  const names = kinds.map((kind) => `${kind}.istio.io`).join(",");
  const all = async (): Promise<Told["items"] | undefined> => {
    const { items } = JSON.parse(await kubectl(["get", names, "-n", "books", "-o", "json"])) as Told;
    const isAccepted = ({ metadata, status }: Told["items"][number]): boolean =>
      status?.observedGeneration === metadata.generation &&
      status.conditions?.some(({ type, status: is }) => type === "Accepted" && is === "True") === true;
    return items.length >= kinds.length && items.every(isAccepted) ? items : undefined;
  };
  const items = await waitFor(all, { what: "all to be accepted" });
  return items
    .flatMap(({ kind, metadata, status }) =>
      (status?.validationMessages ?? []).map(
        ({ type, message }) => `${kind} ${metadata.name} ${type.code} ${message.split(": ")[0]}`,
      ),
    )
    .toSorted();
}

test("manifests of 1.17 apply, and take effect", async () => {
  const said = await applied("1.17");
  assert.match(said, /Warning: \[TUL0001\] spec\.http\[1\]\.fault: "fault" is not implemented yet/);
  assert.match(said, /Warning: \[TUL0001\] kind: ProxyConfig is not implemented yet and has no effect/);
  assert.match(said, /Warning: \[IST0002\] .*LEAST_CONN is deprecated/);
  const refused = [...said.matchAll(/denied the request: \[TUL0001\] kind: (\w+) is not implemented yet/g)];
  assert.deepEqual(new Set(refused.map(([, kind]) => kind)), new Set(["EnvoyFilter", "Sidecar", "WasmPlugin"]));

  await answersBecome({ v1: 20 }, "/page");
  await answersBecome({ v2: 20 }, "/page", { "end-user": "reader" });
  // Whom the AuthorizationPolicy does not name: it names the page, and not the gateway.
  await answersBecome({ 403: 20 }, "/reviews");
  await answersBecome({ 401: 20 }, "/page", { authorization: `Bearer ${await token("https://somebody.example.com")}` });
  await answersBecome({ v1: 20 }, "/page", { authorization: `Bearer ${await token("https://login.example.com")}` });
  assert.deepEqual(await toldByStatus(), [
    "DestinationRule reviews IST0002 spec.trafficPolicy.loadBalancer.simple",
    "DestinationRule reviews IST0002 spec.trafficPolicy.outlierDetection.consecutiveErrors",
    // It names no audiences.
    "RequestAuthentication page TUL0006 spec.jwtRules[0]",
    "Telemetry books IST0157 spec.tracing[0]",
    "VirtualService reviews IST0002 spec.http[1].fault.delay.percent",
    "VirtualService reviews TUL0001 spec.http[1].fault",
  ]);
});

test("STRICT is meant: plain text is not taken", async () => {
  const pod = await kubectl([
    "get",
    "pod",
    "-n",
    "books",
    "-l",
    "app=reviews,version=v1",
    "-o",
    "jsonpath={.items[0].status.podIP}",
  ]);
  const host = pod.includes(":") ? `[${pod}]` : pod;
  await assert.rejects(httpRequest(`http://${host}:9080/reviews`, { timeoutMs: 10_000 }), /ECONNRESET|socket hang up/);
});

test("those of 1.25 apply over them, and take effect", async () => {
  const said = await applied("1.25");
  assert.match(said, /denied the request: \[TUL0001\] kind: Sidecar is not implemented yet/);
  await answersBecome({ v2: 20 }, "/page");
  await answersBecome({ v1: 20 }, "/page", { "end-user": "reader" });
  await answersBecome({ 403: 20 }, "/reviews");
  await answersBecome({ 401: 20 }, "/page", { authorization: `Bearer ${await token("https://somebody.example.com")}` });
  assert.deepEqual(await toldByStatus(), [
    "DestinationRule reviews TUL0001 spec.trafficPolicy.loadBalancer.warmup",
    "RequestAuthentication page TUL0006 spec.jwtRules[0]",
    "VirtualService reviews TUL0001 spec.http[1].mirror",
    "VirtualService reviews TUL0001 spec.http[1].mirrorPercentage",
    "VirtualService reviews TUL0001 spec.http[1].retries.backoff",
  ]);
});

test("whoever reads by an older version sees the same", async () => {
  const old = ["get", "--raw", "/apis/networking.istio.io/v1alpha3/namespaces/books/virtualservices/reviews"];
  const { apiVersion, spec } = JSON.parse(await kubectl(old)) as { apiVersion: string; spec: { http: unknown[] } };
  assert.equal(apiVersion, "networking.istio.io/v1alpha3");
  assert.equal(spec.http.length, 2);
});
