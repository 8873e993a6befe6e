/**
 * What the endpoints of api.ts answer, as it travels. Words with underscores are Istio's, for programs that read its
 * pages.
 */
import type { Finding } from "../findings/finding.ts";
import type { PlaceTable } from "../findings/places.ts";
import type { Kind } from "../kinds/kinds.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { PortProtocol } from "../rules/port-protocol.ts";
import type { ApplyResult } from "../store/store.ts";

/** What proxies and checks say of a resource; shown as its `status` where there is something. */
export interface ResourceStatus {
  readonly findings?: readonly Finding[];
  readonly rejections?: readonly ResourceRejection[];
  /** Of a Rollout. */
  readonly rollout?: Omit<RolloutView, "history" | "namespace" | "name">;
}

export interface ResourceRejection {
  /** `<pod>.<namespace>` */
  readonly proxy: string;
  /** `CDS` and so on. */
  readonly type: string;
  /** The xDS resource that the proxy refused. */
  readonly resource: string;
  /** The proxy's own words. */
  readonly message: string;
  readonly at: string;
}

export type ShownResource = MeshResource | (Omit<MeshResource, "status"> & { readonly status: ResourceStatus });

export interface ResourceList {
  readonly resourceVersion: number;
  readonly items: readonly ShownResource[];
}

/** The same for one kind, whose status is its own. */
export interface ListResponse<K extends Kind = Kind> {
  readonly resourceVersion: number;
  readonly items: readonly ResourceOf<K>[];
}

export type WatchEvent =
  | {
      readonly type: "added" | "modified" | "deleted";
      readonly resourceVersion: number;
      readonly resource: MeshResource;
    }
  /** Nothing new of the wanted kinds up to this version. */
  | { readonly type: "bookmark"; readonly resourceVersion: number };

/**
 * Body of a PUT. `resource` is the manifest as parsed (not yet checked: the server does). `places` makes the findings
 * point into the user's file, now and later. A bare manifest (an object with `apiVersion`) is accepted too.
 */
export interface ApplyRequest {
  readonly resource: unknown;
  readonly places?: PlaceTable;
}

/** 201 when created, else 200. */
export type ApplyResponse = ApplyResult;

export interface DeleteResponse {
  readonly resource: MeshResource;
}

export interface FindingsResponse {
  readonly findings: readonly Finding[];
}

/**
 * Body of every answer from 400 on: 400 bad request, 401 no or wrong token, 404 no such object or kind, 410
 * `resourceVersion` too old (list again), 413 body too large, 422 the resource is not valid (`findings` says why).
 */
export interface ErrorResponse {
  readonly error: { readonly code: number; readonly message: string };
  readonly findings?: readonly Finding[];
}

export interface AuthorityStatus {
  readonly trustDomain: string;
  /**
   * - `steady`. - `introducing`: new roots are trusted, the old authority signs. - `retiring`: the new one signs, old
   *   roots are trusted.
   */
  readonly phase: "steady" | "introducing" | "retiring";
  /** RFC 3339; missing in a steady phase. */
  readonly phaseEnds?: string;
  readonly isBroughtAlong: boolean;
  readonly signing: CertificateStatus;
  /** All that workloads are to trust. */
  readonly roots: readonly CertificateStatus[];
}

export interface CertificateStatus {
  readonly subject: string;
  readonly serial: string;
  readonly notBefore: string;
  readonly notAfter: string;
}

export type RolloutAction = "start" | "pause" | "resume" | "promote" | "abort";
export const rolloutActions: readonly RolloutAction[] = ["start", "pause", "resume", "promote", "abort"];

/** Where a Rollout stands. */
export interface RolloutView {
  readonly namespace: string;
  readonly name: string;
  readonly host: string;
  readonly strategy: "canary" | "blueGreen";
  /** Subset, or labels. */
  readonly stable: string;
  readonly canary: string;
  /**
   * - `Idle`: never started, nothing is laid over the routes. - `Progressing`: at a step. - `Paused`: something or
   *   somebody has to come first. - `Completed`: the canary has all requests. - `Aborted`: the stable version has.
   */
  readonly phase: "Idle" | "Progressing" | "Paused" | "Completed" | "Aborted";
  /** What it waits for, or why it has ended. */
  readonly message: string;
  /** Percent of the requests that go to the canary. */
  readonly weight: number;
  readonly isLaid: boolean;
  /** Requests that go to the canary whatever the weight. */
  readonly headerRoute?: string;
  /** Number of the step, from 0; as many as there are once all are done. */
  readonly step: number;
  readonly steps: readonly string[];
  readonly pauseEndsAt?: string;
  readonly metrics: readonly RolloutMetricView[];
  /** The resource is no longer what was started. */
  readonly isEdited: boolean;
  /** How often it was started. */
  readonly revision: number;
  readonly startedAt?: string;
  readonly endedAt?: string;
  /** Oldest first. */
  readonly history: readonly { readonly at: string; readonly text: string }[];
}

