// A workload of the cluster that follows all of it, as a sidecar without a Sidecar resource does: a certificate by its
// pod's token, then clusters and their endpoints.
import { create } from "@bufbuild/protobuf";
import { createCsr, generateKey, privateKeyPem } from "@tulle/identity";
import { type AdsClient, type AdsResponse, connectAds, createCertificate } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { kubectl } from "../../tests/tools/cluster/kubectl.ts";
import { keyOf, type Tulled } from "../../tests/tools/cluster/tulled.ts";

export interface WorkloadName {
  readonly namespace: string;
  readonly pod: string;
  readonly account: string;
}

export class FollowingWorkload {
  readonly #client: AdsClient;
  /** Addresses by cluster. */
  readonly #addresses = new Map<string, ReadonlySet<string>>();

  private constructor(connect: (onResponse: (response: AdsResponse) => void) => AdsClient) {
    this.#client = connect((response) => this.#take(response));
    this.#client.subscribe("CDS", "*");
  }

  static async start({ host, xdsPort }: Tulled, { namespace, pod, account }: WorkloadName): Promise<FollowingWorkload> {
    const bound = ["--bound-object-kind=Pod", `--bound-object-name=${pod}`, "--audience=istio-ca"];
    const bearerToken = (await kubectl(["create", "token", account, "-n", namespace, ...bound])).trim();
    const rootsPem = await keyOf("secret", "tulle-system", "tulle-ca-secret", "root-cert.pem");
    const server = { rootsPem, serverName: "tulled.tulle-system.svc.cluster.local" };
    const target = `https://${host}:${xdsPort}`;
    const key = await generateKey("P-256");
    const spiffeId = { trustDomain: "cluster.local", namespace, serviceAccount: account };
    const answer = await createCertificate({
      target,
      tls: () => server,
      csrPem: createCsr({ key, spiffeId }),
      bearerToken,
    });
    if (!answer.ok) throw new Error(`the workload gets no certificate: ${JSON.stringify(answer)}`);
    const identity = { privateKeyPem: privateKeyPem(key), certChainPem: answer.certChain.join("") };
    const ip = (await kubectl(["get", "pod", pod, "-n", namespace, "-o", "jsonpath={.status.podIP}"])).trim();
    return new FollowingWorkload((onResponse) =>
      connectAds({
        target,
        tls: () => ({ ...server, identity }),
        node: create(NodeSchema, { id: `sidecar~${ip}~${pod}.${namespace}~${namespace}.svc.cluster.local` }),
        handlers: {
          onResponse: (response) => {
            onResponse(response);
            return [];
          },
        },
      }),
    );
  }

  /** Endpoints of at least so many Services. */
  knows(services: number): boolean {
    return this.#addresses.size >= services;
  }

  has(address: string): boolean {
    for (const addresses of this.#addresses.values()) if (addresses.has(address)) return true;
    return false;
  }

  close(): void {
    this.#client.close();
  }

  #take(response: AdsResponse): void {
    if (response.type === "CDS") {
      const names = [...response.resources.values()]
        .filter(({ edsClusterConfig }) => edsClusterConfig !== undefined)
        .map(({ name, edsClusterConfig }) => edsClusterConfig?.serviceName || name);
      this.#client.subscribe("EDS", new Set(names));
    }
    if (response.type !== "EDS") return;
    for (const [name, { endpoints }] of response.resources) {
      const addresses = endpoints.flatMap(({ lbEndpoints }) =>
        lbEndpoints.map(({ hostIdentifier }) => {
          const at = hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
          return at?.case === "socketAddress" ? at.value.address : "";
        }),
      );
      if (addresses.length > 0) this.#addresses.set(name, new Set(addresses));
    }
  }
}
