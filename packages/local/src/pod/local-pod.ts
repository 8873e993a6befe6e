// One pod: a sidecar (or a gateway's proxy) and the programs beside it, in the order that loses no request.
//
// Phases, in this order; none is ever gone back to:
//   `blocked`           it cannot run here; nothing is started, the problems say why
//   `starting-proxy`    the proxy runs and is not ready yet; the programs are held
//   `starting-app`      the programs run; not all have passed their first readiness probe
//   `running`           all have passed it once. `ready` says whether they still do: a probe that fails or a process that ended
//                       takes the pod out of its Services until it is well again
//   `draining`          it is about to leave: the endpoints are withdrawn, everything still answers
//   `stopping-app`      the programs got SIGTERM; the proxy still serves them
//   `stopping-proxy`    the programs are gone; the proxy got SIGTERM
//   `gone`              nothing of it runs
// A pod without a proxy skips the proxy's phases, a gateway those of the programs.
import { randomUUID } from "node:crypto";
import path from "node:path";
import type { ProcessEnd, ProcessSpec, RestartPolicy } from "../process/supervised-process.ts";
import { SupervisedProcess } from "../process/supervised-process.ts";
import { appLaunch, isPartOfTulle } from "./environment.ts";
import { checkOf, probedPort, tcpCheck, type Check, type OnFailure } from "./health-check.ts";
import { OwnPorts } from "./own-ports.ts";
import { proxyCheck } from "./proxy-check.ts";
import type { Pod } from "@tulle/config";
import { groupListeners } from "../network/group-listeners.ts";
import { hostAddress, nodeName } from "./node.ts";
import { type ContainerPlan, type ContainerPort, podLabels, type PodPlan } from "./pod-plan.ts";
import { startProbeLoop, timingOf, type CheckResult, type ProbeLoop } from "./probe-loop.ts";
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
}

export interface PodListener {
  /** Phase or readiness has changed. */
  onChange(pod: LocalPod): void;
  /** `process` names it within the pod: `proxy`, or a container. */
  onUnexpectedEnd(pod: LocalPod, process: string, end: ProcessEnd, logFile: string): void;
  /** Resolves when no proxy begins a request to the pod any more, or when waiting for that has taken long enough. */
  withdrawn(pod: LocalPod): Promise<void>;
}

export interface PodAddresses {
  /** Of the pod: where its sidecar listens, or its app when it has none. */
  readonly pod: string;
  readonly app: string;
}

/** How the injected container is called (Istio: `istio-proxy`). */
const proxyContainer = "istio-proxy";
const proxyTiming = { initialDelayMs: 0, periodMs: 1000, successThreshold: 1, failureThreshold: 5 };
/** What the proxy and its agent listen at besides the pod's own ports: admin pages, the way out, metrics, health. */
const proxyPorts = [15_000, 15_007, 15_020, 15_021];
/** What is left of a proxy this long after it should have drained is stuck. */
const proxyStopGraceMs = 5000;

/** A failure that stands for longer is told; programs that have only just begun refuse connections. */
const tellFailureAfterMs = 3000;

/** As Kubernetes tells of a container. */
export interface ProgramState {
  readonly name: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly pid: number | undefined;
  readonly state: NonNullable<NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number]["state"]>;
}

interface Program {
  readonly process: SupervisedProcess;
  readonly plan: ContainerPlan | undefined;
  ready: boolean;
  loops: ProbeLoop[];
  /** Which probe fails, and with what answer. */
  failure: { readonly probe: string; readonly text: string; readonly sinceMs: number } | undefined;
  toldFailure: string | undefined;
}

export class LocalPod {
  readonly name: string;
  readonly plan: PodPlan;
  readonly addresses: PodAddresses;
  /** Tells the pod from an earlier one of its name. */
  readonly uid = randomUUID();
  readonly createdAt: string;
  readonly #settings: PodSettings;
  #phase: PodPhase;
  readonly #listener: PodListener;
  readonly #proxy: Program | undefined;
  readonly #programs: readonly Program[];
  #leaving: Promise<void> | undefined;
  /** When it was told to leave (RFC 3339). */
  leavingSince: string | undefined;
  #proxyRestart: Promise<void> | undefined;

