// The same images for whoever has a container engine: a folder with the layers, and a Dockerfile for each image that
// lays them over nothing. `docker build -f proxy.Dockerfile -t REGISTRY/tulle/proxy:TAG .` makes and names one.
import { cp, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Image } from "./image-archive.ts";

/** Writes the build context of all images. */
export async function writeBuildContext(folder: string, images: readonly Image[]): Promise<void> {
  const layers = new Map(images.flatMap((image) => image.layers).map((layer) => [layer.name, layer]));
  for (const layer of layers.values()) {
    await mkdir(path.join(folder, "layers"), { recursive: true });
    await cp(layer.folder, path.join(folder, "layers", layer.name), { recursive: true, verbatimSymlinks: true });
  }
  for (const image of images) {
    const [, name] = /([^/:]+):[^/]*$/.exec(image.reference)!;
    await writeFile(path.join(folder, `${name}.Dockerfile`), dockerfile(image));
  }
}

/** Says what `imageConfig` says of an archive's image. */
export function dockerfile(image: Image): string {
  const { layers, entrypoint, command, user, environment = {}, workingDirectory } = image;
  return [
    "FROM scratch",
    ...layers.map(({ name }) => `COPY layers/${name}/ /`),
    ...Object.entries(environment).map(([name, value]) => `ENV ${name}=${JSON.stringify(value)}`),
    ...(workingDirectory === undefined ? [] : [`WORKDIR ${workingDirectory}`]),
    ...(user === undefined ? [] : [`USER ${user}`]),
    `ENTRYPOINT ${JSON.stringify(entrypoint)}`,
    ...(command === undefined ? [] : [`CMD ${JSON.stringify(command)}`]),
    "",
  ].join("\n");
}
