// `tulle up`: makes the processes of this machine what the Deployments in the store say, until it is told to stop.
//
// One loop owns all state. Anything that happens (a resource changes, a pod's phase or readiness changes) asks for a pass;
// a pass compares the wanted with the actual and starts or lets go of pods, then hands the resulting Pods and EndpointSlices to
// the publisher. A pass never waits: whatever takes time asks for another pass when it is done.
import { randomBytes } from "node:crypto";
import path from "node:path";
import {
  ApiClient,
  keyOf,
  keyText,
  type Deployment,
  type Finding,
  type MeshResource,
  type ResourceWatch,
  type Service,
} from "@tulle/config";
import { readFileSync } from "node:fs";
import { allAcknowledged, apiPort, controlPlaneSpec, refusals, xdsPort } from "./control-plane-process.ts";
import { removeInstance, writeInstance, type Instance } from "./instance.ts";
import { claimBlock, type AddressBlock } from "./network/address-block.ts";
import { PublishedPorts, withHolder, type PortProblem } from "./network/published-ports.ts";
import { LocalPod, type PodListener } from "./pod/local-pod.ts";
import { planPods, podName, type PlanProblem, type PodPlan, type ProxyKind } from "./pod/pod-plan.ts";
import { processStartTime } from "./process-start-time.ts";
import { SupervisedProcess, type ProcessEnd, type RestartPolicy } from "./process/supervised-process.ts";
import { waitUntil } from "./process/wait-until.ts";
import { buildEndpointSlices } from "./reconcile/endpoint-slices.ts";
import { planRollout } from "./reconcile/plan-rollout.ts";
import { appAddressAnnotation, buildPod } from "./reconcile/pod-resource.ts";
import type { PortMapping } from "./reconcile/published-port-mappings.ts";
import { Publisher } from "./reconcile/publisher.ts";
import { openStateDirectory, type StateDirectory } from "./state-directory.ts";

export interface UpOptions {
  /** Absolute path of the folder of manifests. */
  readonly dir: string;
  readonly proxy: ProxyKind;
  readonly restart: RestartPolicy;
  /** Host ports in place of those that the manifests name. */
  readonly publish: readonly PortMapping[];
  /** Forget what was applied in earlier runs. */
  readonly fresh: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Program and first arguments that stand for `tulle`. */
  readonly tulleCommand: readonly string[];
  /** Folder in which Tulle's own processes keep compiled code. */
  readonly tulleCompileCache: string;
  readonly onEvent: (event: SupervisorEvent) => void;
}

export type SupervisorEvent =
  /** Some pod's phase or readiness is different; `pods()` has them all. */
  | { readonly type: "pods" }
  | { readonly type: "process-ended"; readonly name: string; readonly logFile: string; readonly end: ProcessEnd }
  | { readonly type: "finding"; readonly finding: Finding }
  | { readonly type: "problem"; readonly subject: string; readonly problem: PlanProblem }
  | { readonly type: "trouble"; readonly message: string };

/** What the start needs cannot be had; the suggestion says what to do. */
export class CannotStart extends Error {
  override readonly name = "CannotStart";
  readonly suggestion: string;

  constructor(message: string, suggestion: string) {
    super(message);
    this.suggestion = suggestion;
  }
}

const clusterId = "local";
const controlPlaneStartMs = 15_000;
const readyTimeoutMs = 120_000;
/** How long a leaving pod waits at most until every proxy has acknowledged that it is no endpoint any more. */
const withdrawTimeoutMs = 5000;
/** The control plane gathers changes for a moment before it sends them; until then it calls every proxy synced. */
const debounceMs = 200;
const controlPlaneStopGraceMs = 5000;
const logCheckIntervalMs = 10_000;

export class Supervisor implements PodListener {
  readonly instance: Instance;
  readonly #options: UpOptions;
  readonly #state: StateDirectory;
  readonly #block: AddressBlock;
  readonly #controlPlane: SupervisedProcess;
  readonly #api: ApiClient;
  readonly #publisher: Publisher;
  readonly #ports: PublishedPorts;
  readonly #pods = new Map<string, LocalPod>();
  readonly #toldProblems = new Set<string>();
  readonly #logTimer: NodeJS.Timeout;
  #watch: ResourceWatch | undefined;
  /** Published ports are held, so that pods may start. */
  #open = false;
  #passWanted = false;
  #stopping = false;

