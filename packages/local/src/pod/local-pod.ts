// One pod: a sidecar (or a gateway's proxy) and the programs beside it, in the order that loses no request.
//
// Phases, in this order; none is ever gone back to:
// - `blocked`: it cannot run here; nothing is started, the problems say why
// - `starting-proxy`: the proxy runs and is not ready yet; the programs are held
// - `starting-app`: the programs run; not all have passed their first readiness probe
// - `running`: all have passed it once. `ready` says whether they still do: a probe that fails or a process that ended
//   takes the pod out of its Services until it is well again
// - `draining`: it is about to leave: the endpoints are withdrawn, everything still answers
// - `stopping-app`: the programs got SIGTERM; the proxy still serves them
// - `stopping-proxy`: the programs are gone; the proxy was told to end
// - `gone`: nothing of it runs
//
// A pod without a proxy skips the proxy's phases, a gateway those of the programs.
import { randomUUID } from "node:crypto";
import path from "node:path";
import type { ProcessEnd, ProcessSpec, RestartPolicy } from "../process/supervised-process.ts";
import { appLaunch, isPartOfTulle } from "./environment.ts";
import type { PodAddresses, PodNetwork } from "../network/pod-network.ts";
import { type EntryAnswer, entryOf, localhostOf } from "./pod-entry.ts";
import { type ContainerPlan, type ContainerPort, podLabels, type PodPlan } from "./pod-plan.ts";
import { Program, type ProgramOwner, type ProgramState, proxyContainer } from "./program.ts";
import { sidecarSpec, terminationDrainMs, tokenFile, type SidecarSettings } from "./sidecar.ts";
import { untilQuiet } from "./until-quiet.ts";
import type { TextsOf } from "./variables.ts";
import type { WorkloadTokens } from "./workload-tokens.ts";

export type PodPhase =
  | "blocked"
  | "starting-proxy"
  | "starting-app"
  | "running"
  | "draining"
  | "stopping-app"
  | "stopping-proxy"
  | "gone";

export interface PodSettings extends SidecarSettings {
  /** Folder that commands are relative to. */
  readonly commandFolder: string;
  readonly logsFolder: string;
  readonly appCompileCache: string;
  readonly restart: RestartPolicy;
  /** Proves to the control plane who a pod's proxy is. */
  readonly tokens: Pick<WorkloadTokens, "begin" | "end">;
  readonly textsOf: TextsOf;
  /** How long a probe fails before that is told. */
  readonly tellFailureAfterMs?: number;
}

export interface PodListener {
  /** Phase or readiness has changed. */
  onChange(pod: LocalPod): void;
  /** `process` names it within the pod: `proxy`, or a container. */
  onUnexpectedEnd(pod: LocalPod, process: string, end: ProcessEnd, logFile: string): void;
  /** Resolves when no proxy begins a request to the pod any more, or when waiting for that has taken long enough. */
  withdrawn(pod: LocalPod): Promise<void>;
}

/** What the proxy and its agent listen at besides the pod's own ports: admin pages, the way out, metrics, health. */
const proxyPorts = [15_000, 15_007, 15_020, 15_021];
/** What is left of a proxy this long after it should have drained is stuck. */
const proxyStopGraceMs = 5000;
const networkRetryMs = 5000;

export class LocalPod implements ProgramOwner {
  readonly name: string;
  readonly plan: PodPlan;
  readonly network: PodNetwork;
  /** Tells the pod from an earlier one of its name. */
  readonly uid = randomUUID();
  readonly createdAt: string;
  readonly #settings: PodSettings;
  #phase: PodPhase;
  readonly #listener: PodListener;
  readonly #proxy: Program | undefined;
  readonly #programs: readonly Program[];
  #leaving: Promise<void> | undefined;
  #networkFailure: string | undefined;
  #networkTimer: NodeJS.Timeout | undefined;
  /** When it was told to leave (RFC 3339). */
  leavingSince: string | undefined;
  #proxyRestart: Promise<void> | undefined;
  /** There while the pod is ready, where its network leads published ports to it. */
  #wayIn: { close(): void } | undefined;

