// Makes the pods of this machine what the Deployments in the store say, and what the store says of pods and endpoints
// what is true on this machine.
//
// One loop owns all state. Anything that happens (a resource changes, a pod's phase or readiness changes) asks for a
// pass; a pass compares the wanted with the actual and starts or lets go of pods, then hands the resulting Pods and
// EndpointSlices to the publisher. A pass never waits: whatever takes time asks for another pass when it is done.
import { randomBytes } from "node:crypto";
import {
  isBehind,
  isKind,
  type Kind,
  keyOf,
  keyText,
  meshConfigOf,
  secretKeys,
  secretValue,
  type ApiClient,
  type Deployment,
  type Pod,
  type ResourceWatch,
  type Service,
} from "@tulle/config";
import { allAcknowledged } from "../control-plane-process.ts";
import { type PublishedPort, publishedUrl } from "../instance.ts";
import type { MeshNetwork } from "../network/pod-network.ts";
import { PublishedPorts, type PortProblem } from "./published-ports.ts";
import { LocalPod, type PodListener, type PodSettings } from "../pod/local-pod.ts";
import { isWarm } from "../pod/is-warm.ts";
import { planPods, podName, type PlanProblem, type PodPlan, type ProxyKind } from "../pod/pod-plan.ts";
import type { TextsOf } from "../pod/variables.ts";
import type { ProcessEnd } from "../process/supervised-process.ts";
import { waitUntil } from "../process/wait-until.ts";
import type { StateDirectory } from "../state-directory.ts";
import type { SupervisorEvent } from "../supervisor-event.ts";
import { planRollout } from "./plan-rollout.ts";
import { isOurs, publishedResources } from "./published-resources.ts";
import { RestartWishes } from "./restart-wishes.ts";
import type { PortMapping } from "./published-port-mappings.ts";
import { type HeardStore, Publisher } from "./publisher.ts";

export interface ReconcilerOptions {
  readonly api: ApiClient;
  readonly state: StateDirectory;
  readonly network: MeshNetwork;
  /** Proxy of pods that name none. */
  readonly proxy: ProxyKind;
  readonly hasEnvoy: boolean;
  readonly publish: readonly PortMapping[];
  readonly podSettings: Omit<PodSettings, "publishedPorts" | "textsOf">;
  readonly onEvent: (event: SupervisorEvent) => void;
}

const watchedKinds: readonly Kind[] = [
  "Namespace",
  "Deployment",
  "Service",
  "Pod",
  "EndpointSlice",
  // What variables of programs come from.
  "ConfigMap",
  "Secret",
];

const portRetryMs = 2000;
const missingSuggestion = "It starts as soon as that is there: add it to the manifests, or apply it.";

/** How long a leaving pod waits at most until every proxy has acknowledged that it is no endpoint any more. */
const withdrawTimeoutMs = 20_000;

export class Reconciler implements PodListener {
  readonly #options: ReconcilerOptions;
  readonly #publisher: Publisher;
  readonly #ports: PublishedPorts;
  readonly #pods = new Map<string, LocalPod>();
  readonly #toldProblems = new Set<string>();
  readonly #wishes = new RestartWishes();
  #watch: ResourceWatch | undefined;
  /** Passes are made: published ports are held, and nothing is being stopped. */
  #isOpen = false;
  #passWanted = false;
  #portTimer: NodeJS.Timeout | undefined;
  /** Replicas that the last pass found no loopback address for. */
  #withoutAddress = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#ports = new PublishedPorts(options.publish, options.network.machine);
    this.#publisher = new Publisher(
      options.api,
      () => this.#heardStore(),
      (error) => this.#trouble(`writing pods to the store: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  /** Reads what is there, and what an earlier run left. Nothing is started before `open`. */
  async connect(): Promise<void> {
    this.#watch ??= this.#options.api.watch(watchedKinds, { onChanges: () => this.#pass() });
    await this.#watch.ready;
  }

