/**
 * From a parsed document to a `MeshResource`: finds the kind, checks the API version and the fields, and tells what is
 * wrong with places. A document with an error gives no resource; one with warnings does.
 */
import { findingCodes } from "../findings/finding.ts";
import type { Finding, FindingCode, Severity } from "../findings/finding.ts";
import { isKind, kindDefinitions, kinds } from "../kinds/kinds.ts";
import type { Kind } from "../kinds/kinds.ts";
import { isUnreadKind, unreadKinds } from "../kinds/unread-kinds.ts";
import { editDistance, nearestName } from "../findings/nearest-name.ts";
import { attachPlaces, formatPath, placeIn } from "../findings/places.ts";
import type { PlaceTable } from "../findings/places.ts";
import { effectiveNamespace } from "../kinds/resource.ts";
import type { MeshResource } from "../kinds/resource.ts";
import type { ResourceKey } from "../findings/finding.ts";
import { salvage } from "../schema/salvage.ts";
import { check, describeValue, isMapping } from "../schema/check.ts";
import type { Path } from "../findings/places.ts";

export interface ParsedResource {
  readonly resource?: MeshResource;
  /** What is left of a document that was refused, for analysis alone. */
  readonly draft?: MeshResource;
  readonly findings: readonly Finding[];
}

