// A control plane that another machine runs, or another user: named by the environment, asked by TLS, and sent the
// token once it has shown whose it is.
import { readFileSync } from "node:fs";
import type { Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Undefined where `TULLE_API` names none. @throws {CommandFailure} */
export function controlPlaneElsewhere(env: Environment): Instance | undefined {
  const url = env["TULLE_API"];
  if (url === undefined || url === "") return undefined;
  if (!URL.canParse(url) || new URL(url).protocol !== "https:") {
    throw new CommandFailure(`TULLE_API is ${url}: a token is sent over https alone`, {
      hint: "Such as TULLE_API=https://mesh.example:15014",
      exitCode: exitCodes.usage,
    });
  }
  const token = readNamed(
    env,
    "TULLE_TOKEN_FILE",
    "a copy of the file token in the control plane's state directory",
  ).trim();
  const rootsPem = readNamed(env, "TULLE_CA_FILE", "a copy of its ca/root-cert.pem");
  return instanceElsewhere(url, url, { url, token, rootsPem });
}

/** Nothing of it is on this machine. `dir` is what people know it by. */
export function instanceElsewhere(
  dir: string,
  apiUrl: string,
  elsewhere: NonNullable<Instance["elsewhere"]>,
): Instance {
  return {
    dir,
    stateDir: "",
    pid: 0,
    pidStartTime: "",
    apiUrl,
    xdsAddress: "",
    publishedPorts: [],
    ready: true,
    startedAt: "",
    developmentRootFile: "",
    elsewhere,
  };
}

function readNamed(env: Environment, variable: string, purpose: string): string {
  const file = env[variable];
  if (file === undefined || file === "") {
    throw new CommandFailure(`TULLE_API is set, and ${variable} is not`, {
      hint: `It names ${purpose}.`,
      exitCode: exitCodes.usage,
    });
  }
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandFailure(`${variable}: ${(error as Error).message}`, {
      hint: `It names ${purpose}.`,
      cause: error,
    });
  }
}

/** For commands about processes and files of this machine. @throws {CommandFailure} */
export function requireHere({ elsewhere }: Instance): void {
  if (elsewhere === undefined) return;
  throw new CommandFailure(`${elsewhere.url} runs elsewhere`, {
    hint: "This command is about an instance of this machine: name its folder with --dir, or unset TULLE_API.",
    exitCode: exitCodes.noInstance,
  });
}