  /** Takes the published ports and begins; answers instead the first thing that stands in the way of a port. */
  open(): PortProblem | undefined {
    const [problem] = this.#updatePorts();
    if (problem !== undefined) return problem;
    for (const { hostPort, targetPort } of this.#ports.unusedOverrides()) {
      const what = `no Service publishes the target port ${targetPort}`;
      this.#options.onEvent({ type: "trouble", message: `--publish ${hostPort}:${targetPort} has no effect: ${what}` });
    }
    this.#isOpen = true;
    this.#passNow();
    return undefined;
  }

  pods(): readonly LocalPod[] {
    return [...this.#pods.values()];
  }

  publishedPorts(): readonly PublishedPort[] {
    return this.#ports.list();
  }

  /** Resolves when a request through each published port that leads to a ready pod came back. */
  waitForAnswers(signal: AbortSignal): Promise<void> {
    const plans = this.#runnable().map((pod) => pod.plan);
    for (const published of this.#ports.list()) {
      const [name, namespace] = published.service.split(".");
      const found = this.#services().find(
        (each) => each.metadata.name === name && each.metadata.namespace === namespace,
      );
      if (found !== undefined && !plans.some((plan) => isBehind(found, plan))) {
        this.#trouble(`${publishedUrl(published)}: no pod that runs here is behind Service ${namespace}/${name}`);
      }
    }
    const onWaiting = (awaited: readonly string[]): void => this.#options.onEvent({ type: "waiting", awaited });
    return this.#ports.waitForAnswers(plans, signal, onWaiting, plans.length < this.#pods.size);
  }

  /** Whether as many pods as wanted are ready, those aside that cannot run here. */
  isConverged(): boolean {
    const deployments = this.#watch?.list("Deployment") ?? [];
    const wanted = deployments.reduce((sum, deployment) => sum + deployment.spec.replicas, 0);
    const possible = wanted - this.#withoutAddress;
    return !this.#passWanted && this.#pods.size >= possible && this.#runnable().every((pod) => pod.ready);
  }

  /** For people: which pods are not ready. */
  describeMissing(): string {
    const waiting = this.#runnable().filter((pod) => !pod.ready);
    return `pods to become ready: ${waiting.map((pod) => `${pod.name} (${pod.failure ?? pod.phase})`).join(", ")}`;
  }

