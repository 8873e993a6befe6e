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
import type { RegisterState } from "./register-state.ts";

export interface MachineDeskOptions {
  readonly register: MachineRegister;
  readonly entries: MachineEntries;
  readonly authority: Pick<MeshAuthority, "signing" | "now">;
  readonly clusterId: string;
  readonly log: Logger;
  readonly warnings: Pick<SeldomWarnings, "tell">;
}

type Refused = Extract<MachineAnswer<never>, { ok: false }>;
type Known = Pick<RegisterState, "token" | "machines">;
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
/** For what another control plane may have written, of an address or a certificate in a minute. */
const maxLooks = 10;
/** Of one machine, that have not ended: each is kept until then. One that renews at half life has two. */
export const maxCertificates = 256;

export class MachineDesk implements MachineHandlers {
  readonly #options: MachineDeskOptions;
  readonly #tries: CallLimit;
  readonly #reports: CallLimit;
  readonly #looks: CallLimit;

  constructor(options: MachineDeskOptions) {
    this.#options = options;
    const nowMs = (): number => options.authority.now();
    this.#tries = new CallLimit(maxFailedTries, nowMs);
    this.#reports = new CallLimit(maxReports, nowMs);
    this.#looks = new CallLimit(maxLooks, nowMs);
  }

  readonly join = async (request: JoinRequest, { peer }: Caller): Promise<MachineAnswer<JoinAnswer>> => {
    const from = peerAddress(peer);
    // Another control plane may have made it a moment ago.
    if (this.#options.register.token(request.tokenId) === undefined) await this.#lookAgain(sourceOf(from));
    const shown = this.#tokenOf(request);
    const isUsable = shown !== undefined && shown.usedBy === undefined && shown.isRevoked !== true;
    const [source, what] = isUsable ? [`token ${shown.id}`, "with this token"] : [sourceOf(from), "from this address"];
    if (!this.#tries.allows(source)) {
      return this.#refused(from, "RESOURCE_EXHAUSTED", `too many tries ${what}: wait a minute`);
    }
    const judged = this.#judge(this.#options.register, request, shown, from);
    if ("ok" in judged) {
      this.#tries.count(source);
      return judged;
    }
    const joined = await this.#kept(from, (state) => this.#admit(state, request, from));
    if (joined.ok) {
      const { name, namespace } = joined.value;
      this.#options.log.info("a machine has joined", {
        machine: `${name}.${namespace}`,
        peer: from,
        token: request.tokenId,
      });
    } else this.#tries.count(source);
    return joined;
  };

  /** The machine with its first certificate; of two that show the same token one is too late. */
  #admit(state: RegisterState, request: JoinRequest, from: string): MachineAnswer<JoinAnswer> {
    const judged = this.#judge(state, request, this.#tokenOf(request, state), from);
    if ("ok" in judged) return judged;
    const { token, group, address } = judged;
    const { authority, clusterId } = this.#options;
    const { trustDomain } = authority.signing;
    const namespace = token.namespace;
    const serviceAccount = group.spec.template.serviceAccount ?? "default";
    const identity = { trustDomain, namespace, serviceAccount };
    const signed = authority.signing.signWorkload({ csrPem: request.csrPem, identity });
    if (!signed.ok) return this.#refused(from, "INVALID_ARGUMENT", signed.message);
    const { serial, notAfterMs } = signed.certificate;
    const machine: SavedMachine = {
      name: state.newName(namespace, token.group),
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
    state.setToken({ ...token, usedBy: machine.name });
    state.setMachine(machine);
    state.note(this.#event("joined", `${machine.name}.${namespace} by the token ${token.id}`, from));
    const certChain = [...signed.chain.map(({ pem }) => pem), authority.signing.trustBundlePem];
    const { name } = machine;
    const value = { name, namespace, group: token.group, serviceAccount, trustDomain, clusterId, certChain };
    return { ok: true, value };
  }

  /** Says that it cannot be kept: the machine may ask another control plane, or again. */
  async #kept<Value>(
    peer: string,
    make: (state: RegisterState) => MachineAnswer<Value>,
  ): Promise<MachineAnswer<Value>> {
    try {
      return await this.#options.register.change(make);
    } catch (error) {
      this.#options.log.error("the register of machines cannot be written", { peer, reason: (error as Error).message });
      return { ok: false, status: "UNAVAILABLE", details: "the register of machines cannot be written now: try again" };
    }
  }

  readonly report = async (request: ReportRequest, caller: Caller): Promise<MachineAnswer<ReportAnswer>> => {
    const serial = caller.peerIdentity?.serial;
    if (serial !== undefined && this.#options.register.machineOf(serial) === undefined) await this.#lookAgain(serial);
    if (this.#options.register.machineOf(serial)?.isGone === true) {
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
    await register.change((state) => {
      const now = state.machine(machine.namespace, machine.name);
      if (now === undefined) return;
      state.setMachine({ ...now, isGone: true });
      state.note(this.#event(what, `${machine.name}.${machine.namespace}`, by));
    });
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
      if (register.machineOf(shown) === undefined) return;
      await register.change((state) => {
        const machine = state.machineOf(shown);
        if (machine === undefined) return;
        const certificates = { ...Object.fromEntries(this.#good(machine)), [serial]: notAfterMs };
        state.setMachine({ ...machine, certificates });
      });
    },
  };

  /** Certificates that have not ended. */
  #good({ certificates }: SavedMachine): readonly (readonly [serial: string, untilMs: number])[] {
    const nowMs = this.#options.authority.now();
    return Object.entries(certificates).filter(([, untilMs]) => untilMs > nowMs);
  }

  /** Undefined unless the secret is its own. */
  #tokenOf({ tokenId, secret }: JoinRequest, state: Known = this.#options.register): SavedToken | undefined {
    const token = state.token(tokenId);
    // Both are hashes, of one length.
    const hash = Buffer.from(secretHash(secret));
    return token !== undefined && timingSafeEqual(Buffer.from(token.hash), hash) ? token : undefined;
  }

  #judge(
    state: Known,
    { tokenId, address }: JoinRequest,
    token: SavedToken | undefined,
    peer: string,
  ): { token: SavedToken; group: WorkloadGroup; address: string } | Refused {
    const { entries, authority } = this.#options;
    if (token === undefined) return this.#refused(peer, "UNAUTHENTICATED", "the token is not one of this mesh");
    const refuse = (why: string): Refused => this.#refused(peer, "PERMISSION_DENIED", `the token ${tokenId} ${why}`);
    if (token.isRevoked === true) return refuse("was revoked");
    if (token.usedBy !== undefined) return refuse(`has been used already, by ${token.usedBy}: each is for one machine`);
    const until = new Date(token.untilMs).toISOString();
    if (authority.now() >= token.untilMs) return refuse(`has expired, at ${until}`);
    const group = entries.groupOf(token);
    if (group === undefined) return refuse(`is for the WorkloadGroup ${token.group}.${token.namespace}, which is gone`);
    if (state.machines.length >= maxMachines) {
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
    const moved = await register.change((state) => {
      const now = state.machine(machine.namespace, machine.name);
      if (now === undefined) return undefined;
      state.setMachine({ ...now, address });
      return { ...now, address };
    });
    if (moved === undefined)
      return this.#refused(peer, "PERMISSION_DENIED", `${machine.name} has left, or was removed`);
    log.info("a machine has another address", { machine: `${machine.name}.${machine.namespace}`, address });
    return moved;
  }

  /** Others may have written what is not known here yet; whoever asks may ask as often as he likes. */
  async #lookAgain(source: string): Promise<void> {
    if (!this.#looks.allows(source)) return;
    this.#looks.count(source);
    await this.#options.register.refresh();
  }

  #refused(peer: string, status: Refused["status"], details: string): Refused {
    this.#options.register.note(this.#event("refused", details, peer));
    // Kept with the next change: whoever is refused may come as often as he likes.
    this.#options.warnings.tell(status, "a machine was refused", { peer, reason: details });
    return { ok: false, status, details };
  }

  #event(what: MachineEvent["what"], detail: string, peer: string): MachineEvent {
    return { time: new Date(this.#options.authority.now()).toISOString(), what, detail, peer, times: 1 };
  }
}
