// `npm run images`: one archive of all of Tulle's container images, and of the shop's. No registry and no container
// engine is needed: `ctr images import`, `docker load` and `podman load` take it. `-- --context FOLDER` writes the
// layers in its place, with a Dockerfile for each image. `-- --also VERSION` makes Tulle's own images once more under
// another version, of the same programs, for tests of upgrades.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { compileAhead, copyPackage, makeInstallation } from "../installation.ts";
import { writeBuildContext } from "./dockerfiles.ts";
import { type Image, type Layer, writeImageArchive } from "./image-archive.ts";
import { makeNetworkToolsLayer } from "./network-tools-layer.ts";
import { makeSystemLayer } from "./system-layer.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** For the programs of a pod that are not its proxy: the proxy's own user is exempt from capture. */
const ordinaryUser = "10001:10001";
const proxyUser = "1337:1337";

const node = "/usr/local/bin/node";
const tulle = [node, "/opt/tulle/dist/packages/cli/bin/installed.mjs"] as const;
const authorizationServer = [node, "/opt/tulle/dist/packages/authorization-server/src/main.js"] as const;

const authorizationServerData = "/var/lib/tulle";

/** The shop's programs, each an image of its own name. */
const shopPrograms = ["catalog", "client", "orders", "productpage", "webapp"] as const;

/** What the shop's programs need besides Node. */
const shopPackages = ["openid-client", "jose", "oauth4webapi", "@grpc/grpc-js", "@grpc/proto-loader"] as const;

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const { values } = parseArgs({
  options: {
    output: { type: "string", short: "o", default: "dist/tulle-images.tar" },
    tag: { type: "string", default: versionOf("packages/cli/package.json") },
    context: { type: "string" },
    also: { type: "string", multiple: true, default: [] },
  },
});
const parent = mkdtempSync(path.join(tmpdir(), "tulle-layers-"));
try {
  const own = await images(values.tag);
  const made = [...own, ...values.also.flatMap((version) => ofVersion(own, version))];
  const output = path.resolve(root, values.context ?? values.output);
  if (values.context === undefined) await writeImageArchive(output, made);
  else await writeBuildContext(output, made);
  process.stdout.write(`${output}\n`);
} finally {
  rmSync(parent, { recursive: true, force: true });
}

async function images(tag: string): Promise<readonly Image[]> {
  const system = newLayer("system");
  await makeSystemLayer(system.folder);
  const runtime = newLayer("node");
  copyFile(process.execPath, runtime, node);
  const installation = newLayer("tulle");
  makeInstallation(path.join(installation.folder, "opt/tulle"), { withoutNode: true });
  compileAhead(path.join(installation.folder, "opt/tulle"));
  makeCommand(installation);
  const networkTools = newLayer("network-tools");
  await makeNetworkToolsLayer(networkTools.folder);
  const cni = newLayer("cni");
  buildPlugin(cni);
  const envoy = newLayer("envoy");
  copyFile(await envoyPath(), envoy, "/usr/local/bin/envoy");
  const shop = newLayer("shop");
  makeShop(path.join(shop.folder, "shop"));
  // Keys, and the database where none is named. A volume lies over it where they are to outlive the container.
  const data = newLayer("authorization-server-data");
  makeWritableFolder(data, authorizationServerData);
  const base = [system, runtime, installation];
  const common = { environment: { NODE_ENV: "production" }, workingDirectory: "/" };
  return [
    {
      reference: `tulle/tulled:${tag}`,
      layers: base,
      entrypoint: [...tulle, "control-plane"],
      user: ordinaryUser,
      ...common,
    },
    { reference: `tulle/proxy:${tag}`, layers: base, entrypoint: [...tulle, "agent"], user: proxyUser, ...common },
    {
      reference: `tulle/proxy-envoy:${tag}`,
      layers: [...base, envoy],
      entrypoint: [...tulle, "agent"],
      user: proxyUser,
      ...common,
      environment: { ...common.environment, TULLE_PROXY: "envoy", TULLE_ENVOY: "/usr/local/bin/envoy" },
    },
    {
      reference: `tulle/capture:${tag}`,
      layers: [...base, networkTools],
      entrypoint: [...tulle, "capture"],
      user: "0:0",
      ...common,
    },
    {
      reference: `tulle/cni:${tag}`,
      layers: [...base, networkTools, cni],
      entrypoint: [...tulle, "cni"],
      user: "0:0",
      ...common,
    },
    {
      reference: `tulle/authorization-server:${tag}`,
      layers: [...base, data],
      entrypoint: authorizationServer,
      user: ordinaryUser,
      ...common,
      // In a pod nobody but its own programs reaches localhost.
      environment: { ...common.environment, TULLE_AUTH_HOST: "0.0.0.0" },
      workingDirectory: authorizationServerData,
    },
    ...shopPrograms.map((name) => ({
      reference: `tulle/shop-${name}:${tag}`,
      layers: [system, runtime, shop],
      entrypoint: [node, `/shop/${name}/main.ts`],
      user: ordinaryUser,
      ...common,
      workingDirectory: "/shop",
    })),
  ];
}

