// The environment of a pod's programs: what tells them where to listen, and sends their calls through the sidecar.
import path from "node:path";
import type { ContainerPlan } from "./pod-plan.ts";
import { expand, MissingText, type PodFields, resolveVariables, type TextsOf } from "./variables.ts";
import type { ProgramEntry, ProgramStart } from "../network/pod-network.ts";
import type { Launch } from "../process/supervised-process.ts";

/** The sidecar's explicit proxy listener for the app's outgoing requests (`proxyHttpPort`). */
export const outboundProxyPort = 15_007;

export interface AppEnvironmentInput {
  readonly container: ContainerPlan;
  readonly pod: PodFields;
  readonly appAddress: string;
  readonly enter: (env: ProgramStart["env"]) => ProgramEntry;
  readonly hasOwnNetwork: boolean;
  /** Address of the sidecar that calls are sent to; undefined when the pod has none, or the kernel leads them there. */
  readonly sidecarAddress: string | undefined;
  readonly inherited: Readonly<Record<string, string | undefined>>;
  /** The Node that runs Tulle; `node` in a command means it. */
  readonly nodePath: string;
  /** Folder in which Node keeps compiled code. */
  readonly compileCache: string;
  readonly textsOf: TextsOf;
}

// Settings of the supervisor's own process that would change what a child does.
const notInherited = /^(TULLE_|NODE_TEST_CONTEXT$|NODE_CHANNEL_|npm_)/;

/** What a child inherits from the supervisor's environment, with the pinned Node first on PATH. */
export function inheritedEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  nodePath: string,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !notInherited.test(name)) kept[name] = value;
  }
  kept["PATH"] = [path.dirname(nodePath), env["PATH"] ?? "/usr/bin:/bin"].join(path.delimiter);
  return kept;
}

/** What the machine goes through to the world, which a network of the pod's own does not lead to. */
const machineProxy = /^(https?|ftp|all|no)_proxy$/i;

/** What is run, with what environment, as far as that is there now. */
export function appLaunch(input: AppEnvironmentInput): Launch {
  try {
    const { given, own } = appVariables(input);
    const known = new Map(Object.entries({ ...given, ...own }));
    const inherited = inheritedEnvironment(input.inherited, input.nodePath);
    if (input.hasOwnNetwork)
      for (const name of Object.keys(inherited)) if (machineProxy.test(name)) delete inherited[name];
    return {
      argv: input.container.argv.map((part) => expand(part, known)),
      ...input.enter({ ...inherited, ...given, ...own }),
    };
  } catch (error) {
    if (error instanceof MissingText) return { missing: error.message };
    throw error;
  }
}

/** What the platform says, and what the manifest does, which beats it. */
function appVariables(input: AppEnvironmentInput): Readonly<Record<"given" | "own", Readonly<Record<string, string>>>> {
  const { container, appAddress, sidecarAddress, pod } = input;
  const env: Record<string, string> = {};
  env["HOST"] = appAddress;
  env["HOSTNAME"] = pod.name;
  env["POD_NAME"] = pod.name;
  env["POD_NAMESPACE"] = pod.namespace;
  env["NODE_COMPILE_CACHE"] = input.compileCache;
  const [first] = container.ports;
  if (first !== undefined) env["PORT"] = String(first.port);
  for (const { name, port } of container.ports) {
    if (name !== undefined) env[`PORT_${name.toUpperCase().replaceAll("-", "_")}`] = String(port);
  }
  if (sidecarAddress !== undefined) {
    const proxy = `http://${sidecarAddress}:${outboundProxyPort}`;
    // curl and libcurl read only the lower-case name, others only the upper-case one.
    env["HTTP_PROXY"] = proxy;
    env["http_proxy"] = proxy;
    const direct = `localhost,127.0.0.1,::1,${appAddress}`;
    env["NO_PROXY"] = direct;
    env["no_proxy"] = direct;
    env["NODE_USE_ENV_PROXY"] = "1";
  }
  return { given: env, own: resolveVariables(container.variables, pod, env, input.textsOf) };
}

/**
 * Whether a pod runs a program of this installation, such as the authorization server: its code lies beside that of the
 * `tulle` command, and was compiled when the installation was set up.
 */
export function isPartOfTulle(
  argv: readonly string[],
  cwd: string,
  { tulleCommand }: { readonly tulleCommand: readonly string[] },
): boolean {
  const entry = tulleCommand.find((part) => part.endsWith(path.join(path.sep, "cli", "src", "main.ts")));
  if (entry === undefined) return false;
  const packages = path.resolve(entry, "../../..");
  return argv.some((part) => part.endsWith(".ts") && path.resolve(cwd, part).startsWith(packages + path.sep));
}
