// A control plane in a test's own process: xDS and certificate requests over TLS, by the real transport and a real
// authority.
import { generateKey, privateKeyPem, spiffeIdText, verifyPeer } from "@tulle/identity";
import {
  type AdsConnection,
  type AdsServerHandlers,
  type EncodedResource,
  type ResourceTypeName,
  type RunningAdsServer,
  certificateService,
  serveAds,
} from "@tulle/xds";
import { freePort } from "../../../../tests/tools/processes.ts";
import { controlPlaneName } from "../identity/client-tls.ts";
import { encodeSecrets } from "../identity/secrets.ts";
import { type TestAuthority, goodToken, web } from "./test-authority.ts";

export class TestControlPlane {
  /** How each certificate was asked for, and each stream's kind and identity, in order. */
  readonly story: string[] = [];
  readonly declared = new Map<ResourceTypeName, ReadonlyMap<string, EncodedResource>>();
  readonly #secretStreams = new Set<AdsConnection>();
  /** What it answers to a good token. */
  isSigning = true;
  /** Kept while it is stopped, hence not port zero. */
  readonly port: number;
  readonly #mesh: TestAuthority;
  #server: RunningAdsServer | undefined;

  private constructor(mesh: TestAuthority, port: number) {
    this.#mesh = mesh;
    this.port = port;
  }

  static async start(mesh: TestAuthority): Promise<TestControlPlane> {
    const controlPlane = new TestControlPlane(mesh, await freePort());
    mesh.cleanUp.defer(() => controlPlane.stop());
    await controlPlane.start();
    return controlPlane;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Again at the same port, after `stop`. */
  async start(): Promise<void> {
    const { authority } = this.#mesh;
    this.#server = await serveAds({
      address: { host: "127.0.0.1", port: this.port },
      handlers: this.#handlers("ads", (connection) => {
        for (const [type, resources] of this.declared) connection.set(type, resources);
      }),
      secretHandlers: this.#handlers("sds", (connection) => {
        this.#secretStreams.add(connection);
        connection.set("SDS", this.#roots());
      }),
      tls: {
        credentials: await this.#credentials(),
        verifyClient: (chain) => {
          const verified = verifyPeer({
            chain: [...chain],
            roots: authority.roots,
            trustDomains: ["cluster.local"],
            peerIs: "client",
            nowMs: Date.now(),
          });
          return verified.ok
            ? { ok: true, identity: verified.spiffeId, validUntilMs: verified.leaf.notAfterMs }
            : verified;
        },
        onRefused: ({ message }) => this.story.push(`refused: ${message}`),
      },
      unaryHandlers: certificateService(({ csrPem, bearerToken, peerIdentity }) => {
        this.story.push(bearerToken === undefined ? "asked by certificate" : "asked by token");
        if (!this.isSigning || (bearerToken !== undefined ? bearerToken !== goodToken : peerIdentity === undefined)) {
          return Promise.resolve({ ok: false, status: "UNAUTHENTICATED", details: "not believed" });
        }
        const signed = authority.signWorkload({ csrPem, identity: web });
        if (!signed.ok) return Promise.resolve({ ok: false, status: "PERMISSION_DENIED", details: signed.message });
        return Promise.resolve({ ok: true, certChain: [signed.chainPem, authority.trustBundlePem] });
      }),
    });
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  /** Tells everyone of the authority's present roots, and shows a certificate of its present root. */
  async rootsChanged(): Promise<void> {
    this.#server?.setCredentials(await this.#credentials());
    for (const connection of this.#secretStreams) connection.set("SDS", this.#roots());
  }

  #handlers(service: string, onConnect: (connection: AdsConnection) => void): AdsServerHandlers {
    return {
      onConnect: (connection) => {
        const { peerIdentity } = connection;
        this.story.push(`${service} of ${peerIdentity === undefined ? "nobody" : spiffeIdText(peerIdentity)}`);
        onConnect(connection);
      },
      onSubscribe: () => undefined,
      onDisconnect: (connection) => void this.#secretStreams.delete(connection),
    };
  }

  async #credentials() {
    const { authority } = this.#mesh;
    const key = await generateKey();
    const { chainPem } = authority.issueServing({ key, hosts: [controlPlaneName] });
    return { privateKeyPem: privateKeyPem(key), certChainPem: chainPem, clientRootsPem: authority.trustBundlePem };
  }

  #roots(): ReadonlyMap<string, EncodedResource> {
    const rootsPem = this.#mesh.authority.trustBundlePem;
    return new Map([["ROOTCA", encodeSecrets({ rootsPem, chainPem: "", keyPem: "" }).get("ROOTCA")!]]);
  }
}
