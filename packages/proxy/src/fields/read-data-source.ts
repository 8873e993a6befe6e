// The bytes of a DataSource (config.core.v3.DataSource), and the name by which Envoy's messages call it.
import { readFileSync } from "node:fs";
import type { DataSource } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { Place, Problems } from "./problems.ts";

export interface SourcedData {
  readonly bytes: Buffer;
  /** A path, or `<inline>`. */
  readonly origin: string;
}

/** Undefined when nothing is given, or after an error. Files are read once, when the resource comes. */
export function readDataSource(
  source: DataSource | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  place: Place,
  problems: Problems,
): SourcedData | undefined {
  const specifier = source?.specifier;
  switch (specifier?.case) {
    case "inlineString":
      return { bytes: Buffer.from(specifier.value), origin: "<inline>" };
    case "inlineBytes":
      return { bytes: Buffer.from(specifier.value), origin: "<inline>" };
    case "environmentVariable": {
      const value = environment[specifier.value];
      if (value === undefined) problems.error(place, `Environment variable doesn't exist: ${specifier.value}`);
      return value === undefined ? undefined : { bytes: Buffer.from(value), origin: "<inline>" };
    }
    case "filename":
      try {
        return { bytes: readFileSync(specifier.value), origin: specifier.value };
      } catch {
        problems.error(place, `Invalid path: ${specifier.value}`);
        return undefined;
      }
    case undefined:
      return undefined;
  }
}
