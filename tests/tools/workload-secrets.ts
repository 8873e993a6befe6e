// Certificates of a mesh that is there for a test: an authority, what it issues, an SDS server that hands it to a proxy
// on a Unix socket, as the agent does, and the fields of a bootstrap by which the proxy asks there.
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import type { AuthorityMaterial } from "@tulle/identity";
import { CertificateAuthority, createAuthority, createCsr, generateKey, privateKeyPem } from "@tulle/identity";
import { type EncodedResource, encodeResource, type RunningAdsServer, serveAds } from "@tulle/xds";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";

export interface WorkloadPem {
  readonly keyPem: string;
  readonly chainPem: string;
  readonly rootsPem: string;
}

export class TestAuthority {
  readonly #authority: CertificateAuthority;
  readonly trustDomain: string;
  #nowMs = Date.now();

  private constructor(signing: AuthorityMaterial, trustDomain: string) {
    const now = (): number => this.#nowMs;
    this.#authority = new CertificateAuthority({ trustDomain, state: { phase: "steady", signing }, now });
    this.trustDomain = trustDomain;
  }

  static async create(trustDomain = "cluster.local"): Promise<TestAuthority> {
    // Old enough for certificates that have expired by now.
    return new TestAuthority(await createAuthority({ trustDomain, nowMs: Date.now() - 86_400_000 }), trustDomain);
  }

  get rootsPem(): string {
    return this.#authority.trustBundlePem;
  }

  /** `atMs`: when it is issued; it is good for `ttlMs`. */
  async issue(
    namespace: string,
    serviceAccount: string,
    { atMs = Date.now(), ttlMs = 3_600_000 }: { readonly atMs?: number; readonly ttlMs?: number } = {},
  ): Promise<WorkloadPem> {
    const key = await generateKey();
    const identity = { trustDomain: this.trustDomain, namespace, serviceAccount };
    this.#nowMs = atMs;
    const signed = this.#authority.signWorkload({ csrPem: createCsr({ key, spiffeId: identity }), identity, ttlMs });
    assert.ok(signed.ok, signed.ok ? "" : signed.message);
    return { keyPem: privateKeyPem(key), chainPem: signed.chainPem, rootsPem: this.rootsPem };
  }
}

/** `default` and `ROOTCA`, as the agent serves them. */
export function workloadSecrets(workload: WorkloadPem): ReadonlyMap<string, EncodedResource> {
  return new Map([
    ["default", certificateSecret("default", workload)],
    ["ROOTCA", rootsSecret("ROOTCA", workload)],
  ]);
}

/**
 * The credentials of gateways by their names, all of them the same: `kubernetes://<name>`,
 * `kubernetes://<name>-cacert`.
 */
export function credentials(names: Iterable<string>, workload: WorkloadPem): ReadonlyMap<string, EncodedResource> {
  return new Map(
    [...names].map((name) => [
      name,
      name.endsWith("-cacert") ? rootsSecret(name, workload) : certificateSecret(name, workload),
    ]),
  );
}

function certificateSecret(name: string, { keyPem, chainPem }: WorkloadPem): EncodedResource {
  const value = { certificateChain: inline(chainPem), privateKey: inline(keyPem) };
  return encodeResource(SecretSchema, create(SecretSchema, { name, type: { case: "tlsCertificate", value } }));
}

function rootsSecret(name: string, { rootsPem }: WorkloadPem): EncodedResource {
  const value = { trustedCa: inline(rootsPem) };
  return encodeResource(SecretSchema, create(SecretSchema, { name, type: { case: "validationContext", value } }));
}

function inline(pem: string): { readonly specifier: { readonly case: "inlineString"; readonly value: string } } {
  return { specifier: { case: "inlineString", value: pem } };
}

export function serveSecrets(
  socketPath: string,
  secrets: ReadonlyMap<string, EncodedResource>,
): Promise<RunningAdsServer> {
  return serveAds({
    address: { path: socketPath },
    service: "sds",
    handlers: {
      onConnect: (connection) => connection.set("SDS", secrets),
      onSubscribe: () => undefined,
      onDisconnect: () => undefined,
    },
  });
}

/** The static cluster `sds-grpc` of a bootstrap. */
export function sdsCluster(socketPath: string): unknown {
  return socketCluster("sds-grpc", socketPath);
}

/** Fields of a bootstrap whose clusters and listeners come from one Unix socket, and whose secrets from another. */
export function resourcesFrom(xdsPath: string, sdsPath: string, clusters: readonly object[] = []): object {
  const source = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };
  return {
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
      },
      cds_config: source,
      lds_config: source,
    },
    static_resources: { clusters: [sdsCluster(sdsPath), socketCluster("xds-grpc", xdsPath), ...clusters] },
  };
}

function socketCluster(name: string, socketPath: string): object {
  const endpoint = { address: { pipe: { path: socketPath } } };
  return {
    name,
    type: "STATIC",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  };
}
