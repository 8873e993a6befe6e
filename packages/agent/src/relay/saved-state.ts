// The last good state of a pod's proxy on disk: every resource that the proxy has acknowledged. A proxy that starts
// while its control plane is away is served from it.
import { createHash } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { type ResourceTypeName, resourceTypes } from "@tulle/xds";

export interface SavedResource {
  /** The bytes of the resource's message. */
  readonly value: Uint8Array;
}

export interface SavedType {
  /** `version_info` of the newest acknowledged response. */
  readonly versionInfo: string;
  readonly resources: ReadonlyMap<string, SavedResource>;
}

export type SavedState = ReadonlyMap<ResourceTypeName, SavedType>;

/**
 * The file: one line `tulle-xds-state <format> <SHA-256 of the rest> <bytes of the rest>`, then JSON, in which
 * resources stand by type and name in base64. Another format number is another build's, and is not read.
 */
const formatNumber = 1;
const header = /^tulle-xds-state (\d+) ([0-9a-f]{64}) (\d+)$/;

// A pod's whole view with a thousand services takes 2 MB; anything near this is no file of ours.
const maxFileBytes = 256 * 1024 * 1024;

interface StateDocument {
  readonly nodeId: string;
  readonly types: Readonly<
    Record<string, { readonly versionInfo: string; readonly resources: Record<string, string> }>
  >;
}

export type LoadedState =
  | { readonly kind: "loaded"; readonly state: SavedState }
  | { readonly kind: "absent" }
  /** Cut short, edited, of another build or of another node; it was set aside under `keptAs`. */
  | { readonly kind: "refused"; readonly reason: string; readonly keptAs: string };

/**
 * Reads a pod's state. Never throws for what the file holds: a proxy without saved state waits for its control plane.
 */
export function loadState(path: string, nodeId: string): LoadedState {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { kind: "absent" };
    return { kind: "refused", reason: (error as Error).message, keptAs: path };
  }
  const decoded = decodeState(bytes, nodeId);
  if (typeof decoded !== "string") return { kind: "loaded", state: decoded };
  const keptAs = `${path}.refused`;
  try {
    renameSync(path, keptAs);
  } catch (error) {
    return { kind: "refused", reason: `${decoded}; ${(error as Error).message}`, keptAs: path };
  }
  return { kind: "refused", reason: decoded, keptAs };
}

/** The state, or why it is none. */
export function decodeState(bytes: Buffer, nodeId: string): SavedState | string {
  if (bytes.length > maxFileBytes) return `it has ${bytes.length} bytes`;
  const lineEnd = bytes.indexOf(0x0a);
  const match = header.exec(lineEnd < 0 ? "" : bytes.toString("latin1", 0, lineEnd));
  if (match === null) return "its first line is not that of a saved state";
  if (Number(match[1]) !== formatNumber) return `its format is ${match[1]}, this build reads ${formatNumber}`;
  const content = bytes.subarray(lineEnd + 1);
  if (content.length !== Number(match[3])) return `it was cut: ${content.length} of ${match[3]} bytes are there`;
  if (sha256(content) !== match[2]) return "its checksum is wrong: it was changed or damaged";
  try {
    return readDocument(JSON.parse(content.toString("utf8")) as StateDocument, nodeId);
  } catch (error) {
    return `its content is not as expected: ${String(error)}`;
  }
}

function readDocument(document: StateDocument, nodeId: string): SavedState | string {
  if (document.nodeId !== nodeId) return `it belongs to ${document.nodeId}`;
  const state = new Map<ResourceTypeName, SavedType>();
  for (const { shortName } of resourceTypes) {
    const saved = document.types[shortName];
    if (saved === undefined) continue;
    const entries = Object.entries(saved.resources);
    const resources = new Map(entries.map(([name, base64]) => [name, { value: Buffer.from(base64, "base64") }]));
    state.set(shortName, { versionInfo: saved.versionInfo, resources });
  }
  return state;
}

export function encodeState(state: SavedState, nodeId: string): Buffer {
  const types = [...state].map(([name, { versionInfo, resources }]) => {
    const entries = [...resources].map(([resource, { value }]) => [resource, Buffer.from(value).toString("base64")]);
    return [name, { versionInfo, resources: Object.fromEntries(entries) }];
  });
  const document: StateDocument = { nodeId, types: Object.fromEntries(types) };
  const content = Buffer.from(`${JSON.stringify(document)}\n`, "utf8");
  const line = `tulle-xds-state ${formatNumber} ${sha256(content)} ${content.length}\n`;
  return Buffer.concat([Buffer.from(line, "latin1"), content]);
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Replaces the file in one step, so that a crash leaves the old state or the new one. */
export async function writeState(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.new`;
  // Routes and clusters tell an attacker the mesh; secrets would tell more.
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