  private constructor(options: UpOptions, state: StateDirectory, block: AddressBlock, startTime: string) {
    this.#options = options;
    this.#state = state;
    this.#block = block;
    const address = block.controlPlaneAddress;
    this.instance = {
      dir: options.dir,
      stateDir: state.path,
      pid: process.pid,
      pidStartTime: startTime,
      apiUrl: `http://${address}:${apiPort}`,
      xdsAddress: `${address}:${xdsPort}`,
      tokenFile: state.tokenFile,
      publishedPorts: [],
      ready: false,
      startedAt: new Date().toISOString(),
    };
    const token = readFileSync(state.tokenFile, "utf8").trim();
    this.#api = new ApiClient({ endpoint: { url: this.instance.apiUrl }, token });
    this.#publisher = new Publisher(this.#api, (error) => this.#trouble(`writing pods to the store: ${reason(error)}`));
    this.#ports = new PublishedPorts(options.publish);
    const logFile = path.join(state.logsFolder, "control-plane.log");
    const spec = controlPlaneSpec({
      state,
      address,
      tulleCommand: options.tulleCommand,
      env: options.env,
      nodePath: process.execPath,
      tulleCompileCache: options.tulleCompileCache,
      fresh: options.fresh,
      clusterId,
      owner: `${process.pid}-${startTime}`,
      restart: options.restart,
      logFile,
    });
    this.#controlPlane = new SupervisedProcess(spec, {
      onUnexpectedEnd: (end) => {
        options.onEvent({ type: "process-ended", name: spec.name, logFile, end });
        this.#publisher.reset();
      },
    });
    this.#logTimer = setInterval(() => this.#boundLogs(), logCheckIntervalMs).unref();
  }

  /**
   * Takes the folder and starts its control plane; the rest follows by itself. `ready` tells when all of it runs.
   * @throws {FolderInUse}
   */
  static async start(options: UpOptions): Promise<Supervisor> {
    const state = openStateDirectory(options.dir);
    const block = await claimBlock(options.dir, state.lastBlockIndex);
    state.rememberBlock(block.index);
    const startTime = (await processStartTime(process.pid)) ?? "unknown";
    const supervisor = new Supervisor(options, state, block, startTime);
    supervisor.#controlPlane.start();
    await writeInstance(supervisor.instance, options.env);
    return supervisor;
  }

  pods(): readonly LocalPod[] {
    return [...this.#pods.values()];
  }

  /**
   * Resolves when all pods that can run here are ready, every proxy has acknowledged its configuration and one request through each
   * published port has come back. @throws when that does not happen in time, or a published port cannot be had
   */
  async ready(signal: AbortSignal): Promise<Instance> {
    await this.#connect(signal);
    for (const finding of await this.#api.findings()) this.#options.onEvent({ type: "finding", finding });
    await this.#claimPorts();
    this.#open = true;
    this.#pass();
    await waitUntil(() => this.#converged(), { timeoutMs: readyTimeoutMs, signal, what: () => this.#missing() });
    await this.#publisher.settled();
    await waitUntil(() => allAcknowledged(this.instance.apiUrl, this.#proxyNames()), {
      timeoutMs: readyTimeoutMs,
      signal,
      what: () => "every proxy to acknowledge its configuration",
    });
    await this.#ports.waitForAnswers(signal);
    for (const refusal of await refusals(this.instance.apiUrl)) this.#trouble(refusal);
    const instance = { ...this.instance, ready: true, publishedPorts: this.#ports.list() };
    await writeInstance(instance, this.#options.env);
    return instance;
  }

  /** Ends everything in good order: the programs, then their proxies, then the control plane. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#logTimer);
    this.#watch?.close();
    this.#publisher.close();
    await Promise.all(this.pods().map((pod) => pod.leave({ drain: false })));
    await this.#controlPlane.stop(controlPlaneStopGraceMs);
    await this.#release();
  }

  /** Ends everything at once. */
  async destroy(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#logTimer);
    this.#watch?.close();
    this.#publisher.close();
    for (const pod of this.pods()) pod.destroy();
    this.#controlPlane.destroy();
    await this.#release();
  }

  async #release(): Promise<void> {
    this.#ports.close();
    this.#block.close();
    await removeInstance(this.instance, this.#options.env);
    this.#state.unlock();
  }

  onChange(pod: LocalPod): void {
    if (pod.phase === "gone") {
      this.#pods.delete(pod.name);
      this.#block.release(pod.addresses.pod);
      if (pod.addresses.app !== pod.addresses.pod) this.#block.release(pod.addresses.app);
      this.#state.removePodFolder(pod.name);
      this.#state.retireLogs(pod.name);
    }
    this.#options.onEvent({ type: "pods" });
    this.#pass();
  }

  onUnexpectedEnd(pod: LocalPod, processName: string, end: ProcessEnd): void {
    const logFile = path.join(this.#state.logsFolder, pod.name);
    this.#options.onEvent({ type: "process-ended", name: `${pod.name} ${processName}`, logFile, end });
  }

  async withdrawn(): Promise<void> {
    this.#passNow();
    await this.#publisher.settled();
    let acknowledgedSinceMs: number | undefined;
    const settled = async (): Promise<boolean> => {
      if (!(await allAcknowledged(this.instance.apiUrl, this.#proxyNames()))) acknowledgedSinceMs = undefined;
      else acknowledgedSinceMs ??= performance.now();
      return acknowledgedSinceMs !== undefined && performance.now() - acknowledgedSinceMs >= debounceMs;
    };
    await waitUntil(settled, {
      timeoutMs: withdrawTimeoutMs,
      what: () => "the proxies to forget a leaving pod",
    }).catch((error: unknown) => this.#trouble(reason(error)));
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const isUp = async (): Promise<boolean> => {
      if (this.#controlPlane.state === "failed") throw new Error("the control plane has ended; see its log");
      const [pods, slices] = await Promise.all([this.#api.list("Pod"), this.#api.list("EndpointSlice")]);
      this.#publisher.adopt([...pods.items, ...slices.items].filter(isOurs));
      return true;
    };
    await waitUntil(isUp, {
      timeoutMs: controlPlaneStartMs,
      signal,
      what: () => `the control plane to answer at ${this.instance.apiUrl}; its log: ${this.#controlPlane.spec.logFile}`,
    });
    this.#watch = this.#api.watch(["Namespace", "Deployment", "Service"], { onChanges: () => this.#pass() });
    await this.#watch.ready;
  }

  // A port that is taken at the start is an error that ends the start; later it is a problem that is told.
  async #claimPorts(): Promise<void> {
    const [problem] = this.#updatePorts();
    if (problem === undefined) return;
    const told = await withHolder(problem);
    throw new CannotStart(`${told.subject}: ${told.message}`, told.suggestion);
  }

  #updatePorts(): readonly PortProblem[] {
    const deployments = this.#watch?.list("Deployment") ?? [];
    return this.#ports.update(this.#services(), (service) =>
      deployments.some((deployment) => this.#planOf(deployment).proxy === "envoy" && selects(service, deployment)),
    );
  }

  #services(): readonly Service[] {
    return this.#watch?.list("Service") ?? [];
  }

  /** Asks for a pass after everything else that is happening now. */
  #pass(): void {
    if (this.#passWanted || this.#stopping || !this.#open || this.#watch === undefined) return;
    this.#passWanted = true;
    setImmediate(() => this.#passNow());
  }

  #passNow(): void {
    this.#passWanted = false;
    if (this.#stopping || !this.#open || this.#watch === undefined) return;
    for (const problem of this.#updatePorts()) this.#tell(problem.subject, problem);
    const deployments = this.#watch.list("Deployment");
    const plans = new Map(deployments.map((deployment) => [keyText(keyOf(deployment)), this.#planOf(deployment)]));
    for (const deployment of deployments) this.#rollOut(deployment, plans.get(keyText(keyOf(deployment)))!);
    for (const pod of this.#pods.values()) {
      if (!pod.leaving && !plans.has(ownerKey(pod))) void pod.leave({ drain: true });
    }
    this.#publisher.publish(this.#resources());
  }

  #planOf(deployment: Deployment): PodPlan {
    const namespace = this.#watch?.get("Namespace", "", deployment.metadata.namespace);
    const labels = deployment.spec.template.metadata?.labels ?? {};
    const ports = this.#ports.forPod({ namespace: deployment.metadata.namespace, labels });
    const publishedPorts = ports.map(({ hostPort, targetPort }) => `${hostPort}:${targetPort}`);
    return planPods(deployment, namespace, { proxy: this.#options.proxy, publishedPorts });
  }

  #rollOut(deployment: Deployment, plan: PodPlan): void {
    const key = keyText(keyOf(deployment));
    const pods = this.pods().filter((pod) => ownerKey(pod) === key);
    const view = pods.map((pod) => ({
      name: pod.name,
      templateHash: pod.plan.templateHash,
      ready: pod.ready,
      leaving: pod.leaving,
    }));
    const step = planRollout(deployment.spec.replicas, plan.templateHash, view);
    for (const name of step.remove) void this.#pods.get(name)?.leave({ drain: true });
    for (let count = 0; count < step.start; count += 1) this.#startPod(plan);
  }

  #startPod(plan: PodPlan): void {
    const name = podName(plan, randomBytes(5));
    const address = this.#block.allocate();
    const addresses = { pod: address, app: plan.injection === "sidecar" ? this.#block.allocate() : address };
    const state = this.#state;
    const pod = new LocalPod(
      name,
      plan,
      addresses,
      {
        tulleCommand: this.#options.tulleCommand,
        env: this.#options.env,
        nodePath: process.execPath,
        tulleCompileCache: this.#options.tulleCompileCache,
        appCompileCache: path.join(state.path, "compile-cache"),
        xdsAddress: this.instance.xdsAddress,
        clusterId,
        podStateFolder: (podFolderName) => state.podFolder(podFolderName),
        publishedPorts: this.#ports.forPod(plan),
        commandFolder: state.dir,
        logsFolder: state.logsFolder,
        restart: this.#options.restart,
      },
      this,
    );
    this.#pods.set(name, pod);
    for (const problem of plan.problems)
      this.#tell(`Deployment ${plan.namespace}/${plan.deployment}, pod ${name}`, problem);
    this.#options.onEvent({ type: "pods" });
    pod.start();
  }

  #resources(): MeshResource[] {
    const pods = this.pods();
    const endpointPods = pods
      .filter((pod) => pod.phase !== "blocked")
      .map((pod) => ({
        name: pod.name,
        namespace: pod.plan.namespace,
        labels: pod.plan.labels,
        address: pod.addresses.pod,
        ports: pod.ports,
        ready: pod.ready,
        leaving: pod.leaving,
      }));
    // Endpoints first: a leaving pod is to be forgotten before anything else is told of it.
    return [...buildEndpointSlices(this.#services(), endpointPods), ...pods.map(buildPod)];
  }

  #runnable(): readonly LocalPod[] {
    return this.pods().filter((pod) => pod.phase !== "blocked" && !pod.leaving);
  }

  #converged(): boolean {
    if (this.#passWanted || this.#watch === undefined) return false;
    return this.#runnable().every((pod) => pod.ready) && this.#wantedPods() <= this.#pods.size;
  }

  #wantedPods(): number {
    return (this.#watch?.list("Deployment") ?? []).reduce((sum, deployment) => sum + deployment.spec.replicas, 0);
  }

  #missing(): string {
    const waiting = this.#runnable().filter((pod) => !pod.ready);
    return `pods to become ready: ${waiting.map((pod) => `${pod.name} (${pod.phase})`).join(", ")}`;
  }

  #proxyNames(): readonly string[] {
    return this.#runnable()
      .filter((pod) => pod.plan.injection !== "none")
      .map((pod) => `${pod.name}.${pod.plan.namespace}`);
  }

  // A Deployment that cannot run would say so again for each of its pods and at each pass.
  #tell(subject: string, problem: PlanProblem): void {
    if (this.#toldProblems.has(problem.message + subject)) return;
    this.#toldProblems.add(problem.message + subject);
    this.#options.onEvent({ type: "problem", subject, problem });
  }

  #trouble(message: string): void {
    if (!this.#stopping) this.#options.onEvent({ type: "trouble", message });
  }

  #boundLogs(): void {
    this.#controlPlane.boundLog();
    for (const pod of this.#pods.values()) pod.boundLogs();
  }
}

function selects(service: Service, deployment: Deployment): boolean {
  const labels = deployment.spec.template.metadata?.labels ?? {};
  const selector = Object.entries(service.spec.selector ?? {});
  return (
    service.metadata.namespace === deployment.metadata.namespace &&
    selector.length > 0 &&
    selector.every(([key, value]) => labels[key] === value)
  );
}

function ownerKey(pod: LocalPod): string {
  return keyText({ kind: "Deployment", namespace: pod.plan.namespace, name: pod.plan.deployment });
}

/** Whether an object in the store was written by a supervisor; manifests may hold Pods and EndpointSlices of their own. */
function isOurs(resource: MeshResource): boolean {
  return resource.kind === "Pod"
    ? resource.metadata.annotations?.[appAddressAnnotation] !== undefined
    : resource.metadata.labels?.["endpointslice.kubernetes.io/managed-by"] === "tulle-local";
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