export interface RolloutMetricView {
  readonly name: string;
  readonly place: "step" | "background";
  readonly good: number;
  readonly bad: number;
  /** Measurements that the step needs. */
  readonly count?: number;
  readonly failureLimit: number;
  readonly last?: { readonly at: string; readonly isGood: boolean; readonly text: string };
  /** Why it cannot be judged now. */
  readonly waiting?: string;
}

/** The columns of `proxy-status`. */
export type StatusType = "CDS" | "LDS" | "EDS" | "RDS" | "ECDS";
export const statusTypes: readonly StatusType[] = ["CDS", "LDS", "EDS", "RDS", "ECDS"];

export interface TypeSync {
  readonly state: "NOT SENT" | "SYNCED" | "STALE" | "ERROR" | "IGNORED";
  /** Nonces of the newest response and of the newest acknowledged one. */
  readonly sent: string;
  readonly acked: string;
  readonly sentAt?: string;
  readonly ackedAt?: string;
  readonly errors: readonly { readonly resource: string; readonly message: string; readonly at: string }[];
  /** How many more there are; missing without any. */
  readonly moreErrors?: number;
}

/** Whether one proxy holds what was sent. */
export interface ProxySync {
  /** `<pod>.<namespace>` */
  readonly proxy: string;
  readonly proxy_type: string;
  readonly cluster_id: string;
  readonly istio_version: string;
  readonly cluster_sent: string;
  readonly cluster_acked: string;
  readonly listener_sent: string;
  readonly listener_acked: string;
  readonly route_sent: string;
  readonly route_acked: string;
  readonly endpoint_sent: string;
  readonly endpoint_acked: string;
  readonly extensionconfig_sent: string;
  readonly extensionconfig_acked: string;
  /** Id of the control plane that answers. */
  readonly tulled: string;
  readonly connectedAt: string;
  /** It came in the clear; missing for one that has shown a certificate, and in a mesh without any. */
  readonly withoutCertificate?: true;
  readonly types: Readonly<Record<StatusType, TypeSync>>;
}

export interface RegisteredService {
  readonly hostname: string;
  readonly name: string;
  readonly namespace: string;
  readonly addresses: readonly string[];
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly {
    readonly name: string;
    readonly number: number;
    readonly targetPort: number | string;
    readonly protocol: PortProtocol;
  }[];
  readonly identities?: readonly string[];
  readonly exportedTo?: readonly string[];
}

/** Those of one port of a Service. */
export interface ServiceEndpoints {
  /** Its host name. */
  readonly service: string;
  readonly port: number;
  readonly endpoints: readonly {
    readonly address: string;
    readonly port: number;
    readonly labels: Readonly<Record<string, string>>;
    readonly workload: string;
    readonly namespace: string;
    readonly tlsMode?: "istio";
    readonly refusesPlainText?: true;
  }[];
}

export interface ProxyConnection {
  readonly connectionId: string;
  /** `<pod>.<namespace>` */
  readonly proxy: string;
  readonly peer: string;
  /** SPIFFE ID; missing in the clear. */
  readonly identity?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly connectedAt: string;
}

/** Envoy's messages as JSON, with their own names of fields. */
export interface ProxyConfiguration {
  /** As it was asked for. */
  readonly proxy: string;
  readonly clusters: readonly unknown[];
  readonly endpoints: readonly unknown[];
  readonly listeners: readonly unknown[];
  readonly routes: readonly unknown[];
}

