// Whether a program's port answers (`@tulle/listening/probes`): an entry of its own, since few need it.
export { type Check, checkOf, type OnFailure, type Probe, probedPort, tcpCheck } from "./health-check.ts";
export { type CheckResult, type ProbeLoop, type ProbeTiming, startProbeLoop, timingOf } from "./probe-loop.ts";
