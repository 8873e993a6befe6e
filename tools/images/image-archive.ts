// Container images without a container engine: layers are folders packed by tar, and one archive holds several images
// that share them. `docker load`, `podman load` and `ctr images import` take it (the Docker image specification 1.2).
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { spawnSync } from "node:child_process";

/** A folder that lies above `/`, packed once however many images have it. */
export interface Layer {
  /** In the archive; images that name the same layer share it. */
  readonly name: string;
  /** What of it is packed becomes root's, and keeps its modes. */
  readonly folder: string;
}

export interface Image {
  /** With its tag: `tulle/proxy:0.1.0`. */
  readonly reference: string;
  /** The lowest first. */
  readonly layers: readonly Layer[];
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
  /** Numbers, since an image without a shell has no list of users: `1337:1337`. */
  readonly user?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly workingDirectory?: string;
}

/** What is built from the same files is the same image on any day. */
const created = "1970-01-01T00:00:00Z";

/** Writes one archive of the images. */
export async function writeImageArchive(file: string, images: readonly Image[]): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-images-"));
  try {
    const layers = new Map(images.flatMap((image) => image.layers).map((layer) => [layer.name, layer]));
    const digests = new Map<string, string>();
    for (const layer of layers.values()) digests.set(layer.name, await packLayer(layer, folder));
    const manifest: object[] = [];
    for (const image of images) {
      const config = JSON.stringify(imageConfig(image, digests));
      const name = `${createHash("sha256").update(config).digest("hex")}.json`;
      await writeFile(path.join(folder, name), config);
      const members = image.layers.map((layer) => `${layer.name}/layer.tar`);
      manifest.push({ Config: name, RepoTags: [image.reference], Layers: members });
    }
    await writeFile(path.join(folder, "manifest.json"), JSON.stringify(manifest));
    await mkdir(path.dirname(file), { recursive: true });
    // Whole or not at all: somebody may be reading the one of before.
    const draft = `${file}.${process.pid}`;
    tar(["-cf", draft, "-C", folder, "."]);
    await rename(draft, file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns its digest. */
async function packLayer({ name, folder }: Layer, into: string): Promise<string> {
  await mkdir(path.join(into, name));
  const file = path.join(into, name, "layer.tar");
  tar(["-cf", file, "--mtime=@0", "-C", folder, "."]);
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return `sha256:${hash.digest("hex")}`;
}

function imageConfig(image: Image, digests: ReadonlyMap<string, string>): object {
  const { entrypoint, command, user, environment = {}, workingDirectory } = image;
  return {
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    created,
    config: {
      Entrypoint: entrypoint,
      ...(command === undefined ? {} : { Cmd: command }),
      ...(user === undefined ? {} : { User: user }),
      ...(workingDirectory === undefined ? {} : { WorkingDir: workingDirectory }),
      Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    },
    rootfs: { type: "layers", diff_ids: image.layers.map(({ name }) => digests.get(name)!) },
  };
}

function tar(args: readonly string[]): void {
  const { status, stderr } = spawnSync("tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", ...args], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`tar ${args.join(" ")}: ${stderr}`);
}
