// What machines ask on the port that they join at: to be taken in for a token, to be listed as they are, and to be
// forgotten. Each refusal is written down.
import { timingSafeEqual } from "node:crypto";
import { secretHash } from "@tulle/identity";
import type { MachineEvent } from "@tulle/config/api";
import type { Logger, SeldomWarnings } from "@tulle/telemetry";
import type {
  JoinAnswer,
  JoinRequest,
  MachineAnswer,
  MachineHandlers,
  MachineProbe,
  PeerIdentity,
  ReportAnswer,
  ReportRequest,
} from "@tulle/xds";
import type { MeshAuthority } from "../ca/mesh-authority.ts";
import type { RenewedCertificate, Renewals } from "../ca/certificate-requests.ts";
import { CallLimit } from "./call-limit.ts";
import { addressProblem, peerAddress, plainAddress, sourceOf } from "./machine-address.ts";
import type { MachineEntries } from "./machine-entries.ts";
import { machineLabels, type WorkloadGroup } from "./machine-entry.ts";
import { type MachineRegister, maxMachines, type SavedMachine, type SavedToken } from "./machine-register.ts";

export interface MachineDeskOptions {
  readonly register: MachineRegister;
  readonly entries: MachineEntries;
  readonly authority: Pick<MeshAuthority, "signing" | "now">;
  readonly clusterId: string;
  readonly log: Logger;
  readonly warnings: Pick<SeldomWarnings, "tell">;
}

type Refused = Extract<MachineAnswer<never>, { ok: false }>;
interface Caller {
  readonly peer: string;
  readonly peerIdentity: PeerIdentity | undefined;
}

const maxHostnameLength = 253;
/**
 * Of an address in a minute, or of a token that could still be used: whoever shares a gateway's address with somebody
 * that guesses joins all the same. Secrets have 256 bits, so that what is bounded is work and noise.
 */
const maxFailedTries = 10;
/** Of a machine in a minute; one tells how it is every five seconds. Each may change its entry, and so all proxies. */
export const maxReports = 600;
/** Of one machine, that have not ended: each is kept until then. One that renews at half life has two. */
export const maxCertificates = 256;

export class MachineDesk implements MachineHandlers {
  readonly #options: MachineDeskOptions;
  readonly #tries: CallLimit;
  readonly #reports: CallLimit;

  constructor(options: MachineDeskOptions) {
    this.#options = options;
    const nowMs = (): number => options.authority.now();
    this.#tries = new CallLimit(maxFailedTries, nowMs);
    this.#reports = new CallLimit(maxReports, nowMs);
  }

  readonly join = async (request: JoinRequest, { peer }: Caller): Promise<MachineAnswer<JoinAnswer>> => {
    const from = peerAddress(peer);
    const shown = this.#tokenOf(request);
    const isUsable = shown !== undefined && shown.usedBy === undefined && shown.isRevoked !== true;
    const [source, what] = isUsable ? [`token ${shown.id}`, "with this token"] : [sourceOf(from), "from this address"];
    if (!this.#tries.allows(source)) {
      return this.#refused(from, "RESOURCE_EXHAUSTED", `too many tries ${what}: wait a minute`);
    }
    const judged = this.#judge(request, shown, from);
    if ("ok" in judged) {
      this.#tries.count(source);
      return judged;
    }
    const { token, group, address } = judged;
    const { register, authority, clusterId, log } = this.#options;
    const { trustDomain } = authority.signing;
    const namespace = token.namespace;
    const serviceAccount = group.spec.template.serviceAccount ?? "default";
    const identity = { trustDomain, namespace, serviceAccount };
    const signed = authority.signing.signWorkload({ csrPem: request.csrPem, identity });
    if (!signed.ok) {
      this.#tries.count(source);
      return this.#refused(from, "INVALID_ARGUMENT", signed.message);
    }
    const { serial, notAfterMs } = signed.certificate;
    const machine: SavedMachine = {
      name: register.newName(namespace, token.group),
      namespace,
      group: token.group,
      serviceAccount,
      addresses: token.addresses,
      address,
      hostname: request.hostname.slice(0, maxHostnameLength),
      tokenId: token.id,
      joinedMs: authority.now(),
      certificates: { [serial]: notAfterMs },
    };
    // Both at once, before anything waits: of two that show the same token one is too late.
    register.setToken({ ...token, usedBy: machine.name });
    register.setMachine(machine);
    this.#note("joined", `${machine.name}.${namespace} by the token ${token.id}`, from);
    await register.save();
    log.info("a machine has joined", { machine: `${machine.name}.${namespace}`, address, peer: from, token: token.id });
    const certChain = [...signed.chain.map(({ pem }) => pem), authority.signing.trustBundlePem];
    const { name } = machine;
    const value = { name, namespace, group: token.group, serviceAccount, trustDomain, clusterId, certChain };
    return { ok: true, value };
  };

