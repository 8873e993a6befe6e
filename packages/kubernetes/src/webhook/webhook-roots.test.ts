// Which roots the webhooks' configurations have, over an API server that takes each change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { scriptedApiServer } from "../testing/scripted-api-server.ts";
import { WebhookRoots } from "./webhook-roots.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("roots that change while they are written are written after it", async (t) => {
  let pem = "one";
  let changed = (): void => undefined;
  const written: string[] = [];
  const configuration = (caBundle: string) => ({
    metadata: { name: "tulle", resourceVersion: "1" },
    webhooks: [{ name: "a.tulle.io", clientConfig: { caBundle } }],
  });
  const listed = {
    type: "BOOKMARK",
    object: { metadata: { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } } },
  };
  const server = await scriptedApiServer(t, [
    ({ method, path, query }) => {
      if (method !== "PATCH") {
        const added =
          path.includes("mutating") && query.has("fieldSelector") ? [{ type: "ADDED", object: configuration("") }] : [];
        return { lines: [...added, listed], isOpen: true };
      }
      const bundle = base64(pem);
      written.push(pem);
      if (written.length === 1) {
        pem = "two";
        changed();
      }
      return { lines: [configuration(bundle)] };
    },
  ]);
  const roots = new WebhookRoots({
    client: server.client(),
    revision: "default",
    roots: { pem: () => pem, follow: (listener) => void (changed = listener) },
    leadership: { isLeader: true, follow: () => () => undefined },
    clock: new ManualClock(),
    log: new Logging({ sink: () => undefined }).logger("kubernetes"),
  });
  t.after(() => roots.close());
  await waitFor(() => roots.areWritten() && written.length > 0, { what: "the roots to be written" });
  assert.deepEqual(written, ["one", "two"]);
});

test("the webhook of a tag gets them, and nobody waits for it", async (t) => {
  const written: string[] = [];
  const listed = {
    type: "BOOKMARK",
    object: { metadata: { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } } },
  };
  const tag = {
    metadata: { name: "prod", resourceVersion: "1" },
    webhooks: [{ name: "a.tulle.io", clientConfig: {} }],
  };
  const server = await scriptedApiServer(t, [
    ({ method, path, query }) => {
      if (method !== "PATCH") {
        const isTags = query.get("labelSelector") === "tulle.io/tag,tulle.io/rev=canary";
        const added = isTags ? [{ type: "ADDED", object: tag }] : [];
        return { lines: [...added, listed], isOpen: true };
      }
      written.push(path);
      return { status: 403, lines: [{ code: 403, reason: "Forbidden", message: "no right" }] };
    },
  ]);
  const roots = new WebhookRoots({
    client: server.client(),
    revision: "canary",
    roots: { pem: () => "one", follow: () => undefined },
    leadership: { isLeader: true, follow: () => () => undefined },
    clock: new ManualClock(),
    log: new Logging({ sink: () => undefined }).logger("kubernetes"),
  });
  t.after(() => roots.close());
  await waitFor(() => roots.areWritten() && written.length > 0, { what: "the tag's root to be written" });
  assert.match(written[0]!, /mutatingwebhookconfigurations\/prod/);
});
