// The ports of this machine that lead into the mesh. The supervisor holds their listening sockets for as long as it
// lives, and gateways inherit them: a gateway that restarts or is replaced finds the connections that came meanwhile in
// the queue.
import { connect as connectSecurely } from "node:tls";
import { isBehind, type Service } from "@tulle/config";
import { type PublishedPort, publishedUrl } from "../instance.ts";
import type { PlanProblem, PodPlan } from "../pod/pod-plan.ts";
import { waitUntil } from "../process/wait-until.ts";
import { publishAnnotation, wantedPorts, type PortMapping, type WantedPort } from "./published-port-mappings.ts";
import { type Connect, type Machine, machineHere } from "../network/pod-network.ts";
import { closeSocket, listeningSocket, SystemCallFailed } from "../network/libc.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

const ownAddress = "127.0.0.1";
const answerTimeoutMs = 30_000;
/** Of one try. */
const probeTimeoutMs = 2000;
/** How many ports above a taken one are looked at for one to suggest. */
const triedPorts = 100;

interface HeldPort extends WantedPort {
  readonly descriptor: number;
}

/** What a gateway's pod is told of a port. */
export interface PortForPod {
  readonly address: string;
  readonly hostPort: number;
  readonly targetPort: number;
  readonly descriptor: number;
}

export class PublishedPorts {
  readonly #overrides: readonly PortMapping[];
  readonly #held = new Map<number, HeldPort>();
  readonly #machine: Machine;
  #services: readonly Service[] = [];

  constructor(overrides: readonly PortMapping[], machine: Machine = machineHere) {
    this.#overrides = overrides;
    this.#machine = machine;
  }

