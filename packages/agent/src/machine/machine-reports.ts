// Tells the control plane where the machine is and whether it is well: at once when that changes, and now and then, so
// that an entry which somebody has removed comes back.
import { type CheckResult, type ProbeLoop, startProbeLoop, timingOf } from "@tulle/listening/probes";
import { type Logger, RepeatedWarning } from "@tulle/telemetry";
import { type MachineProbe, type ReportAnswer, reportMachine } from "@tulle/xds";
import { isDeepStrictEqual } from "node:util";
import { clientTls } from "../identity/client-tls.ts";
import type { WorkloadIdentity } from "../identity/workload-identity.ts";
import { groupCheck } from "./group-probe.ts";

export interface MachineReportsOptions {
  readonly identity: Pick<WorkloadIdentity, "current" | "follow">;
  /** `https://host:port`. */
  readonly controlPlane: string;
  readonly address: string;
  /** Where the program is asked. */
  readonly appAddress: string;
  /** Of the proxy's stream: whoever has that hears how the machine is. */
  readonly onStream?: Parameters<typeof reportMachine>[0]["onStream"];
  readonly isProxyReady: () => Promise<boolean>;
  /** The control plane does not know the machine any more. */
  readonly onGone: () => void;
  readonly log: Logger;
}

export interface MachineReports {
  /** Before its time; it may learn that it is gone. */
  tellNow(): void;
  /** Nothing new is sent here from then on. Resolves when that is known, or could not be said. */
  stopping(): Promise<void>;
  stop(): void;
}

const everyMs = 5000;
/** Until the proxy is ready, and after what could not be told. */
const soonMs = 500;

export function startMachineReports(options: MachineReportsOptions): MachineReports {
  const reports = new Reports(options);
  reports.begin();
  return reports;
}

class Reports implements MachineReports {
  readonly #options: MachineReportsOptions;
  readonly #warning: RepeatedWarning;
  #probe: MachineProbe | undefined;
  #loop: ProbeLoop | undefined;
  /** Of the probe; undefined before the first. */
  #verdict: boolean | undefined;
  #failure = "";
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isGone = false;
  #asking: Promise<void> = Promise.resolve();
  #toldEntry = "";

  constructor(options: MachineReportsOptions) {
    this.#options = options;
    this.#warning = new RepeatedWarning(options.log);
  }

  begin(): void {
    this.#schedule(0);
  }

  tellNow(): void {
    this.#schedule(0);
  }

  async stopping(): Promise<void> {
    this.stop();
    await this.#asking;
    if (this.#isGone) return;
    await this.#report({ isReady: false, reason: "the machine stops", isStopping: true });
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#loop?.stop();
  }

  #schedule(afterMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      this.#asking = this.#asking.then(() => this.#tell());
    }, afterMs);
  }

  async #tell(): Promise<void> {
    if (this.#isOver) return;
    const isProxyReady = await this.#options.isProxyReady();
    const isWell = this.#probe === undefined || this.#verdict === true;
    const reason = isProxyReady
      ? isWell
        ? ""
        : this.#failure || "its probe was not answered yet"
      : "its proxy starts";
    const answer = await this.#report({ isReady: isProxyReady && isWell, reason });
    if (answer !== undefined) this.#take(answer);
    this.#schedule(answer === undefined || !isProxyReady ? soonMs : everyMs);
  }

  #take({ probe, entry }: ReportAnswer): void {
    if (entry !== this.#toldEntry) this.#options.log.info("this machine is listed", { entry });
    this.#toldEntry = entry;
    if (this.#isOver || (this.#loop !== undefined && isDeepStrictEqual(probe, this.#probe))) return;
    this.#loop?.stop();
    this.#loop = undefined;
    this.#probe = probe;
    this.#verdict = undefined;
    if (probe === undefined) return;
    const check = groupCheck(probe, this.#options.appAddress);
    const ask = (): Promise<CheckResult> => check((why) => (this.#failure = why));
    this.#loop = startProbeLoop(ask, timingOf(probe), (isWell) => {
      if (isWell === this.#verdict) return;
      this.#verdict = isWell;
      if (isWell) this.#failure = "";
      this.#options.log.info(isWell ? "the program is well" : "the program is not well", { reason: this.#failure });
      this.#schedule(0);
    });
  }

  async #report(report: {
    readonly isReady: boolean;
    readonly reason: string;
    readonly isStopping?: true;
  }): Promise<ReportAnswer | undefined> {
    const { identity, controlPlane, address, onStream, onGone } = this.#options;
    const { current } = identity;
    if (current === undefined) return undefined;
    const asking = { target: controlPlane, tls: () => clientTls(current), onStream };
    const answer = await reportMachine(asking, { address, ...report });
    if (!answer.ok) {
      this.#warning.tell(`the control plane does not list this machine: ${answer.details}`, { address });
      return undefined;
    }
    if (answer.value.isGone !== true) return answer.value;
    this.#isGone = true;
    this.stop();
    onGone();
    return undefined;
  }
}
