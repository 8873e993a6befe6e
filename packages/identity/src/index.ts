// The public face of the identity package: who a workload is, and how it proves it.
export { type SpiffeId, parseSpiffeId, spiffeIdText } from "./spiffe-id.ts";