interface ProblemAt {
  readonly code: FindingCode;
  readonly severity?: Severity;
  readonly path?: Path;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** Checks one object; `places` makes its findings point into the user's file. */
export function parseResource(document: unknown, places?: PlaceTable): ParsedResource {
  if (!isMapping(document)) {
    return {
      findings: [
        finding(undefined, places, {
          code: "TUL0002",
          message: `expected a resource, found ${describeValue(document)}`,
          suggestion: "A resource is a mapping with apiVersion, kind and metadata.",
        }),
      ],
    };
  }
  const key = claimedKey(document);
  const wrong =
    checkKind(document.kind, document.apiVersion) ?? checkApiVersion(document.kind as Kind, document.apiVersion);
  if (wrong !== undefined) {
    const meant = meantKind(document.kind, document.apiVersion);
    return { findings: [finding(key, places, wrong)], ...(meant && { draft: draftOf(meant, document, places) }) };
  }
  return checkFields(document.kind as Kind, document, key, places);
}

function checkFields(
  kind: Kind,
  document: Readonly<Record<string, unknown>>,
  key: ResourceKey | undefined,
  places: PlaceTable | undefined,
): ParsedResource {
  const { schema, unknownField } = kindDefinitions[kind];
  const { apiVersion, kind: _kind, ...body } = document;
  const checked = check(schema.node, body, { unknownField });
  const findings = checked.problems.map((problem) => finding(key, places, problem));
  if (checked.failed) return { findings, ...(key !== undefined && { draft: draftOf(kind, document, places) }) };
  // A status is what others say of the object (`get -o yaml` shows it); it is not part of what a person applies. Only
  // pods and machines have one that the mesh reads.
  return { resource: resourceOf(kind, apiVersion, checked.value, places), findings };
}

function resourceOf(kind: Kind, apiVersion: unknown, checked: unknown, places: PlaceTable | undefined): MeshResource {
  const { status, ...value } = checked as Pick<MeshResource, "metadata"> & { readonly status?: unknown };
  const keepsStatus = kind === "Pod" || kind === "WorkloadEntry";
  const kept = keepsStatus && status !== undefined ? { ...value, status } : value;
  const metadata = { ...value.metadata, namespace: effectiveNamespace(kind, value.metadata.namespace) };
  return attachPlaces({ apiVersion, kind, ...kept, metadata } as MeshResource, places);
}

function draftOf(
  kind: Kind,
  { apiVersion, kind: _kind, ...body }: Readonly<Record<string, unknown>>,
  places: PlaceTable | undefined,
): MeshResource {
  return resourceOf(kind, apiVersion, salvage(kindDefinitions[kind].schema.node, body), places);
}

/** The kind that a document was to have whose kind or version is misspelt. */
function meantKind(kind: unknown, apiVersion: unknown): Kind | undefined {
  if (typeof kind !== "string") return undefined;
  const meant = isKind(kind) ? kind : isOwnGroup(apiVersion) ? nearestName(kind, kinds) : undefined;
  if (meant === undefined || !isKind(meant)) return undefined;
  const { apiVersions } = kindDefinitions[meant];
  return typeof apiVersion === "string" && isForeignGroup(apiVersion, apiVersions) ? undefined : meant;
}

/** One of the groups whose kinds the mesh reads, or a slip of the pen. */
function isOwnGroup(apiVersion: unknown): boolean {
  if (typeof apiVersion !== "string") return true;
  return kinds.some((kind) => {
    const { apiVersions } = kindDefinitions[kind];
    return groupOf(apiVersion) === "" ? apiVersions.includes(apiVersion) : !isForeignGroup(apiVersion, apiVersions);
  });
}

function checkKind(kind: unknown, apiVersion: unknown): ProblemAt | undefined {
  if (typeof kind !== "string" || kind === "") {
    return {
      code: "TUL0002",
      path: kind === undefined ? [] : ["kind"],
      message:
        kind === undefined ? 'the resource has no "kind"' : `the kind has to be text, found ${describeValue(kind)}`,
      suggestion: `Kinds of the mesh are ${kinds.join(", ")}.`,
    };
  }
  if (isKind(kind)) return undefined;
  if (isUnreadKind(kind, apiVersion)) return unread(kind);
  const known = [...kinds, ...Object.keys(unreadKinds)];
  const nearest = known.includes(kind) ? undefined : nearestName(kind, known);
  return {
    code: "TUL0003",
    // Nothing else of these groups is called nearly like that: somebody meant a kind of the mesh, and it would be
    // missing.
    severity: nearest !== undefined && isOwnGroup(apiVersion) ? "error" : "warning",
    path: ["kind"],
    message: `${kind.slice(0, 80)} is not a kind that the mesh reads; the resource is left out`,
    suggestion: nearest === undefined ? undefined : `Did you mean ${nearest}?`,
  };
}

function unread(kind: string): ProblemAt {
  const { otherwise } = unreadKinds[kind]!;
  const problem = { code: "TUL0001", path: ["kind"] } as const;
  if (otherwise === undefined) return { ...problem, message: `${kind} is not implemented yet and has no effect` };
  return {
    ...problem,
    severity: "error",
    message: `${kind} is not implemented yet, and without it ${otherwise}: the resource is refused`,
  };
}

function checkApiVersion(kind: Kind, apiVersion: unknown): ProblemAt | undefined {
  const { apiVersions } = kindDefinitions[kind];
  const served = `Served versions of ${kind}: ${apiVersions.join(", ")}.`;
  if (typeof apiVersion !== "string") {
    const isMissing = apiVersion === undefined || apiVersion === null;
    const message = isMissing
      ? 'the resource has no "apiVersion"'
      : `the apiVersion has to be text, found ${describeValue(apiVersion)}`;
    return { code: "IST0106", path: isMissing ? [] : ["apiVersion"], message, suggestion: served };
  }
  if (apiVersions.includes(apiVersion)) return undefined;
  if (isForeignGroup(apiVersion, apiVersions)) {
    return {
      code: "TUL0003",
      path: ["apiVersion"],
      message: `${kind} of ${apiVersion} is not a kind that the mesh reads; the resource is left out`,
      suggestion: served,
    };
  }
  return {
    code: "IST0106",
    path: ["apiVersion"],
    message: `${kind} is not served as "${apiVersion}"`,
    suggestion: served,
  };
}

/** Another project's kind of the same name, as the Gateway API's Gateway, and no slip of the pen. */
function isForeignGroup(apiVersion: string, served: readonly string[]): boolean {
  const group = groupOf(apiVersion);
  return group.includes(".") && served.every((version) => editDistance(group, groupOf(version)) > 3);
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash === -1 ? "" : apiVersion.slice(0, slash);
}

/** The key that a document claims to have, as far as it can be told: findings name it even if the rest is wrong. */
function claimedKey(document: Readonly<Record<string, unknown>>): ResourceKey | undefined {
  const { kind, metadata } = document;
  if (typeof kind !== "string" || !isMapping(metadata) || typeof metadata.name !== "string") return undefined;
  const namespace = typeof metadata.namespace === "string" ? metadata.namespace : undefined;
  return { kind, namespace: effectiveNamespace(kind, namespace), name: metadata.name };
}

function finding(key: ResourceKey | undefined, places: PlaceTable | undefined, problem: ProblemAt): Finding {
  const { code, severity = findingCodes[code].severity, path = [], message, suggestion } = problem;
  const place = placeIn(places, path);
  return {
    code,
    severity,
    message,
    ...(key === undefined ? {} : { resource: key }),
    ...(path.length === 0 ? {} : { path: formatPath(path) }),
    ...(place === undefined ? {} : { place }),
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}
