// The unit by which a machine that has joined runs at each start of its system.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import { entryFile } from "../../command/installation.ts";

export interface Unit {
  readonly stateFolder: string;
  /** Of `tulle join`. */
  readonly options: readonly string[];
}

const unitFile = "/etc/systemd/system/tulle.service";

export function unitText({ stateFolder, options }: Unit): string {
  // Of a bundle: it also finds the libraries of the runtime.
  const launcher = process.env["TULLE_LAUNCHER"];
  const tulle = launcher === undefined ? [process.execPath, entryFile] : [launcher];
  const command = [...tulle, "join", "--state", stateFolder, ...options].map(quoted).join(" ");
  return `[Unit]
Description=Tulle: this machine as one of a service mesh
Wants=network-online.target
After=network-online.target
# It tries for ever.
StartLimitIntervalSec=0

[Service]
ExecStart=${command}
Restart=on-failure
RestartSec=2
# A machine that has to join again takes a token.
RestartPreventExitStatus=${exitCodes.usage}
# The agent lets requests end first.
TimeoutStopSec=30
KillMode=mixed
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
`;
}

/** @throws {CommandFailure} where there is no systemd, or it does not take the unit */
export async function installUnit(unit: Unit): Promise<void> {
  try {
    writeFileSync(unitFile, unitText(unit), { mode: 0o644 });
  } catch (error) {
    throw new CommandFailure(`the unit cannot be written: ${(error as Error).message}`, {
      hint: "Without systemd, run tulle join by whatever starts programs here; --print-unit shows what the unit would be.",
    });
  }
  for (const args of [["daemon-reload"], ["enable", "--now", "tulle.service"]]) {
    const { status, error, stderr } = spawnSync("systemctl", args, { encoding: "utf8" });
    if (status === 0) continue;
    throw new CommandFailure(`systemctl ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
  }
}

/** systemd's own quotes; `%` and `$` mean something there. */
function quoted(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
