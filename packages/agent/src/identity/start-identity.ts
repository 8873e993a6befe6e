// Gives the agent its workload's identity: the trusted roots, the certificate that is asked for, and the socket that
// serves both to the proxy.
import path from "node:path";
import { create } from "@bufbuild/protobuf";
import type { Logging } from "@tulle/telemetry";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { nodeId } from "../bootstrap/bootstrap.ts";
import type { AgentSettings, IdentitySettings } from "../settings.ts";
import { authorityClient } from "./authority-client.ts";
import { followRoots } from "./roots-stream.ts";
import { serveSecrets } from "./secret-server.ts";
import { waitForTrustedRoots } from "./trusted-roots.ts";
import { WorkloadIdentity } from "./workload-identity.ts";

/** A control plane that is just being installed makes its authority in seconds. */
const rootsTimeoutMs = 30_000;

export interface RunningIdentity extends AsyncDisposable {
  readonly workload: WorkloadIdentity;
  /** Where the proxy gets its secrets. */
  readonly socketPath: string;
}

export interface IdentityStart {
  readonly settings: AgentSettings;
  readonly identity: IdentitySettings;
  readonly socketPath: string;
  readonly stop: AbortSignal;
  readonly logging: Logging;
}

/**
 * Resolves when the socket serves; the certificate comes later. @throws when there are no roots to trust, or no socket
 */
export async function startIdentity(start: IdentityStart): Promise<RunningIdentity> {
  const { settings, identity, socketPath, stop, logging } = start;
  const { rootsFile, tokenFile, spiffeId } = identity;
  const log = logging.logger("identity");
  const workload = await WorkloadIdentity.start({
    spiffeId,
    file: path.join(settings.stateFolder, "workload-certificate.json"),
    tokenFile,
    rootsFile,
    rootsPem: await waitForTrustedRoots(rootsFile, rootsTimeoutMs, stop),
    sign: authorityClient({ controlPlane: settings.controlPlane, rootsFile }),
    log,
  });
  try {
    const server = await serveSecrets({ socketPath, identity: workload, log });
    const { controlPlane } = settings;
    const node = create(NodeSchema, { id: nodeId(settings) });
    const rootsStream = followRoots({ controlPlane, node, identity: workload, log });
    return {
      workload,
      socketPath,
      [Symbol.asyncDispose]: async () => {
        rootsStream[Symbol.dispose]();
        await server[Symbol.asyncDispose]();
        await workload.close();
      },
    };
  } catch (error) {
    await workload.close();
    throw error;
  }
}