  /**
   * Takes the ports that the Services ask for and lets go of those that none asks for any more. Answers what stands in
   * the way of a port.
   */
  update(services: readonly Service[]): readonly PortProblem[] {
    this.#services = services;
    const { ports, problems } = wantedPorts(services, this.#overrides);
    const found: PortProblem[] = problems.map(({ service, ...problem }) => ({
      subject: subjectOf(service),
      ...problem,
    }));
    const wanted = new Map<number, WantedPort>();
    for (const port of ports) {
      const other = wanted.get(port.hostPort);
      if (other === undefined) wanted.set(port.hostPort, port);
      else found.push(publishedTwice(port, other));
    }
    for (const [hostPort, held] of this.#held) {
      const still = wanted.get(hostPort);
      if (still !== undefined && sameTarget(still, held)) continue;
      closeSocket(held.descriptor);
      this.#held.delete(hostPort);
    }
    const taken: WantedPort[] = [];
    for (const [hostPort, port] of wanted) {
      if (this.#held.has(hostPort)) continue;
      try {
        this.#held.set(hostPort, { ...port, descriptor: this.#listen(port) });
      } catch (error) {
        if (!(error instanceof SystemCallFailed)) throw error;
        if (error.code === "EADDRINUSE") taken.push(port);
        else found.push(unavailable(port, error.code));
      }
    }
    const remedy = taken.length === 0 ? "" : this.#publishElsewhere(taken, new Set(wanted.keys()));
    found.push(...taken.map((port) => inUse(port, remedy)));
    return found;
  }

  #listen({ hostAddress = ownAddress, hostPort }: PortMapping): number {
    return listeningSocket(hostAddress, hostPort, this.#machine.openSocket);
  }

  /**
   * The option that leads around all ports that are taken, and keeps what the command line said of others: whoever
   * types what a message says has to get through with it.
   */
  #publishElsewhere(taken: readonly WantedPort[], used: Set<number>): string {
    const targets = new Set(taken.map(({ targetPort }) => targetPort));
    const kept = this.#overrides.filter(({ targetPort }) => !targets.has(targetPort));
    const moved = taken.map((port): PortMapping => {
      const free = this.#freePortAbove(port, used);
      used.add(free);
      return { ...port, hostPort: free };
    });
    const pairs = [...kept, ...moved].toSorted((a, b) => a.targetPort - b.targetPort).map(mappingText);
    return `--publish ${pairs.join(",")}`;
  }

  /** The next port that nobody listens on now; where a hundred of them are taken, just the next one. */
  #freePortAbove(port: PortMapping, used: ReadonlySet<number>): number {
    const { hostPort } = port;
    for (let candidate = hostPort + 1; candidate <= Math.min(hostPort + triedPorts, 65_535); candidate += 1) {
      if (!used.has(candidate) && this.#isFree({ ...port, hostPort: candidate })) return candidate;
    }
    return hostPort + 1;
  }

  #isFree(port: PortMapping): boolean {
    try {
      closeSocket(this.#listen(port));
      return true;
    } catch (error) {
      if (!(error instanceof SystemCallFailed)) throw error;
      return false;
    }
  }

  /** The ports that lead to pods with these labels. */
  forPod(pod: Pick<PodPlan, "namespace" | "labels">): readonly PortForPod[] {
    return [...this.#held.values()]
      .filter((port) => {
        const service = this.#services.find((each) => matchesService(each, port));
        return service !== undefined && isBehind(service, pod);
      })
      .map(({ hostAddress: address = ownAddress, hostPort, targetPort, descriptor }) => ({
        address,
        hostPort,
        targetPort,
        descriptor,
      }));
  }

  /** Ports of the command line that stand in for none of the manifests. */
  unusedOverrides(): readonly PortMapping[] {
    const held = [...this.#held.values()];
    return this.#overrides.filter(({ targetPort }) => held.every((port) => port.targetPort !== targetPort));
  }

  list(): readonly PublishedPort[] {
    return [...this.#held.values()].map(({ hostAddress, hostPort, targetPort, service, namespace, protocol }) => ({
      address: hostAddress ?? ownAddress,
      port: hostPort,
      targetPort,
      service: `${service}.${namespace}`,
      protocol,
    }));
  }

  /**
   * Resolves when a request through each port that leads to one of `pods` came back. `onWaiting` is told what is
   * missing, each time that this is different. Where a part of the mesh cannot run (`isPartial`), nobody behind a route
   * is an answer too.
   * @throws when one does not come back within the limit
   */
  async waitForAnswers(
    pods: readonly Pick<PodPlan, "namespace" | "labels" | "takesProxyProtocol">[],
    signal: AbortSignal,
    onWaiting: (awaited: readonly string[]) => void,
    isPartial = false,
  ): Promise<void> {
    const served = new Map(
      pods.flatMap((pod) => this.forPod(pod).map(({ hostPort }) => [hostPort, pod.takesProxyProtocol === true])),
    );
    const ports = this.list().filter(({ port }) => served.has(port));
    const awaited = new Set<string>();
    await Promise.all(
      ports.map(async (published) => {
        const what = `an answer through ${publishedUrl(published)} (${published.service})`;
        await waitUntil(
          () => answers(this.#machine.connect, published, isPartial, served.get(published.port) === true),
          {
            timeoutMs: answerTimeoutMs,
            signal,
            what: () => what,
            onWaiting: () => onWaiting([...awaited.add(what)]),
          },
        );
        if (awaited.delete(what)) onWaiting([...awaited]);
      }),
    );
  }

  close(): void {
    for (const { descriptor } of this.#held.values()) closeSocket(descriptor);
    this.#held.clear();
  }
}

export interface PortProblem extends PlanProblem {
  readonly subject: string;
  /** The port that is in use, when that is the problem, and at which address. */
  readonly takenPort?: number;
  readonly takenAt?: string;
}

/** Names who has the port, where that can be known. */
export function withHolder(problem: PortProblem, machine: Machine): PortProblem {
  const { takenPort, takenAt = ownAddress } = problem;
  if (takenPort === undefined) return problem;
  return { ...problem, message: problem.message + machine.holderText(takenAt, takenPort) };
}

/** Whether what stands in the way goes by itself within a minute. */
export function isPassing({ takenPort, takenAt = ownAddress }: PortProblem, machine: Machine): boolean {
  return takenPort !== undefined && machine.isKeptByClosedConnections(takenAt, takenPort);
}

function subjectOf(service: Service): string {
  return `Service ${service.metadata.namespace}/${service.metadata.name}`;
}

function matchesService(service: Service, port: WantedPort): boolean {
  return service.metadata.name === port.service && service.metadata.namespace === port.namespace;
}

function sameTarget(a: WantedPort, b: WantedPort): boolean {
  const isSamePlace = a.targetPort === b.targetPort && a.hostAddress === b.hostAddress;
  return isSamePlace && a.service === b.service && a.namespace === b.namespace;
}

function publishedTwice(port: WantedPort, other: WantedPort): PortProblem {
  return {
    subject: `Service ${port.namespace}/${port.service}`,
    message: `port ${port.hostPort} of this machine is published by Service ${other.namespace}/${other.service} already`,
    suggestion: `Change one of the two annotations ${publishAnnotation}.`,
  };
}

function unavailable(port: WantedPort, code: string): PortProblem {
  const subject = `Service ${port.namespace}/${port.service}`;
  if (code === "EACCES") {
    return {
      subject,
      message: `this user may not listen on port ${port.hostPort}`,
      suggestion: `Publish on a port from 1024 on: --publish 8080:${port.targetPort}`,
    };
  }
  if (code === "EADDRNOTAVAIL") {
    return {
      subject,
      message: `${port.hostAddress} is no address of this machine`,
      suggestion: `Name one that it has, or none: --publish ${port.hostPort}:${port.targetPort}`,
    };
  }
  return {
    subject,
    message: `port ${port.hostPort} cannot be listened on: ${code}`,
    suggestion: `Publish on another port: --publish ${port.hostPort + 1}:${port.targetPort}`,
  };
}

function inUse(port: WantedPort, remedy: string): PortProblem {
  return {
    subject: `Service ${port.namespace}/${port.service}`,
    message: `port ${hostPortText(port)} is in use`,
    suggestion: `End that process, or publish elsewhere: ${remedy}`,
    takenPort: port.hostPort,
    ...(port.hostAddress === undefined ? {} : { takenAt: port.hostAddress }),
  };
}

function hostPortText({ hostAddress = ownAddress, hostPort }: PortMapping): string {
  return hostAddress.includes(":") ? `[${hostAddress}]:${hostPort}` : `${hostAddress}:${hostPort}`;
}

/** As `parsePortMappings` reads it. */
function mappingText(port: PortMapping): string {
  return `${port.hostAddress === undefined ? port.hostPort : hostPortText(port)}:${port.targetPort}`;
}

/**
 * Whether the port leads somewhere: any answer of an application counts, a 503 too, and any of the proxy itself but
 * that it has no endpoint yet.
 */
function answers(
  connect: Connect,
  published: PublishedPort,
  isPartial: boolean,
  needsProxyHeader: boolean,
): Promise<boolean> {
  const { address, port, protocol } = published;
  if (protocol === "tcp") return accepts(connect, address, port);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const outgoing = request({
    path: "/",
    headers: { host: `localhost:${port}`, "user-agent": "tulle-probe" },
    signal: AbortSignal.timeout(probeTimeoutMs),
    createConnection: () => {
      const socket = connect({ host: address, port });
      // The gateway is told that nobody is spoken for.
      if (needsProxyHeader) socket.write("PROXY UNKNOWN\r\n");
      // Whose certificate it is does not matter to the question, and a gateway may well ask for one of ours.
      const secure = { socket, servername: "localhost", rejectUnauthorized: false };
      return protocol === "https" ? connectSecurely(secure) : socket;
    },
  });
  outgoing.once("response", (response) => {
    response.resume();
    const isOfApplication = response.headers["x-envoy-upstream-service-time"] !== undefined;
    resolve(response.statusCode !== 503 || isOfApplication || isPartial);
  });
  outgoing.once("error", () => resolve(false));
  outgoing.once("close", () => resolve(false));
  outgoing.end();
  return promise;
}

/** Of bytes that nobody here understands no answer can be asked for. */
function accepts(connect: Connect, address: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address, port }).setTimeout(probeTimeoutMs);
  socket.once("connect", () => {
    resolve(true);
    socket.destroy();
  });
  socket.once("timeout", () => socket.destroy());
  socket.once("error", () => resolve(false));
  socket.once("close", () => resolve(false));
  return promise;
}
