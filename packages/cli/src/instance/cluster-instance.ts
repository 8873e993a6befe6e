// A cluster as an instance: its control plane is reached by the API server's port-forward, over TLS that ends in the
// control plane itself, and shown the token of its state. Both the token and the roots are read with the user's
// rights: whoever may not read Secrets of the control plane's namespace has no way in here.
import {
  ApiClient,
  ApiError,
  type ApplyAnswer,
  type DeleteOptions,
  type MeshResource,
  type ResourceKey,
} from "@tulle/config";
import {
  type AnswerOf,
  asksLeader,
  type BodyOf,
  endpoints,
  type JsonEndpoint,
  type ParametersOf,
} from "@tulle/config/api";
import {
  collectionPath,
  controlPlanePorts,
  execInPod,
  forwardPort,
  type KubernetesClient,
  KubernetesError,
  unlessMissing,
  objectPath,
  rootNamespace,
  rootsConfigMap,
  stateSecret,
} from "@tulle/kubernetes";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext } from "../command/command-module.ts";
import { clusterFailure, findCluster } from "./cluster.ts";
import { instanceElsewhere } from "./control-plane-elsewhere.ts";
import type { ClusterInstance } from "./on-cluster.ts";

/** Of the Secret that the control plane keeps its state in (control-plane/src/api/api-token.ts). */
const tokenKey = "token";
const url = `https://tulled.${rootNamespace}:${controlPlanePorts.http.targetPort}`;
const fieldManager = "tulle";

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

interface Versioned {
  readonly metadata: { readonly resourceVersion?: string };
}

/** Undefined where no cluster is known. @throws {CommandFailure} */
export async function clusterInstance(
  options: ClusterOptions,
  context: Pick<CommandContext, "env" | "cwd">,
): Promise<ClusterInstance | undefined> {
  // Whoever has no home has no kubeconfig there.
  const env = { HOME: "/nonexistent", ...context.env };
  const client = await findCluster(options, { ...context, env });
  if (client === undefined) return undefined;
  try {
    return await instanceOf(client);
  } catch (error) {
    throw clusterFailure(error, client);
  }
}

async function instanceOf(client: KubernetesClient): Promise<ClusterInstance> {
  const replicas = await readyReplicas(client);
  const { token, rootsPem } = await credentials(client);
  const { server, origin } = client.access;
  const endpointOf = (pod: string) => ({
    url,
    token,
    rootsPem,
    connect: () => forwardPort(client, { namespace: rootNamespace, pod, port: controlPlanePorts.http.targetPort }),
  });
  const [first, ...others] = replicas.map(endpointOf);
  return {
    ...instanceElsewhere(origin, url, { url: server, token, rootsPem }),
    api: new ClusterApi(
      client,
      first!,
      others.map((endpoint) => new ApiClient({ endpoint })),
    ),
    client,
    connectTo: (target) => forwardPort(client, target),
    exec: (which, streams) => execInPod(client, which, streams),
    log: async ({ namespace, pod, container, follow, tailLines }) =>
      client.stream({
        path: `${objectPath("v1", "Pod", namespace, pod)}/log`,
        query: { container, follow, tailLines },
        accept: "*/*",
      }),
  };
}

async function readyReplicas(client: KubernetesClient): Promise<readonly string[]> {
  const { items } = await client.request<PodList>({
    path: collectionPath("v1", "Pod", rootNamespace),
    query: { labelSelector: "app=tulled" },
  });
  // One that ends is ready until its programs have closed their ports.
  const ready = items.filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined &&
      status?.conditions?.some((each) => each.type === "Ready" && each.status === "True"),
  );
  if (ready.length > 0) return ready.map(({ metadata }) => metadata.name);
  const what = items.length === 0 ? "no control plane runs" : "no control plane is ready";
  throw new CommandFailure(`${what} in ${rootNamespace} of ${client.access.origin}`, {
    hint: items.length === 0 ? "tulle install brings one there." : `Look at it: kubectl get pods -n ${rootNamespace}`,
    exitCode: exitCodes.noInstance,
  });
}

