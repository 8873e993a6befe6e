// `tulle up` without its terminal: takes a folder, runs its control plane and, through the reconciler, its pods, until
// it is told to stop.
import path from "node:path";
import { ApiClient } from "@tulle/config";
import { apiSocketName } from "@tulle/config/api";
import { makeSocketPath, removeSocketFolder } from "@tulle/identity/own";
import { Logging, textSink, type Logger } from "@tulle/telemetry";
import { CannotStart, socketLookupTrouble, stateProblem } from "./cannot-start.ts";
import { apiPort, controlPlaneSpec, type JoinPort, openJoinPort, refusals, xdsPort } from "./control-plane-process.ts";
import { DevelopmentCertificate } from "./development-certificate.ts";
import { registerInstance, registryFolder, removeInstance, writeInstance, type Instance } from "./instance.ts";
import { claimBlock } from "./network/address-block.ts";
import { LoopbackNetwork } from "./network/loopback-network.ts";
import { closeSocket } from "./network/libc.ts";
import type { Address, MeshNetwork } from "./network/pod-network.ts";
import { NamespacesNetwork } from "./namespaces/namespaces-network.ts";
import type { OwnNetwork } from "./namespaces/own-network.ts";
import { portProblem } from "./network/port-holder.ts";
import { isPassing, withHolder } from "./reconcile/published-ports.ts";
import { keepOthersOut } from "./own-user/keep-others-out.ts";
import type { OwnUserTable } from "./own-user/own-user-table.ts";
import type { LocalPod } from "./pod/local-pod.ts";
import type { ProxyKind } from "./pod/pod-plan.ts";
import { WorkloadTokens } from "./pod/workload-tokens.ts";
import { processStartTime } from "./process-start-time.ts";
import { hasProgram } from "./process/has-program.ts";
import { LogFile } from "./process/log-file.ts";
import { SupervisedProcess, type RestartPolicy } from "./process/supervised-process.ts";
import { Hopeless, waitUntil, type WaitUntilOptions } from "./process/wait-until.ts";
import type { PortMapping } from "./reconcile/published-port-mappings.ts";
import { Reconciler } from "./reconcile/reconciler.ts";
import { openStateDirectory, type StateDirectory } from "./state-directory.ts";
import { describeInstance } from "./describe-instance.ts";
import { enter } from "./enter.ts";
import { SupervisorSocket } from "./supervisor-socket.ts";
import { logEvent, type SupervisorEvent } from "./supervisor-event.ts";

export interface UpOptions {
  /** Absolute path of the folder of manifests. */
  readonly dir: string;
  readonly proxy: ProxyKind;
  readonly restart: RestartPolicy;
  /** Host ports in place of those that the manifests name. */
  readonly publish: readonly PortMapping[];
  /** Forget what was applied in earlier runs. */
  readonly fresh: boolean;
  /** Where this process is in a network of its own: each pod gets one, too. Else loopback mode. */
  readonly ownNetwork?: OwnNetwork | undefined;
  /** Programs of other users are kept away from all of the instance's addresses. */
  readonly ownUserOnly?: boolean;
  /** Where machines join; nowhere when missing. */
  readonly joinAddress?: Address | undefined;
  /** Further options of `tulle control-plane`. */
  readonly controlPlaneOptions?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Program and first arguments that stand for `tulle`. */
  readonly tulleCommand: readonly string[];
  /** Folder in which Tulle's own processes keep compiled code. */
  readonly tulleCompileCache: string;
  readonly onEvent: (event: SupervisorEvent) => void;
}

const clusterId = "local";
/** Linux keeps a closed connection for 60 s (TCP_TIMEWAIT_LEN). */
const closedConnectionsMs = 65_000;
const readyTimeoutMs = 120_000;
const controlPlaneStopGraceMs = 5000;
const logCheckIntervalMs = 10_000;
/** A file that cannot be read changes no resource, so that the watch says nothing of it. */
const findingsIntervalMs = 2000;

