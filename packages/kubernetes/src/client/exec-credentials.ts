// Credentials that a program prints, as those of the large clouds' clusters are got (client.authentication.k8s.io,
// ExecCredential).
import { spawn } from "node:child_process";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import type { Credentials, CredentialSource } from "./cluster-access.ts";

export interface ExecPlugin {
  readonly apiVersion: string;
  /** A name, looked up in PATH, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Told where the program is not there. */
  readonly installHint?: string;
  /** Whether it may ask the person at the terminal: `Never`, `IfAvailable`, `Always`. */
  readonly interactiveMode: string;
  /** The program's `spec.cluster`, where it wants one. */
  readonly cluster?: object;
}

export const execVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"] as const;

/** A program that asks a person has as long as that takes. */
const timeoutMs = 120_000;
const mostBytes = 1024 * 1024;
/** What ends within this time is not used any more: it has to hold until the API server sees it. */
const marginMs = 10_000;

interface ExecCredential {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly status?: {
    readonly token?: unknown;
    readonly clientCertificateData?: unknown;
    readonly clientKeyData?: unknown;
    readonly expirationTimestamp?: unknown;
  };
}

export class ExecCredentials implements CredentialSource {
  readonly #plugin: ExecPlugin;
  readonly #clock: Clock;
  #kept: { readonly credentials: Credentials; readonly untilMs: number } | undefined;
  #asking: Promise<Credentials> | undefined;

  constructor(plugin: ExecPlugin, clock: Clock) {
    this.#plugin = plugin;
    this.#clock = clock;
  }

  async current(): Promise<Credentials> {
    if (this.#kept !== undefined && this.#clock.nowMs() < this.#kept.untilMs) return this.#kept.credentials;
    // Requests that come together ask once.
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  refused(credentials: Credentials): void {
    if (this.#kept?.credentials === credentials) this.#kept = undefined;
  }

  async #ask(): Promise<Credentials> {
    const { command, apiVersion } = this.#plugin;
    const printed = await this.#run();
    let answer: ExecCredential;
    try {
      answer = JSON.parse(printed) as ExecCredential;
    } catch {
      throw new Error(`${command}, which the kubeconfig names for credentials, printed no JSON`);
    }
    if (answer.kind !== "ExecCredential" || answer.apiVersion !== apiVersion) {
      const got = `${String(answer.apiVersion)} ${String(answer.kind)}`;
      throw new Error(`${command} printed a ${got}; the kubeconfig asks for an ExecCredential of ${apiVersion}`);
    }
    const { token, clientCertificateData, clientKeyData, expirationTimestamp } = answer.status ?? {};
    const text = (value: unknown): string | undefined =>
      typeof value === "string" && value !== "" ? value : undefined;
    const [bearer, certificatePem, keyPem] = [text(token), text(clientCertificateData), text(clientKeyData)];
    if (bearer === undefined && (certificatePem === undefined || keyPem === undefined)) {
      throw new Error(`${command} printed neither a token nor a certificate with its key`);
    }
    const credentials: Credentials = {
      ...(bearer === undefined ? {} : { token: bearer }),
      ...(certificatePem === undefined || keyPem === undefined ? {} : { certificatePem, keyPem }),
    };
    const endsMs = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : Number.NaN;
    // Without an end they hold for as long as this process, as in kubectl, or until they are refused.
    this.#kept = { credentials, untilMs: Number.isNaN(endsMs) ? Infinity : endsMs - marginMs };
    return credentials;
  }

  #run(): Promise<string> {
    const { command, args, environment, installHint, interactiveMode } = this.#plugin;
    const mayAsk = interactiveMode !== "Never" && process.stdin.isTTY;
    if (interactiveMode === "Always" && !mayAsk) {
      throw new Error(`${command}, which the kubeconfig names for credentials, needs a terminal to ask at`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const child = spawn(command, args, {
      env: { ...process.env, ...environment, KUBERNETES_EXEC_INFO: JSON.stringify(this.#info(mayAsk)) },
      // What it says to the person is the person's to read.
      stdio: [mayAsk ? "inherit" : "ignore", "pipe", "inherit"],
      timeout: timeoutMs,
    });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      printed += chunk;
      if (printed.length > mostBytes) child.kill();
    });
    child.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" ? "is not there" : `cannot be run: ${error.message}`;
      const hint = installHint === undefined ? "" : `\n${installHint}`;
      reject(new Error(`${command}, which the kubeconfig names for credentials, ${why}${hint}`));
    });
    child.once("close", (code, signal) => {
      if (code === 0) return resolve(printed);
      reject(new Error(`${command}, which the kubeconfig names for credentials, ended with ${signal ?? code}`));
    });
    return promise;
  }

  #info(interactive: boolean): object {
    const { apiVersion, cluster } = this.#plugin;
    return { apiVersion, kind: "ExecCredential", spec: { interactive, ...(cluster === undefined ? {} : { cluster }) } };
  }
}

/** A command with a slash in it is meant from the kubeconfig's folder. */
export function execCommand(command: string, folder: string): string {
  return command.includes("/") ? path.resolve(folder, command) : command;
}
