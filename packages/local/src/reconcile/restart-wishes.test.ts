// Wishes on Pods: taken once, shown until they are granted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RestartWishes } from "./restart-wishes.ts";

const pod = (annotations: Readonly<Record<string, string>>) => ({
  metadata: { name: "web-1", namespace: "shop", annotations },
});
const replace = { "local.tulle.io/restarted-at": "2026-01-01" };
const proxy = { "local.tulle.io/proxy-restarted-at": "2026-01-02" };

test("a pod without a wish has none", () => {
  const wishes = new RestartWishes();
  wishes.take(pod({}));
  assert.deepEqual(wishes.annotationsOf("web-1"), {});
});

test("a pod to be replaced is so until it is gone", () => {
  const wishes = new RestartWishes();
  wishes.take(pod(replace));
  wishes.take(pod(replace));
  assert.equal(wishes.wantsReplaced("web-1"), true);
  assert.deepEqual(wishes.annotationsOf("web-1"), replace);
  wishes.forget("web-1");
  assert.equal(wishes.wantsReplaced("web-1"), false);
});

test("a proxy is started again once for each time that it is asked", () => {
  const wishes = new RestartWishes();
  wishes.take(pod(proxy));
  assert.equal(wishes.wantsProxyRestarted("web-1"), true);
  assert.deepEqual(wishes.annotationsOf("web-1"), proxy);
  wishes.grantProxy("web-1");
  assert.equal(wishes.wantsProxyRestarted("web-1"), false);
  assert.deepEqual(wishes.annotationsOf("web-1"), {});
  // The watch has not heard of that yet.
  wishes.take(pod(proxy));
  assert.equal(wishes.wantsProxyRestarted("web-1"), false);
  wishes.take(pod({ "local.tulle.io/proxy-restarted-at": "2026-01-03" }));
  assert.equal(wishes.wantsProxyRestarted("web-1"), true);
});