  /** Whether every proxy has acknowledged, or refused, all that the control plane sent. */
  async isAcknowledged(): Promise<boolean> {
    // Asked instead of waited for: whoever waits for this has a limit, which a store that is gone must not outlast.
    if (!this.#publisher.isSettled) return false;
    const names = this.#runnable()
      .filter((pod) => pod.plan.injection !== "none")
      .map((pod) => `${pod.name}.${pod.plan.namespace}`);
    return allAcknowledged(this.#options.api, names);
  }

  /**
   * Whether at this moment as many pods as wanted are ready, every proxy has acknowledged what is meant for it, and
   * serves it: what was true of each a moment ago may have changed what is meant for the others.
   */
  async isServing(): Promise<boolean> {
    if (!this.isConverged() || !(await this.isAcknowledged())) return false;
    const proxied = this.#runnable().filter((pod) => pod.plan.injection !== "none");
    const warm = await Promise.all(proxied.map((pod) => isWarm(pod.network)));
    return warm.every(Boolean) && this.isConverged();
  }

  /** The control plane was lost, and perhaps all that was written to it. */
  republish(): void {
    this.#publisher.reset();
  }

  boundLogs(): void {
    for (const pod of this.#pods.values()) pod.boundLogs();
  }

  /** Lets all pods leave at once, each in good order. */
  async stop(): Promise<void> {
    this.#close();
    await Promise.all(this.pods().map((pod) => pod.leave({ drain: false })));
    this.#ports.close();
  }

  destroy(): void {
    this.#close();
    for (const pod of this.pods()) pod.destroy();
    this.#ports.close();
  }

  onChange(pod: LocalPod): void {
    if (pod.phase === "gone") this.#forget(pod);
    this.#options.onEvent({ type: "pods" });
    this.#pass();
  }

  onUnexpectedEnd(pod: LocalPod, processName: string, end: ProcessEnd, logFile: string): void {
    this.#options.onEvent({ type: "process-ended", name: `${pod.name} ${processName}`, logFile, end });
  }

  async withdrawn(): Promise<void> {
    this.#passNow();
    const limits = { timeoutMs: withdrawTimeoutMs, what: () => "the proxies to forget a leaving pod" };
    await waitUntil(() => this.isAcknowledged(), limits).catch((error: Error) => this.#trouble(error.message));
  }

  #close(): void {
    this.#isOpen = false;
    clearTimeout(this.#portTimer);
    this.#watch?.close();
    this.#publisher.close();
  }

  #forget(pod: LocalPod): void {
    const { state } = this.#options;
    this.#pods.delete(pod.name);
    this.#wishes.forget(pod.name);
    pod.network.close();
    state.removePodFolder(pod.name);
    state.retireLogs(pod.name);
  }

  #updatePorts(): readonly PortProblem[] {
    return this.#ports.update(this.#services());
  }

  #services(): readonly Service[] {
    return this.#watch?.list("Service") ?? [];
  }

  /** Asks for a pass after everything else that is happening now. */
  #pass(): void {
    if (this.#passWanted || !this.#isOpen) return;
    this.#passWanted = true;
    setImmediate(() => this.#passNow());
  }

  #passNow(): void {
    this.#passWanted = false;
    if (!this.#isOpen || this.#watch === undefined) return;
    const problems = this.#updatePorts();
    for (const problem of problems) this.#tell(problem.subject, problem);
    clearTimeout(this.#portTimer);
    // Nobody tells when another program lets go of a port.
    if (problems.some(({ takenPort }) => takenPort !== undefined))
      this.#portTimer = setTimeout(() => this.#pass(), portRetryMs).unref();
    this.#options.network.followServices?.(this.#services(), this.#watch.list("EndpointSlice"));
    const deployments = this.#watch.list("Deployment");
    for (const pod of this.#watch.list("Pod")) this.#takeWishes(pod);
    const owners = new Set(deployments.map((deployment) => keyText(keyOf(deployment))));
    this.#withoutAddress = 0;
    for (const deployment of deployments) this.#rollOut(deployment, this.#planOf(deployment));
    for (const pod of this.#pods.values()) {
      if (!pod.leaving && !owners.has(ownerKey(pod))) void pod.leave({ drain: true });
    }
    for (const pod of this.pods()) {
      pod.tryAgain();
      if (pod.missing !== undefined)
        this.#tell(`pod ${pod.plan.namespace}/${pod.name}`, { message: pod.missing, suggestion: missingSuggestion });
    }
    this.#publisher.publish(publishedResources(this.pods(), this.#services(), this.#wishes));
  }

  #textsOf(kind: "ConfigMap" | "Secret", namespace: string, name: string): ReturnType<TextsOf> {
    if (kind === "ConfigMap") {
      const configMap = this.#watch?.get(kind, namespace, name);
      return configMap && new Map(Object.entries(configMap.data ?? {}));
    }
    const secret = this.#watch?.get(kind, namespace, name);
    return secret && new Map(secretKeys(secret).map((key) => [key, secretValue(secret, key)!]));
  }

  #planOf(deployment: Deployment): PodPlan {
    const namespace = this.#watch?.get("Namespace", "", deployment.metadata.namespace);
    const labels = deployment.spec.template.metadata?.labels ?? {};
    const ports = this.#ports.forPod({ namespace: deployment.metadata.namespace, labels });
    const publishedPorts = ports.map(({ hostPort, targetPort }) => `${hostPort}:${targetPort}`);
    const { proxy, hasEnvoy } = this.#options;
    const mesh = meshConfigOf(this.#watch?.list("ConfigMap") ?? []);
    return planPods(deployment, namespace, { proxy, hasEnvoy, publishedPorts, mesh });
  }

  #rollOut(deployment: Deployment, plan: PodPlan): void {
    const key = keyText(keyOf(deployment));
    const own = this.pods().filter((pod) => ownerKey(pod) === key);
    const pods = own.map((pod) => ({
      name: pod.name,
      isCurrent: pod.plan.templateHash === plan.templateHash && !this.#wishes.wantsReplaced(pod.name),
      ready: pod.ready,
      leaving: pod.leaving,
    }));
    const step = planRollout(deployment.spec.replicas, pods);
    for (const name of step.remove) void this.#pods.get(name)?.leave({ drain: true });
    const possible = this.#options.network.room(plan);
    if (step.start > possible) this.#tellNoAddress(deployment, step.start - possible);
    for (let count = 0; count < Math.min(step.start, possible); count += 1) this.#startPod(plan);
    this.#restartProxies(own, deployment.spec.replicas);
  }

  /**
   * One after the other, and each only while as many pods as wanted are ready: with one replica there is no other to
   * answer.
   */
  #restartProxies(pods: readonly LocalPod[], replicas: number): void {
    const ready = pods.filter((pod) => pod.ready && !pod.leaving);
    const next = ready.find(({ name }) => this.#wishes.wantsProxyRestarted(name));
    if (next === undefined || ready.length < replicas || pods.some((pod) => pod.restartsProxy)) return;
    void next.restartProxy().then(() => {
      this.#wishes.grantProxy(next.name);
      this.#pass();
    });
  }

  /**
   * What somebody has written on a pod: that it is deleted (it leaves at once, and another one begins), or to be
   * restarted.
   */
  #takeWishes(pod: Pod): void {
    const own = this.#pods.get(pod.metadata.name);
    if (own === undefined || own.uid !== pod.metadata.uid) return;
    if (pod.metadata.deletionTimestamp === undefined) this.#wishes.take(pod);
    else if (!own.leaving) void own.leave({ drain: true });
  }

  #heardStore(): HeardStore {
    const watch = this.#watch;
    return {
      resourceVersion: watch?.resourceVersion,
      ours: [...(watch?.list("Pod") ?? []), ...(watch?.list("EndpointSlice") ?? [])].filter(isOurs),
      get: ({ kind, namespace, name }) => (isKind(kind) ? watch?.get(kind, namespace, name) : undefined),
    };
  }

