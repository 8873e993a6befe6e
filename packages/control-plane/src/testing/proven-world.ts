// A control plane with an authority, pods in its store, and workloads that get certificates from it, for tests.
import assert from "node:assert/strict";
import type { KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parseResource } from "@tulle/config";
import {
  CertificateAuthority,
  createCsr,
  generateKey,
  privateKeyPem,
  parseAuthority,
  type SpiffeId,
} from "@tulle/identity";
import {
  authorityAudience,
  issueWorkloadToken,
  localTokenIssuer,
  openWorkloadTokenKey,
  type WorkloadTokenRequest,
  workloadTokenKeyFile,
} from "@tulle/identity/workload-token";
import { type LogEntry, Logging } from "@tulle/telemetry";
import {
  type AdsClient,
  type AdsResponse,
  type CertificateAnswer,
  type ClientTls,
  connectAds,
  createCertificate,
  type ResourceTypeName,
  type XdsService,
} from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type SocketAnswer, type SocketRequest, socketRequest } from "../../../../tests/tools/socket-request.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import {
  type ManifestControlPlaneOptions,
  type RunningManifestControlPlane,
  runManifestControlPlane,
} from "../run-manifest-control-plane.ts";

export const web: SpiffeId = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "web" };
export const webPod = { name: "web-1", uid: "web-uid" };
export const webNode = "sidecar~127.9.9.1~web-1.shop~shop.svc.cluster.local";
export const serverName = "tulled.tulle-system.svc";

export type Identity = NonNullable<ClientTls["identity"]>;

export interface ProvenWorld {
  readonly running: RunningManifestControlPlane;
  readonly stateDirectory: string;
  readonly target: string;
  readonly log: LogEntry[];
  readonly rootsPem: () => Promise<string>;
  readonly metrics: () => Promise<string>;
  /** A request of the owner. */
  readonly ask: (path: string, options?: SocketRequest) => Promise<SocketAnswer>;
}

/**
 * Pods `web-1` (account `web`) and `other-1` (account `other`) of `shop`, `web-1` of `bank`. Ends with the test, or
 * before.
 */
export async function provenWorld(
  context: TestContext,
  options: Partial<ManifestControlPlaneOptions> = {},
): Promise<ProvenWorld> {
  const stateDirectory = options.stateDirectory ?? temporaryFolder("tulle-ca-");
  const log: LogEntry[] = [];
  const running = await runManifestControlPlane({
    stateDirectory,
    xdsTlsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    debounce: { quietMs: 5, maxMs: 100 },
    logging: new Logging({ level: "info", sink: (entry) => void log.push(entry) }),
    ...options,
  });
  context.after(() => running.close());
  await applyPod(running, "shop", "web-1", "web", webPod.uid);
  await applyPod(running, "shop", "other-1", "other");
  await applyPod(running, "bank", "web-1", "web");
  const url = `http://127.0.0.1:${running.httpAddress.port}`;
  return {
    running,
    stateDirectory,
    target: `https://127.0.0.1:${running.xdsTlsAddress!.port}`,
    log,
    rootsPem: () => readFile(path.join(stateDirectory, "ca/root-cert.pem"), "utf8"),
    metrics: async () => (await fetch(`${url}/metrics`)).text(),
    ask: (where, asked) => socketRequest(running.socketPath, where, asked),
  };
}

async function applyPod(
  { store }: RunningManifestControlPlane,
  namespace: string,
  name: string,
  serviceAccountName: string,
  uid?: string,
): Promise<void> {
  const parsed = parseResource({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, labels: { app: serviceAccountName }, ...(uid === undefined ? {} : { uid }) },
    spec: { serviceAccountName, containers: [{ name: "app", image: "local/app", ports: [{ containerPort: 3000 }] }] },
  });
  assert.ok(parsed.resource, JSON.stringify(parsed.findings));
  await store.apply(parsed.resource);
}

/** A token as the platform hands it out, for `web-1` of `shop` unless told. */
export async function tokenOf(
  { stateDirectory }: ProvenWorld,
  request: Partial<WorkloadTokenRequest> = {},
): Promise<string> {
  const opened = await openWorkloadTokenKey(path.join(stateDirectory, workloadTokenKeyFile));
  assert.ok(opened.ok);
  return issueWorkloadToken(opened.key, {
    identity: { namespace: "shop", serviceAccount: "web", pod: webPod },
    issuer: localTokenIssuer,
    audience: authorityAudience,
    nowMs: Date.now(),
    ...request,
  });
}

