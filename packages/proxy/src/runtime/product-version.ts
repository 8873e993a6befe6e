// The version of this program, as `/server_info` and the node of the xDS stream tell it.
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

export const productVersion = manifest.version;