  constructor(name: string, plan: PodPlan, network: PodNetwork, settings: PodSettings, listener: PodListener) {
    this.name = name;
    this.plan = plan;
    this.network = network;
    this.createdAt = new Date().toISOString();
    this.#listener = listener;
    this.#settings = settings;
    this.#phase = plan.problems.length > 0 ? "blocked" : "starting-proxy";
    if (this.#phase === "blocked") {
      this.#programs = [];
      return;
    }
    const folder = path.join(settings.logsFolder, name);
    if (plan.injection !== "none") {
      const log = path.join(folder, "proxy.log");
      const proxy: Program = new Program({
        owner: this,
        spec: sidecarSpec(this, settings, log, settings.restart),
        plan: undefined,
        address: network.addresses.pod,
        network,
        // All that may be listened at for its part: what does not listen there yet is no matter.
        ports: plan.injection === "gateway" ? proxyPorts : [...proxyPorts, ...this.ports.map(({ port }) => port)],
        leaders: () => pidsOf([proxy]),
        tellFailureAfterMs: settings.tellFailureAfterMs,
      });
      this.#proxy = proxy;
    }
    this.#programs = plan.containers.map((container, index) => {
      const log = path.join(folder, index === 0 ? "app.log" : `${container.name}.log`);
      return new Program({
        owner: this,
        spec: this.#appSpec(container, settings, log),
        plan: container,
        address: network.appAt,
        network,
        ports: [],
        leaders: () => pidsOf(this.#programs),
        tellFailureAfterMs: settings.tellFailureAfterMs,
      });
    });
  }

  get addresses(): PodAddresses {
    return this.network.addresses;
  }

  get phase(): PodPhase {
    return this.#phase;
  }

  /** Whether Services send to it. */
  get ready(): boolean {
    return this.#phase === "running" && this.#all.every((program) => program.ready);
  }

  /**
   * Of a pod that is not ready: which probe of which container fails, and how. Undefined at first, and when nothing is
   * known.
   */
  get failure(): string | undefined {
    return this.ready
      ? undefined
      : (this.#networkFailure ??
          this.missing ??
          this.#all.find(({ toldFailure }) => toldFailure !== undefined)?.toldFailure);
  }

  /** What a program of it needs before it can be started; undefined when none waits for anything. */
  get missing(): string | undefined {
    const held = this.leaving ? undefined : this.#programs.find(({ process }) => process.missing !== undefined);
    return held && `container ${held.plan?.name} is not started: ${held.process.missing}`;
  }

  /** Starts what was held for something that is there now. */
  tryAgain(): void {
    for (const { process } of this.#programs) process.tryAgain();
  }

  get leaving(): boolean {
    return this.#leaving !== undefined;
  }

  get restarts(): number {
    return this.#all.reduce((sum, program) => sum + program.process.restarts, 0);
  }

  get ports(): readonly ContainerPort[] {
    return this.plan.spec.containers.flatMap((container) =>
      (container.ports ?? []).map(({ name, containerPort }) => ({ name, port: containerPort })),
    );
  }

  /** The state of each program, the proxy first; of a blocked pod of those that it would have. */
  get programs(): readonly ProgramState[] {
    if (this.#phase === "blocked") {
      const names = this.plan.containers.map(({ name }) => name);
      const all = this.plan.injection === "none" ? names : [proxyContainer, ...names];
      const state = { waiting: { reason: "CannotRunHere" } };
      return all.map((name) => ({ name, ready: false, restarts: 0, pid: undefined, state }));
    }
    return this.#all.map(({ state }) => state);
  }

  get #all(): readonly Program[] {
    return this.#proxy === undefined ? this.#programs : [this.#proxy, ...this.#programs];
  }

  /** What a command needs to run as the container does. */
  entry(container: string | undefined): EntryAnswer {
    const localhost = localhostOf(this, this.#settings.publishedPorts);
    return entryOf(
      { name: this.name, plan: this.plan, programs: this.#all, network: this.network, localhost },
      container,
    );
  }

  start(): void {
    if (this.#phase !== "starting-proxy") return;
    if (this.network.prepare === undefined) this.#startAll();
    else void this.#prepareNetwork(this.network.prepare.bind(this.network));
  }

  #startAll(): void {
    if (this.#proxy === undefined) this.#startPrograms();
    else void this.#startProxy(this.#proxy);
  }

  /** Nothing is started in a network that is not whole; it is tried again, as a kubelet does. */
  async #prepareNetwork(prepare: NonNullable<PodNetwork["prepare"]>): Promise<void> {
    try {
      await prepare(this.#settings.podStateFolder(this.name), () => void this.leave({ drain: false }));
      this.#networkFailure = undefined;
    } catch (error) {
      if (this.leaving) return;
      this.#networkFailure = `its network cannot be made: ${error instanceof Error ? error.message : String(error)}`;
      this.onChange();
      this.#networkTimer = setTimeout(() => this.start(), networkRetryMs).unref();
      return;
    }
    // It may have been told to leave meanwhile.
    if (!this.leaving && this.#phase === "starting-proxy") this.#startAll();
  }

  /** The token first: without one the proxy would have to ask again for its certificate. */
  async #startProxy(proxy: Program): Promise<void> {
    const { namespace, serviceAccount } = this.plan;
    const claims = { namespace, serviceAccount, pod: { name: this.name, uid: this.uid } };
    const file = tokenFile(this, this.#settings);
    await this.#settings.tokens.begin(claims, file, this.network.writeToken);
    // A pod that was told to leave meanwhile has ended its proxy for good.
    if (this.leaving || this.#phase === "gone") await this.#endToken();
    else proxy.process.start();
  }

  /**
   * Ends the proxy in good order and starts it again, the programs going on. Until it is ready the pod is out of its
   * Services, and requests that the programs begin by themselves fail. Nothing happens to a pod that has no proxy, or
   * does not run yet.
   */
  restartProxy(): Promise<void> {
    this.#proxyRestart ??= this.#restartProxy().finally(() => (this.#proxyRestart = undefined));
    return this.#proxyRestart;
  }

  /** Whether its proxy is on its way down. */
  get restartsProxy(): boolean {
    return this.#proxyRestart !== undefined;
  }

  /** Lets the pod leave in good order; a second call waits for the same end. */
  leave(options: { readonly drain: boolean }): Promise<void> {
    this.leavingSince ??= new Date().toISOString();
    this.#leaving ??= this.#leave(options.drain);
    return this.#leaving;
  }

  /** Ends everything at once. */
  destroy(): void {
    clearTimeout(this.#networkTimer);
    this.#wayIn?.close();
    for (const program of this.#all) program.stopProbes();
    void this.#endToken();
    for (const program of this.#all) program.process.destroy();
  }

  boundLogs(): void {
    for (const program of this.#all) program.process.boundLog();
  }

  async #leave(drain: boolean): Promise<void> {
    clearTimeout(this.#networkTimer);
    const ran = this.#phase !== "blocked";
    const wasRunning = this.#phase === "running";
    // Here and not before the first await: the caller has to see a leaving pod only once `leaving` says so.
    await Promise.resolve();
    if (ran) {
      for (const program of this.#all) program.stopProbes();
      this.#enter("draining");
      if (drain && wasRunning) await this.#becomeQuiet();
      this.#enter("stopping-app");
      await Promise.all(this.#programs.map((program) => program.process.stop(this.plan.terminationGraceMs)));
      if (this.#proxy !== undefined) {
        this.#enter("stopping-proxy");
        await this.#proxy.process.stop(terminationDrainMs(this.plan) + proxyStopGraceMs);
        await this.#endToken();
      }
    }
    this.#enter("gone");
  }

  async #restartProxy(): Promise<void> {
    const proxy = this.#proxy;
    if (proxy === undefined || this.leaving || this.#phase !== "running") return;
    // As in #leave: the caller sees that it restarts before it hears of the change.
    await Promise.resolve();
    proxy.goDown();
    // What came is answered while it drains.
    await this.#listener.withdrawn(this);
    if (!this.leaving) proxy.process.restart(terminationDrainMs(this.plan) + proxyStopGraceMs);
  }

  /**
   * Nothing new comes, and what came is answered: a program that closes its idle connections cuts none that is about to
   * be used.
   */
  async #becomeQuiet(): Promise<void> {
    await this.#listener.withdrawn(this);
    if (this.#proxy !== undefined && this.plan.injection === "sidecar")
      await untilQuiet(this.network, terminationDrainMs(this.plan));
  }

  #endToken(): Promise<void> {
    return this.#settings.tokens.end(tokenFile(this, this.#settings));
  }

  #enter(phase: PodPhase): void {
    this.#phase = phase;
    this.onChange();
  }

  #appSpec(container: ContainerPlan, settings: PodSettings, logFile: string): ProcessSpec {
    const cwd = path.resolve(settings.commandFolder, this.plan.folder ?? ".");
    const isCaptured = this.network.interceptionMode !== "NONE";
    return {
      name: `${this.name}/${container.name}`,
      cwd,
      launch: () =>
        appLaunch({
          container,
          pod: {
            name: this.name,
            namespace: this.plan.namespace,
            uid: this.uid,
            labels: podLabels(this.plan),
            annotations: this.plan.annotations,
            nodeName: this.network.node.name,
            serviceAccount: this.plan.serviceAccount,
            podAddress: this.addresses.pod,
            hostAddress: this.network.node.address,
          },
          appAddress: this.network.listenAt,
          enter: (env) => this.network.enter({ user: container.user, cwd, env }),
          hasOwnNetwork: isCaptured,
          sidecarAddress: this.plan.injection === "none" || isCaptured ? undefined : this.addresses.pod,
          inherited: settings.env,
          nodePath: settings.nodePath,
          compileCache: isPartOfTulle(container.argv, cwd, settings)
            ? settings.tulleCompileCache
            : settings.appCompileCache,
          textsOf: settings.textsOf,
        }),
      logFile,
      restart: settings.restart,
    };
  }

  #startPrograms(): void {
    this.#enter("starting-app");
    for (const program of this.#programs) program.process.start();
    this.#advance();
  }

  onReadiness(): void {
    if (!this.leaving && this.#phase === "starting-proxy" && this.#proxy?.ready === true) this.#startPrograms();
    else if (!this.#advance()) this.onChange();
  }

  onChange(): void {
    this.#openOrCloseWayIn();
    this.#listener.onChange(this);
  }

  #openOrCloseWayIn(): void {
    if (!this.ready) this.#wayIn?.close();
    this.#wayIn = this.ready ? (this.#wayIn ?? this.network.leadIn?.(this.#settings.publishedPorts)) : undefined;
  }

  onUnexpectedEnd(program: string, end: ProcessEnd, logFile: string): void {
    this.#listener.onUnexpectedEnd(this, program, end, logFile);
  }

  /** From `starting-app` to `running` when everything is ready. */
  #advance(): boolean {
    if (this.leaving || this.#phase !== "starting-app" || !this.#all.every((each) => each.ready)) return false;
    this.#enter("running");
    return true;
  }
}

function pidsOf(programs: readonly Program[]): readonly number[] {
  return programs.flatMap(({ process }) => process.pid ?? []);
}
