// Machines over HTTP, for the owner: tokens that are made and revoked, who has joined, and what came of each try.
import {
  fixedPart,
  type IssuedToken,
  machineEndpoints,
  type MachineEvent,
  type MachinesResponse,
  type TokenRequest,
  type TokenStatus,
} from "@tulle/config/api";
import { joinTokenText, rootPin } from "@tulle/identity";
import type { Machines } from "../machines/open-machines.ts";
import { isAddressOrRange } from "../machines/machine-address.ts";
import { maxTokens, type SavedToken } from "../machines/machine-register.ts";
import type { RegisterState } from "../machines/register-state.ts";
import { ApiFailure } from "./api-failure.ts";
import { changeAuthor } from "./change-author.ts";
import { readBody } from "./read-body.ts";
import type { ApiRequest, Handlers, JsonReply } from "./routes.ts";

const maxLifetimeSeconds = 7 * 24 * 3600;

/** Undefined where no machine can join. `joinAddresses`: where tokens send machines, unless told. */
export function machineRoutes(
  found?: Machines,
  joinAddresses: () => readonly string[] = () => [],
): Handlers<typeof machineEndpoints> {
  const machines = (): Machines => {
    if (found === undefined)
      throw new ApiFailure(404, "no machine can join here: start it with --join-address <host:port>");
    return found;
  };
  return {
    machines: async () => {
      await machines().register.refresh();
      return shown(machines());
    },
    issueToken: (request) => issue(machines(), joinAddresses, request),
    revokeToken: (request) => revoke(machines(), request),
    removeMachine: (request) => remove(machines(), request),
  };
}

async function issue(
  machines: Machines,
  joinAddresses: () => readonly string[],
  request: ApiRequest,
): Promise<JsonReply<IssuedToken>> {
  const asked = parseRequest(await readBody(request.request));
  const { group, namespace, lifetimeSeconds, addresses = [], controlPlanes = joinAddresses() } = asked;
  if (controlPlanes.length === 0) {
    throw new ApiFailure(409, "it is not known where machines reach this control plane: name it by --control-plane");
  }
  const { register, authority } = machines;
  if (machines.entries.groupOf({ group, namespace }) === undefined) {
    throw new ApiFailure(404, `there is no WorkloadGroup ${group} in the namespace ${namespace}`);
  }
  const madeBy = changeAuthor(request);
  const madeMs = authority.now();
  const untilMs = madeMs + lifetimeSeconds * 1000;
  const made = await kept(register, (state) => {
    const token = state.addToken({ group, namespace, addresses, madeBy, madeMs, untilMs });
    if (token === undefined) throw new ApiFailure(409, `there are ${maxTokens} tokens, which is the limit`);
    state.note(event(machines, "token made", `${token.id} for ${group}.${namespace}`, madeBy));
    return token;
  });
  const rootPins = authority.signing.roots.map(rootPin);
  const token = joinTokenText({ controlPlanes, rootPins, ...made });
  return { status: 200, json: { id: made.id, token, until: new Date(untilMs).toISOString() } };
}

async function revoke(machines: Machines, request: ApiRequest): Promise<JsonReply<MachinesResponse>> {
  const [id = ""] = segments(request.path, machineEndpoints.revokeToken.path);
  await machines.register.refresh();
  await kept(machines.register, (state) => {
    const token = state.token(id);
    if (token === undefined) throw new ApiFailure(404, `there is no token ${id}`);
    if (token.usedBy !== undefined)
      throw new ApiFailure(409, `the token ${id} has been used by ${token.usedBy}: remove that machine`);
    state.setToken({ ...token, isRevoked: true });
    state.note(event(machines, "token revoked", id, changeAuthor(request)));
  });
  return shown(machines);
}

async function remove(machines: Machines, request: ApiRequest): Promise<JsonReply<MachinesResponse>> {
  const [namespace = "", name = ""] = segments(request.path, machineEndpoints.removeMachine.path);
  await machines.register.refresh();
  const machine = machines.register.machine(namespace, name);
  if (machine === undefined) throw new ApiFailure(404, `there is no machine ${name} in the namespace ${namespace}`);
  await machines.desk.remove(machine, "removed", changeAuthor(request));
  return shown(machines);
}

/** What cannot be kept has not happened. */
async function kept<T>(register: Machines["register"], make: (state: RegisterState) => T): Promise<T> {
  try {
    return await register.change(make);
  } catch (error) {
    if (error instanceof ApiFailure) throw error;
    throw new ApiFailure(503, `the register of machines cannot be written: ${(error as Error).message}`);
  }
}

function event(
  { authority }: Machines,
  what: "token made" | "token revoked",
  detail: string,
  peer: string,
): MachineEvent {
  return { time: new Date(authority.now()).toISOString(), what, detail, peer, times: 1 };
}

function shown({ register, entries, authority }: Machines): JsonReply<MachinesResponse> {
  const nowMs = authority.now();
  const machines = register.machines.map((machine) => ({
    name: machine.name,
    namespace: machine.namespace,
    group: machine.group,
    address: machine.address,
    hostname: machine.hostname,
    entry: entries.listedAs(machine),
    joined: new Date(machine.joinedMs).toISOString(),
    token: machine.tokenId,
    state: entries.stateOf(machine),
  }));
  const tokens = register.tokens.map((token) => tokenStatus(token, nowMs));
  return { status: 200, json: { tokens, machines, events: register.events } };
}

function tokenStatus(token: SavedToken, nowMs: number): TokenStatus {
  const { id, group, namespace, addresses, madeBy, untilMs, usedBy, isRevoked } = token;
  const unused = nowMs < untilMs ? "unused" : "expired";
  return {
    id,
    group,
    namespace,
    addresses,
    madeBy,
    until: new Date(untilMs).toISOString(),
    state: usedBy !== undefined ? "used" : isRevoked === true ? "revoked" : unused,
    ...(usedBy === undefined ? {} : { machine: usedBy }),
  };
}

function parseRequest(text: string): TokenRequest {
  let value: Partial<Record<keyof TokenRequest, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    throw new ApiFailure(400, "the body is not JSON");
  }
  const { group, namespace, lifetimeSeconds, addresses = [], controlPlanes } = value ?? {};
  if (typeof group !== "string" || typeof namespace !== "string")
    throw new ApiFailure(400, "the body names no group and namespace");
  if (typeof lifetimeSeconds !== "number" || !(lifetimeSeconds >= 1 && lifetimeSeconds <= maxLifetimeSeconds))
    throw new ApiFailure(400, `a token lives 1 to ${maxLifetimeSeconds} seconds`);
  if (!Array.isArray(addresses) || addresses.length > 16 || !addresses.every((each) => isAddressOrRange(String(each))))
    throw new ApiFailure(400, "addresses are at most 16 IP addresses, or ranges of them");
  const checked = { group, namespace, lifetimeSeconds, addresses: addresses.map(String) };
  if (controlPlanes === undefined) return checked;
  const isHostPort = (each: unknown): boolean => {
    return typeof each === "string" && URL.canParse(`https://${each}`) && /:\d+$/.test(each);
  };
  if (!Array.isArray(controlPlanes) || ![1, 2, 3, 4].includes(controlPlanes.length) || !controlPlanes.every(isHostPort))
    throw new ApiFailure(400, "controlPlanes are one to four times host:port");
  return { ...checked, controlPlanes: controlPlanes.map(String) };
}

function segments(path: string, pattern: string): string[] {
  try {
    return path.slice(fixedPart(pattern).length).split("/").map(decodeURIComponent);
  } catch {
    throw new ApiFailure(404, `there is nothing at ${path}`);
  }
}