/** What tells a version is the packages' manifests; all else of the layers is shared. */
function ofVersion(own: readonly Image[], version: string): readonly Image[] {
  const manifests = newLayer(`version-${version}`);
  const installed = "opt/tulle/dist/packages";
  for (const name of readdirSync(path.join(parent, "tulle", installed))) {
    const file = path.join(installed, name, "package.json");
    const manifest = JSON.parse(readFileSync(path.join(parent, "tulle", file), "utf8")) as Manifest;
    mkdirSync(path.join(manifests.folder, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(manifests.folder, file), `${JSON.stringify({ ...manifest, version })}\n`);
  }
  return own
    .filter(({ layers }) => layers.some(({ name }) => name === "tulle"))
    .map((image) => ({
      ...image,
      reference: image.reference.replace(/:[^:]*$/, `:${version}`),
      layers: [...image.layers, manifests],
    }));
}

/** `tulle` by its name, for hooks of containers and for `kubectl exec`. */
function makeCommand({ folder }: Layer): void {
  const file = path.join(folder, "usr/local/bin/tulle");
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!${node}\nimport ${JSON.stringify(tulle[1])};\n`);
  chmodSync(file, 0o755);
}

/** The CNI plug-in: a static program, since it runs on the node, among whatever libraries there are. */
function buildPlugin({ folder }: Layer): void {
  const args = ["build", "-trimpath", "-ldflags=-s -w", "-o", path.join(folder, "opt/cni/tulle-cni"), "."];
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/local/go/bin`, CGO_ENABLED: "0" };
  const { status, stderr, error } = spawnSync("go", args, {
    cwd: path.join(root, "packages/kubernetes/cni"),
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the CNI plug-in takes Go: ${error?.message ?? stderr}`);
}

function makeShop(folder: string): void {
  const isProgram = (file: string): boolean => !/\.test\.ts$|\.yaml$|\.md$/.test(file);
  cpSync(path.join(root, "samples/shop"), folder, { recursive: true, filter: isProgram });
  for (const name of withTheirOwn(shopPackages)) copyPackage(`node_modules/${name}`, folder);
}

/** The packages, and those that they depend on; what lies within one of them comes with it. */
function withTheirOwn(names: readonly string[]): readonly string[] {
  const all = new Set<string>();
  const add = (name: string): void => {
    const manifest = path.join(root, "node_modules", name, "package.json");
    if (all.has(name) || !existsSync(manifest)) return;
    all.add(name);
    const { dependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as Manifest;
    for (const each of Object.keys(dependencies)) add(each);
  };
  for (const name of names) add(name);
  return [...all];
}

function newLayer(name: string): Layer {
  const folder = path.join(parent, name);
  mkdirSync(folder);
  return { name, folder };
}

/** For any user: what an image holds is root's. */
function makeWritableFolder({ folder }: Layer, to: string): void {
  const made = path.join(folder, to);
  mkdirSync(made, { recursive: true });
  chmodSync(made, 0o1777);
}

function copyFile(from: string, { folder }: Layer, to: string): void {
  mkdirSync(path.join(folder, path.dirname(to)), { recursive: true });
  cpSync(from, path.join(folder, to), { dereference: true });
}

function versionOf(manifest: string): string {
  return (JSON.parse(readFileSync(path.join(root, manifest), "utf8")) as Manifest).version;
}