  readonly report = async (request: ReportRequest, caller: Caller): Promise<MachineAnswer<ReportAnswer>> => {
    if (this.#options.register.machineOf(caller.peerIdentity?.serial)?.isGone === true) {
      return { ok: true, value: { entry: "", labels: {}, isGone: true } };
    }
    const found = this.#machineOf(caller);
    if ("ok" in found) return found;
    const { entries, warnings } = this.#options;
    const name = `${found.name}.${found.namespace}`;
    if (!this.#reports.allows(name)) {
      const details = `${name} has reported ${maxReports} times within a minute: wait`;
      warnings.tell("reports", "a machine reports too often", { machine: name });
      return { ok: false, status: "RESOURCE_EXHAUSTED", details };
    }
    this.#reports.count(name);
    const machine = await this.#moved(found, request.address, peerAddress(caller.peer));
    if ("ok" in machine) return machine;
    const group = entries.groupOf(machine);
    if (group === undefined) {
      await entries.told(machine, false, "its group is gone");
      const details = `there is no WorkloadGroup ${machine.group} in the namespace ${machine.namespace} any more`;
      return { ok: false, status: "UNAVAILABLE", details };
    }
    if (request.isStopping === true) await entries.stopping(machine);
    else await entries.told(machine, request.isReady, request.reason ?? "");
    const { network, locality } = group.spec.template;
    return {
      ok: true,
      value: {
        entry: request.isStopping === true ? "" : entries.entryOf(machine),
        labels: machineLabels(group),
        ...(network === undefined ? {} : { network }),
        ...(locality === undefined ? {} : { locality }),
        ...(group.spec.probe === undefined ? {} : { probe: group.spec.probe satisfies MachineProbe }),
      },
    };
  };

  readonly leave = async (caller: Caller): Promise<MachineAnswer<object>> => {
    const machine = this.#machineOf(caller);
    if ("ok" in machine) return machine;
    await this.remove(machine, "left", peerAddress(caller.peer));
    return { ok: true, value: {} };
  };

  /** Resolves once it is kept that the machine is gone. */
  async remove(machine: SavedMachine, what: "left" | "removed", by: string): Promise<void> {
    const { register, entries } = this.#options;
    register.setMachine({ ...machine, isGone: true });
    this.#note(what, `${machine.name}.${machine.namespace}`, by);
    await register.save();
    await entries.gone(machine);
  }

  readonly renewals: Renewals = {
    problem: (shown) => {
      const machine = this.#options.register.machineOf(shown);
      return machine === undefined || this.#good(machine).length < maxCertificates
        ? undefined
        : `${machine.name} has ${maxCertificates} certificates that have not ended, which is the limit`;
    },
    renewed: async ({ shown, serial, notAfterMs }: RenewedCertificate) => {
      const { register } = this.#options;
      const machine = register.machineOf(shown);
      if (machine === undefined) return;
      const certificates = { ...Object.fromEntries(this.#good(machine)), [serial]: notAfterMs };
      register.setMachine({ ...machine, certificates });
      await register.save();
    },
  };

  /** Certificates that have not ended. */
  #good({ certificates }: SavedMachine): readonly (readonly [serial: string, untilMs: number])[] {
    const nowMs = this.#options.authority.now();
    return Object.entries(certificates).filter(([, untilMs]) => untilMs > nowMs);
  }

  /** Undefined unless the secret is its own. */
  #tokenOf({ tokenId, secret }: JoinRequest): SavedToken | undefined {
    const token = this.#options.register.token(tokenId);
    // Both are hashes, of one length.
    const hash = Buffer.from(secretHash(secret));
    return token !== undefined && timingSafeEqual(Buffer.from(token.hash), hash) ? token : undefined;
  }

