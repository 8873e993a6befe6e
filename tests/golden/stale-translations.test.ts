// Whatever changes in the mesh, or in what a proxy says of itself: a control plane that has translated something else
// before sends the same as one that has just started. Each run changes one place of a golden case.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  type EndpointSnapshot,
  type MeshEndpoint,
  type MeshSnapshot, type Proxy, scope, TranslationCache } from "@tulle/control-plane/stages";
import { goldenCaseNames, type GoldenInput, readGoldenInput } from "./golden-cases.ts";
import { tries } from "../tools/tries.ts";

type Path = readonly (string | number)[];

/** Everything that the resources of a case's proxies are made of. */
interface Picture {
  readonly snapshot: MeshSnapshot;
  readonly endpoints: readonly (readonly [string, readonly MeshEndpoint[]])[];
  readonly leaving: readonly (readonly [string, readonly MeshEndpoint[]])[];
  readonly notReady: readonly (readonly [string, readonly MeshEndpoint[]])[];
  readonly encryptedOnly: readonly string[];
  readonly proxies: readonly Proxy[];
}

function pictureOf({ snapshot, endpoints, proxies }: GoldenInput): Picture {
  const { byServicePort, leaving, notReady, encryptedOnly } = endpoints;
  return {
    snapshot,
    endpoints: [...byServicePort],
    leaving: [...leaving],
    notReady: [...notReady],
    encryptedOnly,
    proxies,
  };
}

const pictures = (await Promise.all((await goldenCaseNames()).map((name) => readGoldenInput(name)))).map(pictureOf);

/** Every value below `root`, but for the root itself. */
function pathsBelow(root: unknown, above: Path = []): readonly Path[] {
  if (typeof root !== "object" || root === null) return [];
  const entries: readonly (readonly [string | number, unknown])[] = Array.isArray(root)
    ? root.map((value, index) => [index, value] as const)
    : Object.entries(root);
  return entries.flatMap(([key, value]) => [[...above, key], ...pathsBelow(value, [...above, key])]);
}

/**
 * The same with one value changed, or gone where it cannot be changed. What is not above that value stays the same
 * object.
 */
function changed<T>(root: T, [key, ...below]: Path): T {
  const copy = (Array.isArray(root) ? [...root] : { ...root }) as Record<string | number, unknown>;
  const value = copy[key!];
  if (below.length > 0) copy[key!] = changed(value, below);
  else if (typeof value === "string") copy[key!] = `${value}1`;
  else if (typeof value === "number") copy[key!] = value + 1;
  else if (typeof value === "boolean") copy[key!] = !value;
  else if (Array.isArray(copy)) copy.splice(Number(key), 1);
  else delete copy[key!];
  return copy as T;
}

/** What each proxy is sent, as bytes; the reason where the stages refuse what no store would hold. */
function sent(
  { snapshot, endpoints, leaving, notReady, encryptedOnly, proxies }: Picture,
  cache: TranslationCache,
): readonly unknown[] {
  const all: EndpointSnapshot = {
    byServicePort: new Map(endpoints),
    leaving: new Map(leaving),
    notReady: new Map(notReady),
    encryptedOnly,
  };
  return proxies.map((proxy) => {
    try {
      const resources = cache.resources(scope(snapshot, proxy, all), all);
      return Object.entries(resources).map(([type, map]) => [
        type,
        ...[...map.values()].map(({ any }) => Buffer.from(any.value).toString("latin1")),
      ]);
    } catch (error) {
      return (error as Error).message;
    }
  });
}

test("what a proxy is sent does not depend on what was translated before", () => {
  // `snapshot` itself and the lists beside it are always there.
  const pathsOf = pictures.map((picture) => pathsBelow(picture).filter((path) => path.length > 1));
  const place = fc
    .nat({ max: pictures.length - 1 })
    .chain((number) => fc.record({ number: fc.constant(number), path: fc.constantFrom(...pathsOf[number]!) }));
  fc.assert(
    fc.property(place, ({ number, path }) => {
      const picture = pictures[number]!;
      const cache = new TranslationCache("local");
      for (const each of [picture, changed(picture, path), picture]) {
        const fresh = sent(structuredClone(each), new TranslationCache("local"));
        assert.deepEqual(sent(each, cache), fresh);
      }
    }),
    { numRuns: tries({ short: 20, long: 100 }) },
  );
});
