// The configuration revision: which routes decided a request, as access logs and spans tell it. It is the content hash
// of a virtual host's routes and of what holds for all of them, kept in the virtual host's metadata, so that equal
// tables have equal revisions and views stay shared.
import { hash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { RouteRevision } from "@tulle/config/api";
import { contentVersion, type EncodedResource } from "@tulle/xds";
import { MetadataSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type RouteConfiguration, RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { type VirtualHost, VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";

/** Hexadecimal digits: two tables of one mesh never share 48 bits by chance. */
const revisionLength = 12;

/** `%METADATA(VIRTUAL_HOST:tulle:revision)%` reads it. */
const revisionMetadata = (revision: string) => ({ filterMetadata: { tulle: { revision } } });

/** The virtual host with its revision. */
export function withRevision(host: VirtualHost): VirtualHost {
  const revision = revisionOf(toBinary(VirtualHostSchema, { ...host, name: "", domains: [] }));
  return { ...host, metadata: create(MetadataSchema, revisionMetadata(revision)) };
}

function revisionOf(encodedRoutes: Uint8Array): string {
  return hash("sha256", encodedRoutes, "hex").slice(0, revisionLength);
}

/** The field `metadata` with a revision, whose digits are put in its place. */
const metadataTemplate = toBinary(
  VirtualHostSchema,
  create(VirtualHostSchema, { metadata: revisionMetadata("0".repeat(revisionLength)) }),
);
const digitsAt = metadataTemplate.length - revisionLength;

/** By table: the revision of each virtual host, by its name. */
const revisionsOfTables = new WeakMap<EncodedResource, ReadonlyMap<string, string>>();

/**
 * A table whose virtual hosts have their revisions. Each virtual host is encoded once, for its hash and for the table:
 * of ten thousand that is a tenth of a second. The fields stand in the order in which an encoder writes them.
 */
export function encodeRoutes(table: RouteConfiguration): EncodedResource {
  const parts: Uint8Array[] = [
    toBinary(RouteConfigurationSchema, create(RouteConfigurationSchema, { name: table.name })),
  ];
  const revisions = new Map<string, string>();
  for (const host of table.virtualHosts) {
    // What follows name and domains has higher field numbers, and `metadata` the highest.
    const { name, domains } = host;
    const names = toBinary(VirtualHostSchema, create(VirtualHostSchema, { name, domains }));
    const routes = toBinary(VirtualHostSchema, { ...host, name: "", domains: [] });
    const metadata = Buffer.from(metadataTemplate);
    const revision = revisionOf(routes);
    revisions.set(name, revision);
    metadata.write(revision, digitsAt, "latin1");
    parts.push(lengthDelimited(names.length + routes.length + metadata.length), names, routes, metadata);
  }
  parts.push(toBinary(RouteConfigurationSchema, { ...table, name: "", virtualHosts: [] }));
  const value = Buffer.concat(parts);
  const typeUrl = `type.googleapis.com/${RouteConfigurationSchema.typeName}`;
  const encoded = { name: table.name, version: contentVersion(value), any: create(AnySchema, { typeUrl, value }) };
  revisionsOfTables.set(encoded, revisions);
  return encoded;
}

/** What tells the tables of one time from those of another. Both were made by `encodeRoutes`. */
export function changedRevisions(
  before: readonly EncodedResource[],
  after: readonly EncodedResource[],
): readonly RouteRevision[] {
  const of = (tables: readonly EncodedResource[], name: string): EncodedResource | undefined =>
    tables.find((table) => table.name === name);
  const names = new Set([...before, ...after].map(({ name }) => name));
  return [...names].flatMap((name) => {
    const [old, now] = [of(before, name), of(after, name)];
    return old?.version === now?.version ? [] : changedIn(revisionsIn(old), revisionsIn(now));
  });
}

function revisionsIn(table: EncodedResource | undefined): ReadonlyMap<string, string> {
  return (table && revisionsOfTables.get(table)) ?? new Map<string, string>();
}

function changedIn(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): RouteRevision[] {
  const changed: RouteRevision[] = [];
  for (const [virtualHost, revision] of after) {
    const old = before.get(virtualHost);
    if (old !== revision) changed.push({ virtualHost, ...(old === undefined ? {} : { before: old }), after: revision });
  }
  for (const [virtualHost, old] of before) if (!after.has(virtualHost)) changed.push({ virtualHost, before: old });
  return changed;
}

/** The head of RouteConfiguration's field `virtual_hosts`: its number with the wire type, then a varint. */
function lengthDelimited(length: number): Uint8Array {
  const head = [(RouteConfigurationSchema.field.virtualHosts.number << 3) | 2];
  let rest = length;
  for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80);
  head.push(rest);
  return Uint8Array.from(head);
}
