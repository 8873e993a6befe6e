// Asks the machine's program whether it is well, as its WorkloadGroup says: past the proxy, at the machine itself.
import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import { type Check, checkOf, type OnFailure } from "@tulle/listening/probes";
import { callUnary, type MachineProbe } from "@tulle/xds";

const defaultTimeoutSeconds = 1;

/** `address`: where the program is asked, unless the probe names another host. */
export function groupCheck(probe: MachineProbe, address: string): Check {
  const timeoutMs = (probe.timeoutSeconds || defaultTimeoutSeconds) * 1000;
  if (probe.exec !== undefined) return commandCheck(probe.exec.command, timeoutMs);
  if (probe.grpc !== undefined) return grpcCheck(address, probe.grpc, timeoutMs);
  const target = { address: probe.tcpSocket?.host || address, ports: [], connect };
  return checkOf(probe, target) ?? (() => Promise.resolve(false));
}

function commandCheck([program = "", ...args]: readonly string[], timeoutMs: number): Check {
  return (onFailure: OnFailure = () => undefined) => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const fail = (error: unknown): void => {
      onFailure(`${program}: ${(error as Error).message}`);
      resolve(false);
    };
    let child: ChildProcess;
    try {
      child = spawn(program, args, { stdio: "ignore", timeout: timeoutMs, killSignal: "SIGKILL" });
    } catch (error) {
      // No name at all, or one with a NUL byte.
      fail(error);
      return promise;
    }
    child.once("error", fail);
    child.once("exit", (code, signal) => {
      if (code !== 0) onFailure(`${program} ended with ${code ?? signal}`);
      resolve(code === 0);
    });
    return promise;
  };
}

/** Field 1 of HealthCheckResponse is SERVING (grpc/health/v1/health.proto). */
const serving = Buffer.from([0x08, 0x01]);

function grpcCheck(
  address: string,
  { port, service = "" }: NonNullable<MachineProbe["grpc"]>,
  timeoutMs: number,
): Check {
  const name = Buffer.from(service);
  // Field 1 of HealthCheckRequest; names of more than 127 bytes are none.
  const bytes = name.byteLength === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.byteLength]), name]);
  const host = address.includes(":") ? `[${address}]` : address;
  return async (onFailure: OnFailure = () => undefined) => {
    const target = `http://${host}:${port}`;
    const answer = await callUnary({ target, path: "/grpc.health.v1.Health/Check", bytes, timeoutMs });
    const isWell = answer.ok && serving.equals(answer.bytes.subarray(0, serving.byteLength));
    if (!isWell) onFailure(answer.ok ? "the program says that it does not serve" : answer.details);
    return isWell;
  };
}
