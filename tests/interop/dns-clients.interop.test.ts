// Programs that look names up, with their unchanged defaults, on a machine whose questions the agent answers: by glibc
// (Python, Java), by musl (C), and by Go's own resolver.
import assert from "node:assert/strict";
import path from "node:path";
import { before, test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { goProgram } from "../tools/go-program.ts";
import { playInOwnNetwork } from "../tools/own-network.ts";
import { lastLines, runCommand } from "../tools/run-command.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { names } from "./dns-clients/names.ts";

const folder = path.join(import.meta.dirname, "dns-clients");
const clients = ["musl", "Go", "Python", "Java"] as const;
let printed: Readonly<Record<string, string>>;

before(async () => {
  const built = temporaryFolder("tulle-dns-programs-");
  const commands: Record<(typeof clients)[number], readonly string[]> = {
    musl: [await compiledByMusl(path.join(built, "musl"))],
    Go: [await goProgram(path.join(folder, "go"))],
    Python: ["python3", path.join(folder, "lookup.py")],
    Java: ["java", path.join(folder, "Lookup.java")],
  };
  printed = await playInOwnNetwork(path.join(folder, "stage.ts"), [JSON.stringify(commands)]);
});

async function compiledByMusl(program: string): Promise<string> {
  const options = ["-static", "-o", program, path.join(folder, "lookup.c")];
  const result = await runCommand(await debianTool("musl-gcc"), options);
  if (result.code !== 0) throw new ToolUnavailable("musl-gcc", `it takes gcc, too: ${lastLines(result)}`);
  return program;
}

for (const client of clients) {
  for (const [name, expected] of Object.entries(names)) {
    test(`${client} finds ${name}`, () => {
      const text = printed[client]!;
      const line = text.split("\n").find((each) => each.startsWith(`${name} `));
      const found = line
        ?.slice(name.length + 1)
        .split(",")
        .map(short) ?? [text];
      // This one asks by UDP alone, and takes those that fit.
      const wanted = client === "musl" ? expected.filter((address) => found.includes(address)) : expected;
      assert.deepEqual(found.toSorted(), wanted.toSorted());
    });
  }
}

/** As Java writes `fd00::6`: `fd00:0:0:0:0:0:0:6`. */
function short(address: string): string {
  return address.replace(/(:0)+:/, "::");
}
