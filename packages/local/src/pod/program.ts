// One program of a pod, a container's or the proxy, with the probes that say whether it is well. What follows from that
// for the pod is the pod's affair (local-pod.ts).
import type { Pod } from "@tulle/config";
import {
  type Check,
  checkOf,
  type CheckResult,
  type OnFailure,
  probedPort,
  type ProbeLoop,
  startProbeLoop,
  tcpCheck,
  timingOf,
} from "@tulle/listening/probes";
import type { PodNetwork } from "../network/pod-network.ts";
import { groupListeners } from "../network/group-listeners.ts";
import type { ProcessEnd, ProcessSpec } from "../process/supervised-process.ts";
import { SupervisedProcess } from "../process/supervised-process.ts";
import { OwnPorts } from "./own-ports.ts";
import type { ContainerPlan } from "./pod-plan.ts";
import { proxyCheck } from "./proxy-check.ts";

/** How the injected container is called (Istio: `istio-proxy`). */
export const proxyContainer = "istio-proxy";
/** A proxy that is ready is asked whether it stays so: it answers when it does not, or after this time. */
const readyWaitSeconds = 10;
const proxyTiming = { initialDelayMs: 0, periodMs: 1000, successThreshold: 1, failureThreshold: 5 };

/**
 * A failure that stands for longer is told. Programs that have only just begun refuse connections, and on a busy
 * machine a start takes seconds: none of that is a failure.
 */
const defaultTellFailureAfterMs = 10_000;

/** As Kubernetes tells of a container. */
export interface ProgramState {
  readonly name: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly pid: number | undefined;
  readonly state: NonNullable<NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number]["state"]>;
}

/** The pod that a program is of. */
export interface ProgramOwner {
  readonly name: string;
  readonly ready: boolean;
  readonly leaving: boolean;
  onReadiness(): void;
  onChange(): void;
  /** `program` names it within the pod: `proxy`, or a container. */
  onUnexpectedEnd(program: string, end: ProcessEnd, logFile: string): void;
}

export interface ProgramSettings {
  readonly owner: ProgramOwner;
  readonly spec: ProcessSpec;
  /** Undefined of the proxy. */
  readonly plan: ContainerPlan | undefined;
  /** Where it listens and is probed. */
  readonly address: string;
  readonly network: Pick<PodNetwork, "connect" | "proxyAt" | "ways">;
  /** What it may listen at besides the ports of its plan. */
  readonly ports: readonly number[];
  /** The processes that may listen there for it. */
  readonly leaders: () => readonly number[];
  readonly tellFailureAfterMs?: number | undefined;
}

interface Failure {
  readonly probe: string;
  readonly text: string;
  readonly sinceMs: number;
}

export class Program {
  readonly process: SupervisedProcess;
  readonly plan: ContainerPlan | undefined;
  readonly #owner: ProgramOwner;
  readonly #settings: ProgramSettings;
  #ready = false;
  #loops: ProbeLoop[] = [];
  /** Which probe fails, and with what answer. */
  #failure: Failure | undefined;
  #toldFailure: string | undefined;
  readonly #tellFailureAfterMs: number;

  constructor(settings: ProgramSettings) {
    const { owner, plan, spec, tellFailureAfterMs = defaultTellFailureAfterMs } = settings;
    this.#tellFailureAfterMs = tellFailureAfterMs;
    this.plan = plan;
    this.#owner = owner;
    this.#settings = settings;
    this.process = new SupervisedProcess(spec, {
      onStart: () => {
        this.#startProbes();
        if (this.process.restarts > 0) owner.onChange();
      },
      onHeld: () => owner.onChange(),
      onUnexpectedEnd: (end) => {
        this.goDown();
        owner.onChange();
        owner.onUnexpectedEnd(plan === undefined ? "proxy" : plan.name, end, spec.logFile);
      },
    });
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Which probe fails, once that was told. */
  get toldFailure(): string | undefined {
    return this.#toldFailure;
  }

  get state(): ProgramState {
    const { restarts, pid } = this.process;
    return { name: this.#name, ready: this.#ready, restarts, pid, state: stateOf(this.process) };
  }

  /** Its probes end, and it is not ready. */
  goDown(): void {
    this.stopProbes();
    this.#setReady(false);
  }

  stopProbes(): void {
    this.#failure = undefined;
    for (const loop of this.#loops) loop.stop();
    this.#loops = [];
  }

  get #name(): string {
    return this.plan?.name ?? proxyContainer;
  }

  #startProbes(): void {
    const { plan } = this;
    if (plan === undefined) {
      // One that says that it leaves means it: others have to know before its drain is over.
      const onLeaving = (): void => this.#setReady(false);
      // One that was kept from waiting, as by somebody who takes all that may wait, is asked for an answer at once.
      let wasWell = false;
      const check: Check = async (onFailure) => {
        const waitSeconds = this.#ready && wasWell ? readyWaitSeconds : 0;
        wasWell = await proxyCheck(this.#settings.network, waitSeconds, onLeaving, onFailure);
        return wasWell;
      };
      this.#loops = [startProbeLoop(this.#byItself(check), proxyTiming, (well) => this.#setReady(well))];
      return;
    }
    const startup = this.#checkOf(plan, plan.startupProbe);
    if (startup === undefined || plan.startupProbe === undefined) return this.#startSteadyProbes(plan);
    const loop = startProbeLoop(this.#explained("Startup", startup), timingOf(plan.startupProbe), (well) => {
      loop.stop();
      if (well) this.#startSteadyProbes(plan);
      else this.process.kill();
    });
    this.#loops = [loop];
  }

  #startSteadyProbes(plan: ContainerPlan): void {
    const [first] = plan.ports;
    const { address, network } = this.#settings;
    const readiness =
      this.#checkOf(plan, plan.readinessProbe) ??
      // Kubernetes calls a container without a probe ready at once; a port that nobody listens on yet would fail
      // requests.
      (first === undefined
        ? undefined
        : (onFailure?: OnFailure) => tcpCheck({ address, connect: network.connect }, first.port, 1000, onFailure));
    this.#loops = [];
    if (readiness === undefined) {
      this.#setReady(true);
    } else {
      const timing = timingOf(plan.readinessProbe ?? {});
      this.#loops.push(startProbeLoop(this.#byItself(readiness), timing, (well) => this.#setReady(well)));
    }
    const liveness = this.#checkOf(plan, plan.livenessProbe);
    if (liveness !== undefined && plan.livenessProbe !== undefined) {
      const onVerdict = (well: boolean): void => {
        if (!well) this.process.kill();
      };
      const timing = timingOf(plan.livenessProbe);
      // Not at once: a program that has only just begun is not dead.
      const initialDelayMs = Math.max(timing.initialDelayMs, timing.periodMs);
      this.#loops.push(startProbeLoop(this.#explained("Liveness", liveness), { ...timing, initialDelayMs }, onVerdict));
    }
  }