  #judge(
    { tokenId, address }: JoinRequest,
    token: SavedToken | undefined,
    peer: string,
  ): { token: SavedToken; group: WorkloadGroup; address: string } | Refused {
    const { register, entries, authority } = this.#options;
    if (token === undefined) return this.#refused(peer, "UNAUTHENTICATED", "the token is not one of this mesh");
    const refuse = (why: string): Refused => this.#refused(peer, "PERMISSION_DENIED", `the token ${tokenId} ${why}`);
    if (token.isRevoked === true) return refuse("was revoked");
    if (token.usedBy !== undefined) return refuse(`has been used already, by ${token.usedBy}: each is for one machine`);
    const until = new Date(token.untilMs).toISOString();
    if (authority.now() >= token.untilMs) return refuse(`has expired, at ${until}`);
    const group = entries.groupOf(token);
    if (group === undefined) return refuse(`is for the WorkloadGroup ${token.group}.${token.namespace}, which is gone`);
    if (register.machines.length >= maxMachines) {
      return this.#refused(peer, "RESOURCE_EXHAUSTED", `there are ${maxMachines} machines, which is the limit`);
    }
    const claimed = plainAddress(address ?? peer);
    const problem = addressProblem({ address: claimed, peer, allowed: token.addresses });
    if (problem !== undefined) return this.#refused(peer, "PERMISSION_DENIED", problem);
    const { group: groupName, namespace } = token;
    const holder = entries.holderOf({ name: "", namespace, group: groupName } as SavedMachine, claimed);
    if (holder !== undefined) return this.#refused(peer, "PERMISSION_DENIED", `${claimed} is ${holder}'s`);
    return { token, group, address: claimed };
  }

  #machineOf({ peer, peerIdentity }: Caller): SavedMachine | Refused {
    const machine = this.#options.register.machineOf(peerIdentity?.serial);
    const from = peerAddress(peer);
    if (machine === undefined) {
      return this.#refused(from, "UNAUTHENTICATED", "no machine has shown its certificate");
    }
    return machine.isGone === true
      ? this.#refused(from, "PERMISSION_DENIED", `${machine.name} has left, or was removed`)
      : machine;
  }

  /** The machine at its address of now. */
  async #moved(machine: SavedMachine, wanted: string | undefined, peer: string): Promise<SavedMachine | Refused> {
    const address = plainAddress(wanted ?? peer);
    if (address === machine.address) return machine;
    const { register, entries, log } = this.#options;
    const problem = addressProblem({ address, peer, allowed: machine.addresses });
    if (problem !== undefined) return this.#refused(peer, "PERMISSION_DENIED", problem);
    const holder = entries.holderOf(machine, address);
    if (holder !== undefined) return this.#refused(peer, "PERMISSION_DENIED", `${address} is ${holder}'s`);
    const moved = { ...machine, address };
    register.setMachine(moved);
    await register.save();
    log.info("a machine has another address", { machine: `${machine.name}.${machine.namespace}`, address });
    return moved;
  }

  #refused(peer: string, status: Refused["status"], details: string): Refused {
    this.#note("refused", details, peer);
    // Kept with the next change: whoever is refused may come as often as he likes.
    this.#options.warnings.tell(status, "a machine was refused", { peer, reason: details });
    return { ok: false, status, details };
  }

  #note(what: MachineEvent["what"], detail: string, peer: string): void {
    this.#options.register.note({ time: new Date(this.#options.authority.now()).toISOString(), what, detail, peer });
  }
}