  #tellNoAddress({ metadata, spec }: Deployment, missing: number): void {
    this.#withoutAddress += missing;
    this.#tell(`Deployment ${metadata.namespace}/${metadata.name}`, {
      message: `not all of its ${spec.replicas} replicas can run here: the instance has no address left for them`,
      suggestion: "Lower spec.replicas: an instance has addresses for about 500 pods.",
    });
  }

  #startPod(plan: PodPlan): void {
    const { network, podSettings, onEvent } = this.#options;
    const name = podName(plan, randomBytes(5));
    const textsOf: TextsOf = (...what) => this.#textsOf(...what);
    const settings = { ...podSettings, publishedPorts: this.#ports.forPod(plan), textsOf };
    const pod = new LocalPod(name, plan, network.newPod(name, plan), settings, this);
    this.#pods.set(name, pod);
    const owner = `Deployment ${plan.namespace}/${plan.deployment}`;
    for (const problem of plan.problems) this.#tell(`${owner}, pod ${name}`, problem);
    for (const remark of plan.remarks) this.#tell(owner, remark);
    onEvent({ type: "pods" });
    pod.start();
  }

  #runnable(): readonly LocalPod[] {
    return this.pods().filter((pod) => pod.phase !== "blocked" && pod.missing === undefined && !pod.leaving);
  }

  // Each pass finds the same problems again.
  #tell(subject: string, problem: PlanProblem): void {
    if (this.#toldProblems.has(problem.message + subject)) return;
    this.#toldProblems.add(problem.message + subject);
    this.#options.onEvent({ type: "problem", subject, problem });
  }

  #trouble(message: string): void {
    if (this.#isOpen) this.#options.onEvent({ type: "trouble", message });
  }
}

function ownerKey(pod: LocalPod): string {
  return keyText({ kind: "Deployment", namespace: pod.plan.namespace, name: pod.plan.deployment });
}
