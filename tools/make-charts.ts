// `npm run generate:charts`: writes charts/ from the functions that `tulle install` applies.
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { chartFiles } from "@tulle/kubernetes/charts";

const folder = path.resolve(import.meta.dirname, "../charts");
const { texts, links } = chartFiles();
await rm(folder, { recursive: true, force: true });
for (const [file, text] of texts) {
  await mkdir(path.dirname(path.join(folder, file)), { recursive: true });
  await writeFile(path.join(folder, file), text);
}
for (const [file, target] of links) {
  await mkdir(path.dirname(path.join(folder, file)), { recursive: true });
  await symlink(target, path.join(folder, file));
}
