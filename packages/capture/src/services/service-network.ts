// Keeps the rules of all nodes as the store's Services and EndpointSlices want them. Changes that come while rules are
// being written are written together, the last of each.
import { setTimeout as delay } from "node:timers/promises";
import { CaptureFailure, type CaptureOptions } from "../rules/network-tools.ts";
import { applyServiceRules, removeServiceRules } from "./apply-service-rules.ts";
import type { ClusterEndpointSlice, ClusterService, ServiceNode, ServiceProblem } from "./cluster-objects.ts";
import type { RuleTable } from "./rule-table.ts";
import { servicePorts, type ServicePort } from "./service-ports.ts";
import { serviceRules } from "./service-rules.ts";
import { dropFlows, staleFlows } from "./stale-flows.ts";

export interface ServiceNetworkOptions {
  readonly nodes: readonly (ServiceNode & {
    /** Words before each command that run it in the node's network. */
    readonly prefix?: readonly string[];
  })[];
  /** From where Services have their addresses, one range of each family at the most. */
  readonly clusterRanges: readonly string[];
  /** What `externalIPs` may name; default nothing. */
  readonly externalRanges?: readonly string[];
  /** What of the Services cannot be: all of it, each time that it is something else. */
  readonly onProblems?: (problems: readonly ServiceProblem[]) => void;
  /** Why a node does not have its rules: once, until it has had them again. What is said is whole sentences. */
  readonly onFailure: (node: string, message: string) => void;
}

export interface ServiceSnapshot {
  /** With their addresses. */
  readonly services: readonly ClusterService[];
  readonly endpointSlices: readonly ClusterEndpointSlice[];
}

const firstRetryDelayMs = 100;
const longestRetryDelayMs = 5000;
/** Thousands of Services whose clients stay with their pods take seconds, all at once. */
const toolTimeoutMs = 60_000;

export class ServiceNetwork {
  readonly #options: ServiceNetworkOptions;
  readonly #writers: readonly NodeWriter[];
  #told = "[]";

  constructor(options: ServiceNetworkOptions) {
    this.#options = options;
    this.#writers = options.nodes.map((node) => new NodeWriter(node, options));
  }

  /** Returns at once. */
  update({ services, endpointSlices }: ServiceSnapshot): void {
    const { externalRanges = [], onProblems } = this.#options;
    const { ports, problems } = servicePorts({ services, endpointSlices, externalRanges });
    const text = JSON.stringify(problems);
    if (text !== this.#told) onProblems?.(problems);
    this.#told = text;
    for (const writer of this.#writers) writer.want(ports);
  }

  /** When all nodes have what was wanted last, or have been told that they cannot. */
  async settled(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.settled()));
  }

  /** Takes the rules out of all nodes that are still there. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.close()));
  }
}

type WriterOptions = Pick<ServiceNetworkOptions, "clusterRanges" | "onFailure">;

class NodeWriter {
  readonly #node: ServiceNetworkOptions["nodes"][number];
  readonly #options: WriterOptions;
  readonly #closing = new AbortController();
  #wanted: readonly ServicePort[] | undefined;
  #written: { readonly ports: readonly ServicePort[]; readonly table: RuleTable } | undefined;
  #running: Promise<void> | undefined;
  #tried = Promise.withResolvers<void>();
  /** What was said last of each, as long as it holds. */
  #told: { rules?: string; flows?: string } = {};

  constructor(node: ServiceNetworkOptions["nodes"][number], options: WriterOptions) {
    this.#node = node;
    this.#options = options;
  }

  want(ports: readonly ServicePort[]): void {
    if (this.#closing.signal.aborted) return;
    this.#wanted = ports;
    this.#running ??= this.#write();
  }

  async settled(): Promise<void> {
    while (this.#running !== undefined && this.#told.rules === undefined) {
      await Promise.race([this.#running, this.#tried.promise]);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    // A node that is gone has no rules.
    await removeServiceRules(this.#toolOptions).catch(() => undefined);
  }

  get #toolOptions(): CaptureOptions {
    const { prefix = [] } = this.#node;
    return { prefix, timeoutMs: toolTimeoutMs };
  }

  async #write(): Promise<void> {
    // One turn, so that changes of the same moment are one transaction.
    await Promise.resolve();
    for (let failures = 0; this.#wanted !== undefined && !this.#closing.signal.aborted;) {
      const ports = this.#wanted;
      this.#wanted = undefined;
      try {
        await this.#writeOnce(ports);
        failures = 0;
        delete this.#told.rules;
      } catch (error) {
        if (!(error instanceof CaptureFailure)) throw error;
        this.#tell("rules", error.message);
        this.#wanted ??= ports;
        await this.#wait(Math.min(firstRetryDelayMs * 2 ** failures, longestRetryDelayMs));
        failures = Math.min(failures + 1, 10);
      }
    }
    this.#running = undefined;
  }

  async #writeOnce(ports: readonly ServicePort[]): Promise<void> {
    const table = serviceRules({ node: this.#node, clusterRanges: this.#options.clusterRanges, ports });
    const before = this.#written;
    await applyServiceRules(table, before?.table, this.#toolOptions);
    this.#written = { ports, table };
    if (before === undefined) return;
    // The rules are first: a flow that is dropped comes again with its next packet.
    await dropFlows(staleFlows(before.ports, ports), this.#toolOptions).catch((error: unknown) => {
      if (!(error instanceof CaptureFailure)) throw error;
      this.#tell("flows", `UDP goes on to pods that are gone: ${error.message}`);
    });
  }

  #tell(what: "rules" | "flows", message: string): void {
    if (this.#told[what] === message) return;
    this.#told[what] = message;
    this.#options.onFailure(this.#node.name, message);
    this.#tried.resolve();
    this.#tried = Promise.withResolvers<void>();
  }

  async #wait(timeMs: number): Promise<void> {
    await delay(timeMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
  }
}
