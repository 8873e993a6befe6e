// The public face of the capture package: what the machine's kernel tells of connections, and where it leads them.
export * from "./socket-owner.ts";
export * from "./processes.ts";
export * from "./own-programs.ts";
export * from "./local-route.ts";
export * from "./metadata-servers.ts";
export * from "./own-address.ts";
export * from "./network-namespace.ts";
export { addressBytes } from "./ip-address.ts";
export {
  enterProcesses,
  inheritedCopy,
  makeTransparent,
  openSocket,
  originalDestination,
  roundTripMicros,
  type SocketKind,
  transparentSocket,
  unixSocketPeer,
  unixSocketPeerUid,
} from "./kernel.ts";
export * from "./rules/capture-plan.ts";
export { type AnnotationProblem, parseAnnotationsFile, planOfAnnotations } from "./rules/capture-annotations.ts";
export { parseDownwardFile } from "./rules/downward-file.ts";
export { captureRules, captureTable, tproxyMark } from "./rules/capture-rules.ts";
export { applyRules, installCapture, installedRules, removeCapture } from "./rules/install-capture.ts";
export * from "./rules/network-tools.ts";
export { addPassthroughAddress } from "./rules/passthrough-address.ts";
export { isCaptured } from "./rules/probe-capture.ts";
export { nameserversIn } from "./dns/resolver-settings.ts";