/** Of Prometheus's HTTP service discovery (http_sd_config). */
export interface MetricTarget {
  /** `<address>:<port>` */
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Objects that were others when the control plane started than when it had them last. */
export interface ChangedWhileAway {
  readonly named: readonly {
    readonly type: "added" | "modified" | "deleted";
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly file?: string;
  }[];
  /** Further ones. */
  readonly more: number;
}

/** One change of the configuration, as the control plane remembers it. */
export interface RecordedChange {
  /** Rises by one, across restarts. */
  readonly id: number;
  readonly time: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** `away`: of a start of the control plane, all that was changed before; kind, namespace and name are empty. */
  readonly type: "added" | "modified" | "deleted" | "away";
  readonly away?: ChangedWhileAway;
  /** `file:line` of a manifest; missing where it came over the API. */
  readonly file?: string;
  /** What differs; no value of a Secret is among them. */
  readonly fields: readonly FieldChange[];
  /** Further ones. */
  readonly moreFields: number;
  /** Codes of what there was to say of the resource then. */
  readonly findings: readonly string[];
  /** Who made it, as far as the control plane knows: a user of its machine, the token's holder, an edit of the file. */
  readonly by?: string;
  /** Equal for changes that were made at once; rises by one, across restarts. */
  readonly batch?: number;
  /** Missing where it means nothing for any proxy. */
  readonly proxies?: ChangeSync;
}

/** How far the proxies are with a change, of those that were connected when it was sent and have not gone since. */
export interface ChangeSync {
  readonly connected: number;
  /** They have answered everything that was meant for them, and refused nothing of it. */
  readonly inSync: number;
  /** They have answered everything, and refuse something that they have been sent. */
  readonly refusing: number;
  /** From the change to the last proxy's answer; missing while one has not answered. */
  readonly tookMs?: number;
  /** The control plane ended before all had answered, and nobody counts any more. */
  readonly isCutShort?: true;
  /** Routes that have become others, as access logs name them; missing when none have. */
  readonly revisions?: readonly RouteRevision[];
  /** Further ones, of the first 100. */
  readonly moreRevisions?: number;
}

/** The configuration revision of a virtual host's routes, before and after; missing = there was none, or is none. */
export interface RouteRevision {
  /** `catalog.shop.svc.cluster.local:80` */
  readonly virtualHost: string;
  readonly before?: string;
  readonly after?: string;
}

export interface FieldChange {
  /** As a person writes it: `spec.http[0].route[1].weight`. */
  readonly path: string;
  /** JSON, cut short; missing = the field was not there. */
  readonly before?: string;
  readonly after?: string;
}

export interface ChangesResponse {
  /** Oldest first. */
  readonly changes: readonly RecordedChange[];
  /** Changes of pods and endpoints since the control plane started. */
  readonly platformChanges: number;
  /** How many proxies are connected, and how many of them have everything that was sent. */
  readonly proxies: { readonly connected: number; readonly inSync: number };
}

/** What a token is asked for with. */
export interface TokenRequest {
  readonly group: string;
  readonly namespace: string;
  readonly lifetimeSeconds: number;
  /** Where the machine may be reached; without any, where its call comes from. */
  readonly addresses?: readonly string[];
  /** `host:port` by which the machine finds the control plane, where that is not what it listens at. */
  readonly controlPlanes?: readonly string[];
}

export interface IssuedToken {
  readonly id: string;
  /** Shown this once. */
  readonly token: string;
  readonly until: string;
}

export interface TokenStatus {
  readonly id: string;
  readonly group: string;
  readonly namespace: string;
  readonly addresses: readonly string[];
  readonly madeBy: string;
  readonly until: string;
  readonly state: "unused" | "used" | "expired" | "revoked";
  /** The machine that has joined by it. */
  readonly machine?: string;
}

export interface MachineStatus {
  readonly name: string;
  readonly namespace: string;
  readonly group: string;
  readonly address: string;
  readonly hostname: string;
  /** Name of its WorkloadEntry; empty while there is none. */
  readonly entry: string;
  readonly joined: string;
  readonly token: string;
  readonly state: "healthy" | "unhealthy" | "disconnected";
}

/** What came of a token, or of a try to join. */
export interface MachineEvent {
  readonly time: string;
  readonly what: "token made" | "token revoked" | "joined" | "refused" | "left" | "removed";
  readonly detail: string;
  /** Who it was: a machine's address, or the person at the control plane. */
  readonly peer: string;
  /** How often in a row. */
  readonly times: number;
}

export interface MachinesResponse {
  readonly tokens: readonly TokenStatus[];
  readonly machines: readonly MachineStatus[];
  /** Oldest first. */
  readonly events: readonly MachineEvent[];
}
