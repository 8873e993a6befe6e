// What `tulle up` shows: on a terminal a block of pods that is drawn anew at each change, elsewhere one line a change.
// At the end of the start both print "Ready", as far as that is true, and a table of URLs.
import path from "node:path";
import { createColors } from "picocolors";
import type { Finding, FindingCode } from "@tulle/config";
import type { LocalPod, PodPhase, Supervisor, SupervisorEvent } from "@tulle/local";
import { type Instance, publishedUrl } from "@tulle/local/instance";
import type { CommandContext } from "../../command/command-module.ts";
import { pathFromHere } from "../../printing/path-from-here.ts";
import { renderFindings } from "../../printing/print-findings.ts";
import { wrapLines, wrapText } from "../../printing/wrap-text.ts";

const phaseTexts: Readonly<Record<PodPhase, string>> = {
  blocked: "cannot run here",
  "starting-proxy": "starting its proxy",
  "starting-app": "starting",
  running: "not ready",
  draining: "leaving",
  "stopping-app": "stopping",
  "stopping-proxy": "stopping its proxy",
  gone: "gone",
};

const widthWithoutTerminal = 100;
/** Of a pod's name, however narrow the window. */
const shortestLabel = 12;

export class UpProgress {
  readonly #context: CommandContext;
  readonly #dir: string;
  readonly #startedAtMs = performance.now();
  readonly #colors: ReturnType<typeof createColors>;
  #supervisor: Supervisor | undefined;
  /** Lines of the block that stand on the terminal now. */
  #drawnLines = 0;
  /** Text that waits to be written with what follows it. */
  #held: string[] | undefined;
  #isAnnounced = false;
  #isStarting = true;
  #isStopping = false;
  /** What the start waits for besides pods. */
  #awaited: readonly string[] = [];
  /** Processes whose log file was named already. */
  readonly #namedLogs = new Set<string>();
  /** Codes of findings whose page was named already. */
  readonly #namedPages = new Set<FindingCode>();
  /** Last text told of each pod, by its label, where changes are told line by line. */
  readonly #told = new Map<string, string>();

  constructor(context: CommandContext, dir: string) {
    this.#context = context;
    const relative = path.relative(context.cwd, dir);
    this.#dir = relative.startsWith("..") ? dir : relative || ".";
    this.#colors = createColors(context.isTerminal && (context.env["NO_COLOR"] ?? "") === "");
  }

  /** Only now is it certain that the folder is not running already. */
  follow(supervisor: Supervisor): void {
    this.#announce();
    this.#supervisor = supervisor;
    this.#showPods();
  }