  #checkOf(plan: ContainerPlan, probe: ContainerPlan["readinessProbe"]): Check | undefined {
    const { address, network } = this.#settings;
    return probe && checkOf(probe, { address, connect: network.connect, ports: plan.ports });
  }

  /** All that may be listened at for its part: what does not listen there yet is no matter. */
  get #ownPorts(): readonly number[] {
    const { plan } = this;
    const asked = plan?.readinessProbe && probedPort(plan.readinessProbe, plan.ports);
    const planned = (plan?.ports ?? []).map(({ port }) => port);
    return [...this.#settings.ports, ...planned, ...(asked === undefined ? [] : [asked])];
  }

  /**
   * A readiness check that passes only where it is the pod's own programs that take connections; others are not even
   * asked.
   */
  #byItself(check: Check): () => Promise<CheckResult> {
    const { address, leaders, network } = this.#settings;
    const explained = this.#explained("Readiness", check);
    // Nobody else is in a network that is the pod's alone.
    if (network.ways !== undefined) return explained;
    const own = new OwnPorts({ podName: this.#owner.name, address, leaders });
    const ports = this.#ownPorts;
    return async () => {
      const foreign = own.foreignHolder(ports);
      if (foreign === undefined) return explained();
      // At once: its own program can only end for want of the address, and the reason would end with it.
      this.#takeFailure("Readiness", foreign, 0);
      return "foreign";
    };
  }

  /** The check, whose failures are kept for people as a kubelet's events are. */
  #explained(probe: string, check: Check): () => Promise<boolean> {
    return async () => {
      let answer = "";
      const isWell = await check((text) => (answer = text));
      if (!isWell) this.#takeFailure(probe, answer + this.#listensElsewhere(answer));
      else if (this.#failure?.probe === probe) this.#failure = undefined;
      return isWell;
    };
  }

  #takeFailure(probe: string, answer: string, tellAfterMs = this.#tellFailureAfterMs): void {
    const nowMs = performance.now();
    const text = `${probe} probe of container ${this.#name} failed: ${answer}`;
    this.#failure = { probe, text, sinceMs: this.#failure?.sinceMs ?? nowMs };
    if (nowMs - this.#failure.sinceMs >= tellAfterMs && !this.#owner.ready) this.#tellFailure(text);
  }

  /** Of a program that takes no notice of what its environment says: where it listens, and what to do. */
  #listensElsewhere(answer: string): string {
    const [port] = this.plan?.ports ?? [];
    const { pid } = this.process;
    if (this.#failure === undefined || performance.now() - this.#failure.sinceMs < this.#tellFailureAfterMs) return "";
    if (port === undefined || pid === undefined || !answer.includes("ECONNREFUSED")) return "";
    const places = groupListeners(pid);
    if (places.length === 0) return "";
    return (
      `; the program listens at ${places.join(", ")}, and is expected at ${this.#settings.address}:${port.port}` +
      " (containerPort): let it listen where its variables HOST and PORT say"
    );
  }

  #tellFailure(text: string): void {
    if (this.#toldFailure === text || this.#owner.leaving) return;
    this.#toldFailure = text;
    this.#owner.onChange();
  }

  #setReady(ready: boolean): void {
    if (this.#ready === ready) return;
    this.#ready = ready;
    this.#toldFailure = ready ? undefined : this.#failure?.text;
    this.#owner.onReadiness();
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