async function credentials(client: KubernetesClient): Promise<{ readonly token: string; readonly rootsPem: string }> {
  const secret = await client.request<{ readonly data?: Readonly<Record<string, string>> }>({
    path: objectPath("v1", "Secret", rootNamespace, stateSecret),
  });
  const roots = await client.request<{ readonly data?: Readonly<Record<string, string>> }>({
    path: objectPath("v1", "ConfigMap", rootNamespace, rootsConfigMap.name),
  });
  const token = Buffer.from(secret.data?.[tokenKey] ?? "", "base64")
    .toString("utf8")
    .trim();
  return { token, rootsPem: roots.data?.[rootsConfigMap.key] ?? "" };
}

/** Reads are the control plane's, which says what is in force; writes are the API server's, which says who may. */
class ClusterApi extends ApiClient {
  readonly #client: KubernetesClient;
  readonly #others: readonly ApiClient[];

  constructor(
    client: KubernetesClient,
    endpoint: ConstructorParameters<typeof ApiClient>[0]["endpoint"],
    others: readonly ApiClient[],
  ) {
    super({ endpoint });
    this.#client = client;
    this.#others = others;
  }

  /** Each replica knows the proxies that have come to it. */
  override async call<E extends JsonEndpoint>(
    endpoint: E,
    parameters: ParametersOf<E>,
    options: { readonly body?: BodyOf<E>; readonly timeoutMs?: number } = {},
  ): Promise<AnswerOf<E>> {
    const answer = await this.#callLeader(endpoint, parameters, options);
    if (endpoint.path !== endpoints.syncStatus.path) return answer;
    const more = await Promise.all(this.#others.map((other) => other.call(endpoint, parameters, options)));
    const rows = [answer, ...more].flat() as readonly { readonly proxy: string }[];
    return rows.toSorted((a, b) => (a.proxy < b.proxy ? -1 : 1)) as AnswerOf<E>;
  }

  /** Roll-outs are steered by the replica that leads alone: the others name it, and change nothing. */
  async #callLeader<E extends JsonEndpoint>(
    endpoint: E,
    parameters: ParametersOf<E>,
    options: { readonly body?: BodyOf<E>; readonly timeoutMs?: number },
  ): Promise<AnswerOf<E>> {
    const replicas = endpoint.path === endpoints.steerRollout.path ? this.#others : [];
    let refusal: unknown;
    for (const ask of [super.call.bind(this), ...replicas.map((other) => other.call.bind(other))]) {
      try {
        return await ask(endpoint, parameters, options);
      } catch (error) {
        if (!(error instanceof ApiError) || !error.message.startsWith(asksLeader)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }

  override async apply({ apiVersion, kind, metadata, ...rest }: MeshResource): Promise<ApplyAnswer> {
    const { namespace, name, labels, annotations } = metadata;
    const path = objectPath(apiVersion, kind, namespace, name);
    const own = { name, labels, annotations, ...(namespace === "" ? {} : { namespace }) };
    const { status: _status, ...content } = rest as { readonly status?: unknown };
    try {
      const before = await this.#version(path);
      const body = { apiVersion, kind, metadata: own, ...content };
      const written = await this.#client.apply<Versioned>(path, body, fieldManager);
      const same = written.metadata.resourceVersion === before;
      const outcome = before === undefined ? "created" : same ? "unchanged" : "configured";
      return { outcome, findings: [] } as unknown as ApplyAnswer;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (error.code === 0) throw new ApiError(0, error.message, { cause: error });
      return { outcome: "rejected", message: error.message, findings: [] };
    }
  }

  override async delete(key: ResourceKey, { atOnce = false }: DeleteOptions = {}): Promise<MeshResource | undefined> {
    const present = await this.get(key.kind as MeshResource["kind"], key.namespace, key.name);
    if (present === undefined) return undefined;
    try {
      await this.#client.request({
        method: "DELETE",
        path: objectPath(present.apiVersion, present.kind, key.namespace, key.name),
        body: { apiVersion: "v1", kind: "DeleteOptions", ...(atOnce ? { gracePeriodSeconds: 0 } : {}) },
      });
      return present;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (error.code === 404) return undefined;
      throw new ApiError(error.code, error.message, { cause: error });
    }
  }

  async #version(path: string): Promise<string | undefined> {
    return (await unlessMissing(this.#client.request<Versioned>({ path })))?.metadata.resourceVersion;
  }
}