export class Supervisor {
  readonly instance: Instance;
  readonly #options: UpOptions;
  readonly #state: StateDirectory;
  readonly #network: MeshNetwork;
  readonly #joinPort: JoinPort | undefined;
  readonly #api: ApiClient;
  readonly #controlPlane: SupervisedProcess;
  readonly #tokens: WorkloadTokens;
  readonly #reconciler: Reconciler;
  readonly #certificate: DevelopmentCertificate;
  readonly #log: Logger;
  readonly #logFile: LogFile;
  readonly #logTimer: NodeJS.Timeout;
  #ownUserTable: OwnUserTable | undefined;
  #socket: SupervisorSocket | undefined;
  #findingsTimer: NodeJS.Timeout | undefined;
  /** Findings told and still standing. */
  #toldFindings = new Set<string>();
  #released: Promise<void> | undefined = undefined;
  #hasToldErrors = false;
  /** Set when a process that is not to be started again has ended before everything was ready. */
  #failure: string | undefined;

  private constructor(options: UpOptions, state: StateDirectory, network: MeshNetwork, startTime: string) {
    this.#options = options;
    this.#state = state;
    this.#network = network;
    this.#joinPort = openJoinPort(options, network);
    this.instance = describeInstance(options, state.path, network.controlPlaneAddress, startTime);
    const { xdsAddress } = this.instance;
    this.#logFile = new LogFile(path.join(state.logsFolder, "supervisor.log"));
    const logging = new Logging({ sink: textSink((line) => this.#logFile.write(line)) });
    this.#log = logging.logger("supervisor");
    const shared = {
      tulleCommand: options.tulleCommand,
      env: options.env,
      nodePath: process.execPath,
      tulleCompileCache: options.tulleCompileCache,
      clusterId,
      restart: options.restart,
    };
    this.#api = new ApiClient({ endpoint: { socketPath: makeSocketPath(state.path, apiSocketName, options.env) } });
    this.#certificate = new DevelopmentCertificate(this.#api, options.env, (message) =>
      this.#take({ type: "trouble", message }),
    );
    this.#tokens = new WorkloadTokens({
      stateFolder: state.path,
      onTrouble: (message) => this.#take({ type: "trouble", message }),
    });
    this.#reconciler = new Reconciler({
      api: this.#api,
      state,
      network,
      proxy: options.proxy,
      hasEnvoy: hasProgram(options.env["TULLE_ENVOY"] || "envoy", options.env["PATH"]),
      publish: options.publish,
      podSettings: {
        ...shared,
        xdsAddress,
        addressRange: network.sharedRange,
        rootsFile: network.rootsFile ?? path.join(state.path, "ca", "root-cert.pem"),
        tokens: this.#tokens,
        appCompileCache: path.join(state.path, "compile-cache"),
        podStateFolder: (podName) => state.podFolder(podName),
        commandFolder: state.dir,
        logsFolder: state.logsFolder,
      },
      onEvent: (event) => this.#take(event),
    });
    const controlPlaneLog = path.join(state.logsFolder, "control-plane.log");
    const spec = controlPlaneSpec({
      ...shared,
      state,
      address: network.controlPlaneAddress,
      networkArguments: network.controlPlaneArguments,
      fresh: options.fresh,
      options: options.controlPlaneOptions ?? [],
      join: this.#joinPort,
      owner: `${process.pid}-${startTime}`,
      logFile: controlPlaneLog,
    });
    this.#controlPlane = new SupervisedProcess(spec, {
      onUnexpectedEnd: (end) => {
        this.#take({ type: "process-ended", name: spec.name, logFile: controlPlaneLog, end });
        this.#reconciler.republish();
      },
    });
    this.#logTimer = setInterval(() => this.#boundLogs(), logCheckIntervalMs).unref();
  }

  /**
   * Takes the folder and starts its control plane; the rest follows by itself. `ready` tells when all of it runs.
   * @throws {FolderInUse}
   * @throws {CannotStart}
   */
  static async start(options: UpOptions): Promise<Supervisor> {
    try {
      return await Supervisor.#start(options);
    } catch (error) {
      throw stateProblem(options.dir, error);
    }
  }

  static async #start(options: UpOptions): Promise<Supervisor> {
    const state = openStateDirectory(options.dir);
    const startTime = (await processStartTime(process.pid)) ?? "unknown";
    const supervisor = await Supervisor.#inNetwork(options, state, startTime);
    await supervisor.#requirePorts();
    supervisor.#socket = await SupervisorSocket.listen(state.path, options.env, (asked) =>
      enter(supervisor.pods(), asked),
    );
    if (state.wasOpenToOthers) {
      const message = `other users could reach ${state.path}: it is closed to them now, and its token is a new one`;
      supervisor.#take({ type: "trouble", message });
    }
    await writeInstance(supervisor.instance);
    await registerInstance(supervisor.instance, options.env).catch((error: Error) => {
      const where = `this instance could not be entered into ${registryFolder(options.env)} (${error.message})`;
      supervisor.#take({ type: "trouble", message: `${where}: other commands find it by --dir ${options.dir}` });
    });
    const lookup = socketLookupTrouble();
    if (lookup !== undefined) supervisor.#take({ type: "trouble", message: lookup });
    supervisor.#controlPlane.start();
    // While the control plane starts; what fails here fails again when it is wanted.
    void supervisor.#tokens.preload().catch(() => undefined);
    return supervisor;
  }

  static async #inNetwork(options: UpOptions, state: StateDirectory, startTime: string): Promise<Supervisor> {
    const { ownNetwork, env, tulleCommand, onEvent } = options;
    if (ownNetwork !== undefined) {
      await using open = new AsyncDisposableStack();
      const network = await NamespacesNetwork.open(ownNetwork, {
        stateFolder: state.path,
        env,
        tulleCommand,
        onEvent,
      });
      open.defer(() => network.close());
      const supervisor = new Supervisor(options, state, network, startTime);
      open.move();
      return supervisor;
    }
    const block = await claimBlock(options.dir, state.lastBlockIndex);
    state.rememberBlock(block.index);
    const supervisor = new Supervisor(options, state, new LoopbackNetwork(block), startTime);
    if (options.ownUserOnly !== true) return supervisor;
    try {
      // Before anything listens.
      const onTrouble = (message: string): void => supervisor.#take({ type: "trouble", message });
      supervisor.#ownUserTable = await keepOthersOut(block, env, onTrouble);
      return supervisor;
    } catch (error) {
      await supervisor.#release();
      throw error;
    }
  }

  /** A port that somebody else holds ends the start before anything is asked there. */
  async #requirePorts(): Promise<void> {
    const address = this.#network.controlPlaneAddress;
    for (const port of [xdsPort, apiPort]) {
      const problem = await portProblem(address, port);
      if (problem === undefined) continue;
      await this.#release();
      throw new CannotStart(
        `the control plane cannot listen on ${address}:${port}: ${problem}`,
        "Have that program ended, or run a copy of the folder: each folder has addresses of its own.",
      );
    }
  }

  pods(): readonly LocalPod[] {
    return this.#reconciler.pods();
  }

  /**
   * Resolves when all pods that can run here are ready, every proxy serves what it has acknowledged and one request
   * through each published port has come back. @throws when that does not happen in time, or a published port cannot be
   * had
   */
  async ready(signal: AbortSignal): Promise<Instance> {
    const reconciler = this.#reconciler;
    // It tries for ever; looked at from outside, the wait ends with a control plane that has ended for good.
    let isConnected = false;
    void reconciler.connect().then(
      () => (isConnected = true),
      () => undefined,
    );
    await this.#waitFor(() => isConnected, signal, {
      what: () => `the control plane to answer; its log: ${this.#controlPlane.spec.logFile}`,
    });
    await this.#openTokens();
    await this.#certificate.publish();
    this.#certificate.watch();
    await this.#tellFindings();
    await this.#openPorts(signal);
    await this.#waitFor(() => reconciler.isConverged(), signal, { what: () => reconciler.describeMissing() });
    const what = "every proxy to serve its configuration";
    const isServing = (): Promise<boolean> => reconciler.isServing();
    await this.#waitFor(isServing, signal, {
      what: () => what,
      onWaiting: () => this.#take({ type: "waiting", awaited: [what] }),
    });
    this.#take({ type: "waiting", awaited: [] });
    await reconciler.waitForAnswers(signal);
    // A probe may have failed meanwhile, or keys have come.
    await this.#waitFor(isServing, signal, { what: () => what });
    for (const message of await refusals(this.#api)) this.#take({ type: "trouble", message });
    const instance = { ...this.instance, ready: true, publishedPorts: reconciler.publishedPorts() };
    await writeInstance(instance);
    this.#log.info("ready", { pods: this.pods().length });
    this.#findingsTimer = setInterval(
      () => void this.#tellFindings().catch(() => undefined),
      findingsIntervalMs,
    ).unref();
    return instance;
  }

  async #openPorts(signal: AbortSignal): Promise<void> {
    let problem = this.#reconciler.open();
    if (problem !== undefined && isPassing(problem, this.#network.machine)) {
      const what = `port ${problem.takenPort}: connections that an earlier program has closed keep it for a minute at most`;
      const isOver = (): boolean => {
        problem = this.#reconciler.open();
        return problem === undefined || !isPassing(problem, this.#network.machine);
      };
      const onWaiting = (): void => this.#take({ type: "waiting", awaited: [what] });
      await this.#waitFor(isOver, signal, { timeoutMs: closedConnectionsMs, what: () => what, onWaiting });
      this.#take({ type: "waiting", awaited: [] });
    }
    if (problem === undefined) return;
    const told = withHolder(problem, this.#network.machine);
    throw new CannotStart(`${told.subject}: ${told.message}`, told.suggestion);
  }

  /** After the control plane has started, which makes the key where there is none: two would not believe each other. */
  async #openTokens(): Promise<void> {
    try {
      await this.#tokens.open();
    } catch (error) {
      throw new CannotStart(
        `the key of the workloads' tokens cannot be used: ${error instanceof Error ? error.message : String(error)}`,
        "Remove that file to get a new one.",
      );
    }
  }

  /** Ends everything in good order: the programs, then their proxies, then the control plane. */
  async stop(): Promise<void> {
    this.#stopTimers();
    this.#log.info("stopping");
    await this.#reconciler.stop();
    await this.#controlPlane.stop(controlPlaneStopGraceMs);
    await this.#release();
  }

  /** Ends everything at once. */
  async destroy(): Promise<void> {
    this.#stopTimers();
    this.#reconciler.destroy();
    this.#controlPlane.destroy();
    await this.#release();
  }

  #stopTimers(): void {
    this.#certificate.close();
    clearInterval(this.#logTimer);
    clearInterval(this.#findingsTimer);
  }

  /** Tells what is new: somebody edits manifests while they run, and needs the place of a mistake, and its end. */
  async #tellFindings(): Promise<void> {
    const findings = new Map((await this.#api.findings()).map((finding) => [JSON.stringify(finding), finding]));
    for (const [text, finding] of findings) {
      if (!this.#toldFindings.has(text)) this.#take({ type: "finding", finding });
    }
    this.#toldFindings = new Set(findings.keys());
    const hasErrors = findings.values().some(({ severity }) => severity === "error");
    if (this.#hasToldErrors && !hasErrors) this.#take({ type: "repaired" });
    this.#hasToldErrors = hasErrors;
  }

  /** Once, for who ends it and for who then ends it at once. */
  #release(): Promise<void> {
    return (this.#released ??= this.#releaseAll());
  }

  async #releaseAll(): Promise<void> {
    await this.#ownUserTable?.close();
    this.#socket?.close();
    removeSocketFolder(this.#state.path, this.#options.env);
    if (this.#joinPort?.bound !== undefined) closeSocket(this.#joinPort.bound.descriptor);
    await this.#network.close();
    await removeInstance(this.instance, this.#options.env);
    this.#logFile.close();
    this.#state.unlock();
  }

  #waitFor(
    condition: () => boolean | Promise<boolean>,
    signal: AbortSignal,
    limits: { readonly timeoutMs?: number } & Pick<WaitUntilOptions, "what" | "onWaiting">,
  ): Promise<void> {
    const unlessFailed = (): boolean | Promise<boolean> => {
      if (this.#failure !== undefined) throw new Hopeless(this.#failure);
      return condition();
    };
    return waitUntil(unlessFailed, { timeoutMs: readyTimeoutMs, signal, ...limits });
  }

  #take(event: SupervisorEvent): void {
    if (event.type === "process-ended" && event.end.restartInMs === undefined) {
      this.#failure = `${event.name} ended (${event.end.description})`;
    }
    logEvent(this.#log, event);
    this.#options.onEvent(event);
  }

  #boundLogs(): void {
    this.#logFile.bound();
    this.#controlPlane.boundLog();
    this.#reconciler.boundLogs();
  }
}