export interface Asked {
  readonly token?: string;
  readonly identity?: Identity;
  /** What the CSR asks for; `web` unless told. */
  readonly csrFor?: SpiffeId;
  readonly csrPem?: string;
  readonly ttlMs?: number;
}

/** One CreateCertificate call, with a new key. */
export async function ask(world: ProvenWorld, asked: Asked): Promise<{ answer: CertificateAnswer; key: KeyObject }> {
  const { token, identity, csrFor = web, ttlMs } = asked;
  const key = await generateKey("P-256");
  const rootsPem = await world.rootsPem();
  const answer = await createCertificate({
    target: world.target,
    tls: () => ({ rootsPem, serverName, ...(identity === undefined ? {} : { identity }) }),
    csrPem: asked.csrPem ?? createCsr({ key, spiffeId: csrFor }),
    ...(token === undefined ? {} : { bearerToken: token }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  });
  return { answer, key };
}

/** Key and chain of `web`, by a token. */
export async function identityOfWeb(world: ProvenWorld): Promise<Identity & { readonly rootsPem: string }> {
  const { answer, key } = await ask(world, { token: await tokenOf(world) });
  assert.ok(answer.ok, answer.ok ? "" : answer.details);
  return identityFrom(answer.certChain, key);
}

export function identityFrom(certChain: readonly string[], key: KeyObject): Identity & { readonly rootsPem: string } {
  return {
    privateKeyPem: privateKeyPem(key),
    certChainPem: certChain.slice(0, -1).join(""),
    rootsPem: certChain.at(-1)!,
  };
}

/**
 * A leaf under the world's own root as no authority would have issued it: of another time, or of another trust domain.
 */
export async function forgedIdentity(
  { stateDirectory }: ProvenWorld,
  options: { readonly nowMs?: number; readonly ttlMs?: number; readonly identity?: SpiffeId },
): Promise<Identity> {
  const file = path.join(stateDirectory, "ca/authority.json");
  const kept = parseAuthority(await readFile(file, "utf8"), file, Date.now());
  assert.ok(kept.ok);
  const { identity = web, nowMs = Date.now(), ttlMs = 3_600_000 } = options;
  const authority = new CertificateAuthority({
    trustDomain: identity.trustDomain,
    state: kept.state,
    now: () => nowMs,
  });
  const key = await generateKey("P-256");
  const signed = authority.signWorkload({ csrPem: createCsr({ key, spiffeId: identity }), identity, ttlMs });
  assert.ok(signed.ok, signed.ok ? "" : signed.message);
  return { privateKeyPem: privateKeyPem(key), certChainPem: signed.chainPem };
}

export interface TestStream {
  readonly client: AdsClient;
  readonly responses: AdsResponse[];
  readonly failures: string[];
}

/** An xDS stream to the port with TLS that subscribes to one type. */
export async function openStream(
  context: TestContext,
  world: ProvenWorld,
  options: {
    readonly identity?: Identity;
    readonly rootsPem?: string;
    readonly nodeId?: string;
    readonly service?: XdsService;
    readonly type?: ResourceTypeName;
    readonly names?: ReadonlySet<string>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly interceptionMode?: "NONE" | "REDIRECT";
  },
): Promise<TestStream> {
  const {
    identity,
    nodeId = webNode,
    service = "ads",
    type = "CDS",
    names,
    labels = {},
    interceptionMode = "NONE",
  } = options;
  const rootsPem = options.rootsPem ?? (await world.rootsPem());
  const responses: AdsResponse[] = [];
  const failures: string[] = [];
  const client = connectAds({
    target: world.target,
    node: create(NodeSchema, { id: nodeId, metadata: { INTERCEPTION_MODE: interceptionMode, LABELS: { ...labels } } }),
    service,
    tls: () => ({ rootsPem, serverName, ...(identity === undefined ? {} : { identity }) }),
    handlers: {
      onResponse: (response) => {
        responses.push(response);
        return [];
      },
      onState: (state) => {
        if (state.kind === "waiting") failures.push(state.reason);
      },
    },
    backOff: { baseMs: 50, maxMs: 500 },
  });
  context.after(() => client.close());
  client.subscribe(type, names ?? "*");
  return { client, responses, failures };
}
