// How a machine becomes one of a mesh (`@tulle/agent/machine`): for the command that joins, and starts agents.
export { joinMachine, leaveMachine, type Joined, type Joining } from "./join-machine.ts";
export { machineEnvironment, type MachineSettings, outboundProxyPort } from "./machine-environment.ts";
export { machineCertificate, type MachineIdentity, readMachine } from "./machine-state.ts";
export { ownAddressTowards } from "./own-address-towards.ts";