  constructor(name: string, plan: PodPlan, addresses: PodAddresses, settings: PodSettings, listener: PodListener) {
    this.name = name;
    this.plan = plan;
    this.addresses = addresses;
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
      this.#proxy = this.#program(sidecarSpec(this, settings, log, settings.restart), undefined);
    }
    this.#programs = plan.containers.map((container, index) => {
      const log = path.join(folder, index === 0 ? "app.log" : `${container.name}.log`);
      return this.#program(this.#appSpec(container, settings, log), container);
    });
  }

  get phase(): PodPhase {
    return this.#phase;
  }

  /** Whether Services send to it. */
  get ready(): boolean {
    return this.#phase === "running" && this.#all.every((program) => program.ready);
  }

  /** Of a pod that is not ready: which probe of which container fails, and how. Undefined at first, and when nothing is known. */
  get failure(): string | undefined {
    return this.ready
      ? undefined
      : (this.missing ?? this.#all.find(({ toldFailure }) => toldFailure !== undefined)?.toldFailure);
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
    return this.#all.map(({ process, ready, plan }) => ({
      name: plan?.name ?? proxyContainer,
      ready,
      restarts: process.restarts,
      pid: process.pid,
      state: stateOf(process),
    }));
  }

  get #all(): readonly Program[] {
    return this.#proxy === undefined ? this.#programs : [this.#proxy, ...this.#programs];
  }

  start(): void {
    if (this.#phase !== "starting-proxy") return;
    if (this.#proxy === undefined) this.#startPrograms();
    else void this.#startProxy(this.#proxy);
  }

  /** The token first: without one the proxy would have to ask again for its certificate. */
  async #startProxy(proxy: Program): Promise<void> {
    const { namespace, serviceAccount } = this.plan;
    const claims = { namespace, serviceAccount, pod: { name: this.name, uid: this.uid } };
    const file = tokenFile(this.name, this.#settings);
    await this.#settings.tokens.begin(claims, file);
    // A pod that was told to leave meanwhile has ended its proxy for good.
    if (this.leaving || this.#phase === "gone") this.#settings.tokens.end(file);
    else proxy.process.start();
  }

  /**
   * Ends the proxy in good order and starts it again, the programs going on. Until it is ready the pod is out of its Services,
   * and requests that the programs begin by themselves fail. Nothing happens to a pod that has no proxy, or does not run yet.
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
    this.#stopProbes(this.#all);
    this.#endToken();
    for (const program of this.#all) program.process.destroy();
  }

  boundLogs(): void {
    for (const program of this.#all) program.process.boundLog();
  }

  async #leave(drain: boolean): Promise<void> {
    const ran = this.#phase !== "blocked";
    const wasRunning = this.#phase === "running";
    // Here and not before the first await: the caller has to see a leaving pod only once `leaving` says so.
    await Promise.resolve();
    if (ran) {
      this.#stopProbes(this.#all);
      this.#enter("draining");
      if (drain && wasRunning) await this.#becomeQuiet();
      this.#enter("stopping-app");
      await Promise.all(this.#programs.map((program) => program.process.stop(this.plan.terminationGraceMs)));
      if (this.#proxy !== undefined) {
        this.#enter("stopping-proxy");
        await this.#proxy.process.stop(terminationDrainMs(this.plan) + proxyStopGraceMs);
        this.#endToken();
      }
    }
    this.#enter("gone");
  }

  async #restartProxy(): Promise<void> {
    const proxy = this.#proxy;
    if (proxy === undefined || this.leaving || this.#phase !== "running") return;
    // As in #leave: the caller sees that it restarts before it hears of the change.
    await Promise.resolve();
    this.#stopProbes([proxy]);
    this.#setReady(proxy, false);
    await this.#becomeQuiet();
    if (!this.leaving) proxy.process.restart(terminationDrainMs(this.plan) + proxyStopGraceMs);
  }

  /** Nothing new comes, and what came is answered: a program that closes its idle connections cuts none that is about to be used. */
  async #becomeQuiet(): Promise<void> {
    await this.#listener.withdrawn(this);
    if (this.#proxy !== undefined && this.plan.injection === "sidecar")
      await untilQuiet(this.addresses.pod, terminationDrainMs(this.plan));
  }

  #endToken(): void {
    this.#settings.tokens.end(tokenFile(this.name, this.#settings));
  }

  #enter(phase: PodPhase): void {
    this.#phase = phase;
    this.#listener.onChange(this);
  }

  #appSpec(container: ContainerPlan, settings: PodSettings, logFile: string): ProcessSpec {
    const cwd = path.resolve(settings.commandFolder, this.plan.folder ?? ".");
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
            nodeName,
            serviceAccount: this.plan.serviceAccount,
            podAddress: this.addresses.pod,
            hostAddress,
          },
          appAddress: this.addresses.app,
          sidecarAddress: this.plan.injection === "none" ? undefined : this.addresses.pod,
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

  #program(spec: ProcessSpec, plan: ContainerPlan | undefined): Program {
    const program: Program = {
      plan,
      ready: false,
      loops: [],
      failure: undefined,
      toldFailure: undefined,
      process: new SupervisedProcess(spec, {
        onStart: () => {
          this.#startProbes(program);
          if (program.process.restarts > 0) this.#listener.onChange(this);
        },
        onHeld: () => this.#listener.onChange(this),
        onUnexpectedEnd: (end) => {
          this.#stopProbes([program]);
          this.#setReady(program, false);
          this.#listener.onChange(this);
          this.#listener.onUnexpectedEnd(this, plan === undefined ? "proxy" : plan.name, end, spec.logFile);
        },
      }),
    };
    return program;
  }

  #startPrograms(): void {
    this.#enter("starting-app");
    for (const program of this.#programs) program.process.start();
    this.#advance();
  }

  #startProbes(program: Program): void {
    const { plan } = program;
    if (plan === undefined) {
      // One that says that it leaves means it: others have to know before its drain is over.
      const onLeaving = (): void => this.#setReady(program, false);
      const check: Check = (onFailure) => proxyCheck(this.addresses.pod, onLeaving, onFailure);
      const own = this.#byItself(program, check, this.#proxyPorts());
      program.loops = [startProbeLoop(own, proxyTiming, (well) => this.#setReady(program, well))];
      return;
    }
    const startup = this.#checkOf(plan, plan.startupProbe);
    if (startup === undefined || plan.startupProbe === undefined) return this.#startSteadyProbes(program, plan);
    const loop = startProbeLoop(this.#explained(program, "Startup", startup), timingOf(plan.startupProbe), (well) => {
      loop.stop();
      if (well) this.#startSteadyProbes(program, plan);
      else program.process.kill();
    });
    program.loops = [loop];
  }

  #startSteadyProbes(program: Program, plan: ContainerPlan): void {
    const [first] = plan.ports;
    const readiness =
      this.#checkOf(plan, plan.readinessProbe) ??
      // Kubernetes calls a container without a probe ready at once; a port that nobody listens on yet would fail requests.
      (first === undefined
        ? undefined
        : (onFailure?: OnFailure) => tcpCheck(this.addresses.app, first.port, 1000, onFailure));
    program.loops = [];
    if (readiness === undefined) {
      this.#setReady(program, true);
    } else {
      const timing = timingOf(plan.readinessProbe ?? {});
      const asked = plan.readinessProbe && probedPort(plan.readinessProbe, plan.ports);
      const ports = [...plan.ports.map(({ port }) => port), ...(asked === undefined ? [] : [asked])];
      const check = this.#byItself(program, readiness, ports);
      program.loops.push(startProbeLoop(check, timing, (well) => this.#setReady(program, well)));
    }
    const liveness = this.#checkOf(plan, plan.livenessProbe);
    if (liveness !== undefined && plan.livenessProbe !== undefined) {
      const onVerdict = (well: boolean): void => {
        if (!well) program.process.kill();
      };
      const timing = timingOf(plan.livenessProbe);
      // Not at once: a program that has only just begun is not dead.
      const initialDelayMs = Math.max(timing.initialDelayMs, timing.periodMs);
      const check = this.#explained(program, "Liveness", liveness);
      program.loops.push(startProbeLoop(check, { ...timing, initialDelayMs }, onVerdict));
    }
  }

  #checkOf(plan: ContainerPlan, probe: ContainerPlan["readinessProbe"]): Check | undefined {
    return probe === undefined ? undefined : checkOf(probe, { address: this.addresses.app, ports: plan.ports });
  }

  /** All that may be listened at for the proxy's part: what does not listen there yet is no matter. */
  #proxyPorts(): readonly number[] {
    return this.plan.injection === "gateway" ? proxyPorts : [...proxyPorts, ...this.ports.map(({ port }) => port)];
  }

  /** A readiness check that passes only where it is the pod's own programs that take connections; others are not even asked. */
  #byItself(program: Program, check: Check, ports: readonly number[]): () => Promise<CheckResult> {
    const ownPorts = new OwnPorts({
      podName: this.name,
      address: program.plan === undefined ? this.addresses.pod : this.addresses.app,
      leaders: () =>
        (program.plan === undefined ? [program] : this.#programs).flatMap((each) => each.process.pid ?? []),
    });
    const explained = this.#explained(program, "Readiness", check);
    return async () => {
      const foreign = ownPorts.foreignHolder(ports);
      if (foreign === undefined) return explained();
      // At once: its own program can only end for want of the address, and the reason would end with it.
      this.#takeFailure(program, "Readiness", foreign, 0);
      return "foreign";
    };
  }

  /** The check, whose failures are kept for people as a kubelet's events are. */
  #explained(program: Program, probe: string, check: Check): () => Promise<boolean> {
    return async () => {
      let answer = "";
      const isWell = await check((text) => (answer = text));
      if (!isWell) this.#takeFailure(program, probe, answer + (await this.#listensElsewhere(program, answer)));
      else if (program.failure?.probe === probe) program.failure = undefined;
      return isWell;
    };
  }

  #takeFailure(program: Program, probe: string, answer: string, tellAfterMs = tellFailureAfterMs): void {
    const container = program.plan?.name ?? proxyContainer;
    const nowMs = performance.now();
    const text = `${probe} probe of container ${container} failed: ${answer}`;
    program.failure = { probe, text, sinceMs: program.failure?.sinceMs ?? nowMs };
    if (nowMs - program.failure.sinceMs >= tellAfterMs && !this.ready) this.#tellFailure(program);
  }

  /** Of a program that takes no notice of what its environment says: where it listens, and what to do. */
  async #listensElsewhere({ plan, process: { pid }, failure }: Program, answer: string): Promise<string> {
    const [port] = plan?.ports ?? [];
    if (failure === undefined || performance.now() - failure.sinceMs < tellFailureAfterMs) return "";
    if (port === undefined || pid === undefined || !answer.includes("ECONNREFUSED")) return "";
    const places = await groupListeners(pid);
    if (places.length === 0) return "";
    return (
      `; the program listens at ${places.join(", ")}, and is expected at ${this.addresses.app}:${port.port}` +
      " (containerPort): let it listen where its variables HOST and PORT say"
    );
  }

  #tellFailure(program: Program): void {
    if (program.toldFailure === program.failure?.text || this.leaving) return;
    program.toldFailure = program.failure?.text;
    this.#listener.onChange(this);
  }

  #stopProbes(programs: readonly Program[]): void {
    for (const program of programs) {
      program.failure = undefined;
      for (const loop of program.loops) loop.stop();
      program.loops = [];
    }
  }

  #setReady(program: Program, ready: boolean): void {
    if (program.ready === ready) return;
    program.ready = ready;
    program.toldFailure = ready ? undefined : program.failure?.text;
    if (!this.leaving && this.#phase === "starting-proxy" && this.#proxy?.ready === true) this.#startPrograms();
    else if (!this.#advance()) this.#listener.onChange(this);
  }

  /** From `starting-app` to `running` when everything is ready. */
  #advance(): boolean {
    if (this.leaving || this.#phase !== "starting-app" || !this.#all.every((each) => each.ready)) return false;
    this.#enter("running");
    return true;
  }
}

function stateOf({ state, lastEnd, missing }: SupervisedProcess): ProgramState["state"] {
  if (missing !== undefined) return { waiting: { reason: "CreateContainerConfigError", message: missing } };
  if (state === "idle") return { waiting: { reason: "PodInitializing" } };
  // Between an end that was asked for and the next start there is no time, so that a wait is one for the back-off.
  const { code = null, description: message = "" } = lastEnd ?? {};
  if (state === "waiting") return { waiting: { reason: "CrashLoopBackOff", message } };
  if (state !== "failed") return {};
  return { terminated: { reason: "Error", message, ...(code === null ? {} : { exitCode: code }) } };
}
