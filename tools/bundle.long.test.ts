// The bundle of a clone that somebody works on: it is run while the sources say the same, and never after that.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { bundleFolder, manifestName, type BundleManifest } from "@tulle/loading";
import { runCommand } from "../tests/tools/run-command.ts";
import { temporaryFolder } from "../tests/tools/temporary-folder.ts";

const repository = path.resolve(import.meta.dirname, "..");

class Clone {
  readonly root = temporaryFolder("tulle-bundled-clone-");

  constructor() {
    cpSync(path.join(repository, "packages"), path.join(this.root, "packages"), {
      recursive: true,
      filter: (file) => !file.endsWith(".test.ts"),
    });
    for (const file of ["tools/bundle.ts", "tools/bundle-programs.ts", "package.json", "package-lock.json"]) {
      cpSync(path.join(repository, file), path.join(this.root, file));
    }
    const dependencies = path.join(this.root, "node_modules");
    mkdirSync(path.join(dependencies, "@tulle"), { recursive: true });
    for (const name of readdirSync(path.join(repository, "node_modules"))) {
      if (["@tulle", ".bundle", ".cache"].includes(name)) continue;
      symlinkSync(path.join(repository, "node_modules", name), path.join(dependencies, name));
    }
    for (const name of readdirSync(path.join(this.root, "packages"))) {
      symlinkSync(path.join("..", "..", "packages", name), path.join(dependencies, "@tulle", name));
    }
  }

  async makeBundle(): Promise<void> {
    const made = await runCommand(process.execPath, ["tools/bundle.ts"], { cwd: this.root });
    assert.equal(made.code, 0, made.stderr);
  }

  /** What `tulle` with these arguments says. */
  async tulle(...args: string[]): Promise<string> {
    const ran = await runCommand(process.execPath, [path.join(this.root, "packages/cli/src/main.ts"), ...args]);
    assert.equal(ran.code, 0, ran.stderr);
    return ran.stdout + ran.stderr;
  }

  edit(file: string, before: string, after: string): void {
    const text = readFileSync(file, "utf8");
    assert.ok(text.includes(before), `${file} holds no ${before}`);
    writeFileSync(file, text.replace(before, after));
  }

  source(file: string): string {
    return path.join(this.root, file);
  }

  /** The file of the bundle in force, of that name if it is given, that holds `text`. */
  bundled(text: string, name?: string): string {
    const folder = bundleFolder(this.root);
    const manifest = JSON.parse(readFileSync(path.join(folder, manifestName), "utf8")) as BundleManifest;
    const wanted = manifest.files.filter((file) => name === undefined || file === name);
    const files = wanted.map((file) => path.join(folder, manifest.folder, file));
    const found = files.find((file) => readFileSync(file, "utf8").includes(text));
    assert.ok(found !== undefined, `no file of the bundle holds ${text}`);
    return found;
  }
}

test("an edited source is run at once, and the bundle again when it was made anew", async () => {
  const clone = new Clone();
  const commands = clone.source("packages/cli/src/commands.ts");
  assert.match(await clone.tulle("--help"), /print the version/, "without a bundle");
  await clone.makeBundle();
  clone.edit(clone.bundled("print the version"), "print the version", "print the bundle's version");
  assert.match(await clone.tulle("--help"), /print the bundle's version/, "the bundle is what runs");
  await clone.makeBundle();
  assert.match(await clone.tulle("--help"), /print the bundle's version/, "a fresh one is not made again");
  clone.edit(commands, "print the version", "tell the version");
  assert.match(await clone.tulle("--help"), /tell the version/, "after the edit");
  await clone.makeBundle();
  clone.edit(clone.bundled("tell the version"), "tell the version", "tell the bundle's version");
  assert.match(await clone.tulle("--help"), /tell the bundle's version/, "after the next bundle");

  // What sources load when a document first asks for it.
  const document = path.join(clone.root, "bootstrap.yaml");
  writeFileSync(document, bootstrap);
  assert.match(await clone.tulle("proxy", "--mode", "validate", "-c", document), /OK/);
});

test("a failure in the bundle is told by its place in the sources", async () => {
  const clone = new Clone();
  const version = clone.source("packages/cli/src/commands/version.ts");
  clone.edit(version, "addOutputOption(command);", "fails();");
  writeFileSync(
    version,
    `${readFileSync(version, "utf8")}\nfunction fails(): never {\n  throw new Error("on purpose");\n}\n`,
  );
  await clone.makeBundle();
  const failed = await runCommand(process.execPath, [clone.source("packages/cli/src/main.ts"), "version"]);
  const lines = readFileSync(version, "utf8").split("\n");
  const line = lines.findIndex((text) => text.includes("on purpose")) + 1;
  assert.ok(failed.stderr.includes(`at fails (${version}:${line}:`), failed.stderr);
  assert.doesNotMatch(failed.stderr, /\.bundle/);
});

test("an agent runs from a file of its own, and tells of a failure by its place in the sources, too", async () => {
  const clone = new Clone();
  const program = clone.source("packages/cli/src/command/run-agent-program.ts");
  clone.edit(program, "const code = await runAgent(env);", "const code = await fails();");
  writeFileSync(
    program,
    `${readFileSync(program, "utf8")}\nasync function fails(): Promise<number> {\n  throw new Error("on purpose");\n}\n`,
  );
  await clone.makeBundle();
  const alone = clone.bundled("on purpose", "agent.cjs");
  assert.match(readFileSync(alone, "utf8"), /^[\0-\u00ff]*$/, "V8 takes a byte for each of its letters");
  clone.edit(alone, "on purpose", "in its own file");
  const failed = await runCommand(process.execPath, [clone.source("packages/cli/src/main.ts"), "agent"]);
  const line =
    readFileSync(program, "utf8")
      .split("\n")
      .findIndex((text) => text.includes("on purpose")) + 1;
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^Error: in its own file$/m);
  assert.ok(failed.stderr.includes(`${program}:${line}:`), failed.stderr);
  assert.doesNotMatch(failed.stderr, /\.bundle/);
});

const bootstrap = `
static_resources:
  listeners:
    - name: one
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: one
                route_config: { name: one, virtual_hosts: [] }
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
`;