  take(event: SupervisorEvent): void {
    this.#announce();
    switch (event.type) {
      case "pods":
        this.#showPods();
        return;
      case "waiting":
        this.#showAwaited(event.awaited);
        return;
      case "finding":
        if (event.finding.severity !== "info")
          this.#block(renderFindings([fromHere(event.finding, this.#context.cwd)], this.#context, this.#namedPages));
        return;
      case "repaired":
        this.#line(this.#colors.green("The manifests have no errors any more."));
        return;
      case "problem":
        this.#message(`${event.subject}: ${event.problem.message}`, this.#colors.yellow);
        this.#line(event.problem.suggestion);
        return;
      case "process-ended": {
        const { end } = event;
        const next = end.restartInMs === undefined ? "it stays down" : `starting again in ${end.restartInMs} ms`;
        this.#message(`${event.name} ended (${end.description}); ${next}`, this.#colors.red);
        if (!this.#namedLogs.has(event.name)) this.#line(`Log: ${event.logFile}`);
        this.#namedLogs.add(event.name);
        return;
      }
      case "trouble":
        this.#message(event.message, this.#colors.yellow);
    }
  }

  /**
   * The start is complete. Heading and table leave in one write: whoever waits for "Ready" in a pipe has the URLs with
   * it.
   */
  ready(instance: Instance): void {
    this.close();
    const held: string[] = [];
    this.#held = held;
    this.#showReady(instance);
    this.#held = undefined;
    this.#block(held.join(""));
  }

  #showReady(instance: Instance): void {
    const pods = this.#supervisor?.pods() ?? [];
    const blocked = pods.filter((pod) => pod.phase === "blocked" || pod.missing !== undefined);
    const seconds = ((performance.now() - this.#startedAtMs) / 1000).toFixed(1);
    this.#heading(pods.length, blocked);
    const rows = [
      ...instance.publishedPorts.map((port) => [publishedUrl(port), port.service]),
      // In namespaces mode the machine itself has no way there.
      [`${instance.apiUrl}/metrics`, instance.mode === "namespaces" ? "control plane, for pods" : "control plane"],
      [
        path.join(this.#dir, ".tulle", "logs"),
        `logs; ${countOf(pods.length - blocked.length, "pod")} ready after ${seconds} s`,
      ],
    ];
    const width = Math.max(...rows.map(([first]) => first!.length));
    this.#line("");
    const columns = this.#width;
    const isNarrow = columns !== undefined && rows.some(([, second]) => width + 4 + second!.length > columns);
    for (const [first, second] of rows) {
      this.#line(isNarrow ? `  ${first}\n    ${second}` : `  ${first!.padEnd(width)}  ${second}`);
    }
    if (instance.publishedPorts.some(({ protocol }) => protocol === "https")) {
      this.#line("");
      this.#line(`The certificate of https://localhost is vouched for by ${instance.developmentRootFile}`);
    }
    this.#line("");
    if (pods.length === blocked.length) this.#line("A saved change of the manifests takes effect at once.");
    this.#line("Ctrl-C ends it.");
  }

  /** Only what runs is called ready: a script that waits for the line "Ready" goes on when all of the pods are. */
  #heading(podCount: number, blocked: readonly LocalPod[]): void {
    const { bold, green, yellow } = this.#colors;
    const running = podCount - blocked.length;
    if (podCount === 0) {
      this.#message("Nothing to run: the manifests ask for no pods. The control plane is up.", yellow);
    } else if (running === 0) {
      const none = podCount === 1 ? "the only pod cannot" : `none of the ${podCount} pods can`;
      const what = blocked.some((pod) => pod.missing !== undefined) ? "run yet" : "run here";
      this.#message(`Not ready: ${none} ${what}, as told above. The control plane is up.`, yellow);
    } else if (blocked.length > 0) {
      this.#line(bold(green(`Ready, except for ${blocked.length} of ${podCount} pods`)));
      for (const pod of blocked) {
        const what = pod.missing === undefined ? "cannot run here" : "waits for its configuration";
        this.#message(`  ${labelOf(pod)} ${what}, as told above`, yellow);
      }
    } else {
      this.#line(bold(green("Ready")));
    }
  }

  stopping(): void {
    this.close();
    this.#isStopping = true;
    this.#message("Stopping; once more Ctrl-C ends everything at once.", (text) => text);
  }

  /** What follows is told by the failure's own message. */
  failed(): void {
    this.close();
    this.#isStopping = true;
  }

  stopped(): void {
    this.#line("Stopped.");
  }

  /** No block is drawn any more, only lines. */
  close(): void {
    this.#erase();
    this.#isStarting = false;
    for (const pod of this.#supervisor?.pods() ?? []) this.#told.set(labelOf(pod), this.#textOf(pod));
  }

  #announce(): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#line(`Starting ${this.#dir}`);
  }

  #showAwaited(awaited: readonly string[]): void {
    const added = awaited.filter((what) => !this.#awaited.includes(what));
    this.#awaited = awaited;
    if (this.#context.isTerminal) return this.#showPods();
    for (const what of added) this.#line(`waiting for ${what}`);
  }

  #showPods(): void {
    if (this.#supervisor === undefined || this.#isStopping) return;
    const pods = [...this.#supervisor.pods()].sort((a, b) => (labelOf(a) < labelOf(b) ? -1 : 1));
    if (this.#context.isTerminal && this.#isStarting) return this.#draw(pods);
    for (const pod of pods) {
      const text = this.#textOf(pod);
      const label = labelOf(pod);
      if (this.#told.get(label) === text) continue;
      this.#told.set(label, text);
      this.#line(`${label}: ${text}`);
    }
    for (const label of this.#told.keys()) {
      if (pods.some((pod) => labelOf(pod) === label)) continue;
      this.#told.delete(label);
      this.#line(`${label}: gone`);
    }
  }

  #textOf(pod: LocalPod): string {
    if (pod.ready) return "ready";
    // What it lacks is told with what to do.
    if (pod.missing !== undefined) return "waits for its configuration";
    return pod.failure === undefined ? phaseTexts[pod.phase] : `${phaseTexts[pod.phase]}: ${pod.failure}`;
  }

  #draw(pods: readonly LocalPod[]): void {
    this.#erase();
    // One column less than there is: a full last column makes some terminals wrap, and the block would be erased
    // wrongly.
    const columns = (this.#context.columns ?? widthWithoutTerminal) - 1;
    const podLines = pods.flatMap((pod) => {
      const text = this.#textOf(pod);
      const label = shortenMiddle(labelOf(pod), Math.max(shortestLabel, columns - text.length - 5));
      const mark = pod.ready ? this.#colors.green("●") : this.#colors.dim("○");
      const [first = "", ...more] = wrapText(text, columns - label.length - 5).split("\n");
      if (more.length === 0) return [`  ${mark} ${label} ${this.#colors.dim(first)}`];
      // A reason is told whole, below a label that is told whole.
      const lines = wrapText(text, columns - 6).split("\n");
      const whole = shortenMiddle(labelOf(pod), columns - 4);
      return [`  ${mark} ${whole}`, ...lines.map((line) => `      ${this.#colors.dim(shorten(line, columns - 6))}`)];
    });
    const awaitedLines = this.#awaited.flatMap((what) =>
      wrapText(`○ waiting for ${what}`, columns - 4, "  ")
        .split("\n")
        .map((line) => `  ${this.#colors.dim(shorten(line, columns - 2))}`),
    );
    const lines = [...podLines, ...awaitedLines];
    this.#context.stdout(lines.map((line) => `${line}\n`).join(""));
    this.#drawnLines = lines.length;
  }

  #erase(): void {
    if (this.#drawnLines > 0) this.#context.eraseLines(this.#drawnLines);
    this.#drawnLines = 0;
  }

  #message(text: string, color: (text: string) => string): void {
    this.#line(color(wrapText(text, this.#width, "  ")));
  }

  /** Of a terminal; a pipe gets lines as they are. */
  get #width(): number | undefined {
    return this.#context.isTerminal ? this.#context.columns : undefined;
  }

  #line(text: string): void {
    this.#block(`${wrapLines(text, this.#width)}\n`);
  }

  #block(text: string): void {
    if (this.#held !== undefined) {
      this.#held.push(text);
      return;
    }
    const hadBlock = this.#drawnLines > 0;
    this.#erase();
    this.#context.stdout(text);
    if (hadBlock) this.#showPods();
  }
}

function shorten(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`;
}

/** The end of a pod's name tells it from others of its Deployment. */
function shortenMiddle(text: string, columns: number): string {
  const tail = Math.min(6, columns - 2);
  return text.length <= columns ? text : `${text.slice(0, columns - 1 - tail)}…${text.slice(-tail)}`;
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function labelOf(pod: LocalPod): string {
  return `${pod.plan.namespace}/${pod.name}`;
}

function fromHere(finding: Finding, cwd: string): Finding {
  const { place } = finding;
  return place === undefined ? finding : { ...finding, place: { ...place, file: pathFromHere(place.file, cwd) } };
}
