// The control plane of a cluster as a process beside it: quick to start, to end and to cut off.
import path from "node:path";
import { readFile, writeFile } from "node:fs/promises";
import { parse, stringify } from "yaml";
import { freePorts, startProcess, type StartedProcess } from "../processes.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { kubectl } from "./kubectl.ts";

const program = path.resolve(import.meta.dirname, "../../../packages/cli/bin/tulle.mjs");

export interface Tulled {
  readonly process: StartedProcess;
  readonly host: string;
  readonly xdsPort: number;
  readonly httpPort: number;
  readonly webhookPort: number;
  /** Waits until it leads. */
  leads(): Promise<void>;
}

export interface TulledOptions {
  /** `POD_NAME`, by which leaders are told apart. */
  readonly name: string;
  readonly args?: readonly string[];
  readonly kubeconfig?: string;
}

interface Ending {
  after(end: () => Promise<unknown>): void;
}

/** Resolves once it serves; ends with the test, or with the file whose `after` this is. */
export async function startTulled(t: Ending, { name, args = [], kubeconfig }: TulledOptions): Promise<Tulled> {
  const host = "127.0.0.1";
  const [xdsPort, httpPort, webhookPort] = (await freePorts(3, host)) as [number, number, number];
  const command = [
    program,
    "control-plane",
    "--kubernetes",
    `--state=${temporaryFolder("tulled-")}`,
    `--xds-tls=${host}:${xdsPort}`,
    `--http=${host}:${httpPort}`,
    `--webhook=0.0.0.0:${webhookPort}`,
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig]),
    ...args,
  ];
  const env = { POD_NAME: name, KUBERNETES_SERVICE_HOST: undefined };
  const started = await startProcess(process.execPath, command, { name, env });
  t.after(() => started.stop());
  await started.waitForOutput(/control plane serves/);
  const leads = async (): Promise<void> => void (await started.waitForOutput(/this control plane leads/));
  return { process: started, host, xdsPort, httpPort, webhookPort, leads };
}

/** The tests' kubeconfig, with the API server reached by another address. */
export async function kubeconfigBy(server: string): Promise<string> {
  const text = await readFile(process.env["KUBECONFIG"]!, "utf8");
  const config = parse(text) as { clusters: { cluster: Record<string, unknown> }[] };
  for (const { cluster } of config.clusters) {
    cluster["tls-server-name"] = "kubernetes.default.svc";
    cluster["server"] = server;
  }
  const file = path.join(temporaryFolder("kubeconfig-"), "config");
  await writeFile(file, stringify(config));
  return file;
}

/** A key of a Secret or a ConfigMap, as text; empty where there is none. */
export async function keyOf(
  kind: "secret" | "configmap",
  namespace: string,
  name: string,
  key: string,
): Promise<string> {
  const args = ["get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found"];
  const text = await kubectl(args);
  const { data = {} } = (text === "" ? {} : JSON.parse(text)) as { readonly data?: Readonly<Record<string, string>> };
  const value = data[key] ?? "";
  return kind === "secret" ? Buffer.from(value, "base64").toString() : value;
}
