// A pod as commands show it: what runs, where its proxy listens and where its app.
import type { Pod } from "@tulle/config";

/** One pod in the data that `-o json` prints. */
export interface PodRow {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Where the proxy listens, its admin interface (port 15000) too; the app itself when there is no proxy. */
  readonly address: string;
  /** The app itself, past its proxy; null for a gateway, which has none. */
  readonly app: { readonly address: string; readonly port: number | null } | null;
  readonly ready: boolean;
  readonly restarts: number;
  /** Why it does not run, when that is known. */
  readonly message?: string;
}

// The annotation is the local platform's; loading its package for one name would double this command's start.
const appAddressAnnotation = "local.tulle.io/app-address";
const gatewayTemplates = ["inject.tulle.io/templates", "inject.istio.io/templates"];

export function podRow(pod: Pod): PodRow {
  const annotations = pod.metadata.annotations ?? {};
  const isGateway = gatewayTemplates.some((name) => annotations[name] === "gateway");
  const condition = pod.status?.conditions?.find(({ type }) => type === "Ready");
  const address = pod.status?.podIP ?? "";
  return {
    name: pod.metadata.name,
    namespace: pod.metadata.namespace,
    labels: pod.metadata.labels ?? {},
    address,
    app: isGateway
      ? null
      : {
          address: annotations[appAddressAnnotation] ?? address,
          port: pod.spec.containers[0]?.ports?.[0]?.containerPort ?? null,
        },
    ready: condition?.status === "True",
    restarts: (pod.status?.containerStatuses ?? []).reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    ...(condition?.message === undefined ? {} : { message: condition.message }),
  };
}
