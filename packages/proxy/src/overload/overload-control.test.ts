// When overload begins and ends, and what it asks for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { OverloadManagerSchema } from "@tulle/xds/envoy/config/overload/v3/overload_pb";
import { Place, Problems } from "../fields/problems.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { compileOverload } from "./compile-overload.ts";
import { OverloadControl, triggerValue } from "./overload-control.ts";
import { OverloadState } from "../worker/overload-state.ts";

const type = (name: string): string => `type.googleapis.com/envoy.extensions.resource_monitors.${name}`;
const heap = {
  name: "envoy.resource_monitors.fixed_heap",
  typed_config: { "@type": type("fixed_heap.v3.FixedHeapConfig"), max_heap_size_bytes: "1000" },
};
const connections = {
  name: "envoy.resource_monitors.global_downstream_max_connections",
  typed_config: {
    "@type": type("downstream_connections.v3.DownstreamConnectionsConfig"),
    max_active_downstream_connections: "3",
  },
};
const action = (name: string, trigger: object): object => ({
  name: `envoy.overload_actions.${name}`,
  triggers: [{ name: heap.name, ...trigger }],
});

function compile(json: object) {
  const problems = new Problems();
  const settings = compileOverload(fromConfiguration(OverloadManagerSchema, json), Place.root, problems);
  return { settings, problems: problems.list };
}

test("nothing configured, nothing limited", () => {
  const problems = new Problems();
  const settings = compileOverload(undefined, Place.root, problems);
  assert.deepEqual(settings, {
    refreshIntervalMs: 1000,
    maxMemoryBytes: undefined,
    maxConnections: undefined,
    actions: [],
  });
});

const scaled = { type: "scaled", scalingFrom: 0.8, saturatedFrom: 0.9 } as const;
const values = [
  { name: "below a threshold", trigger: { type: "threshold", value: 0.5 }, pressure: 0.49, expected: 0 },
  { name: "at a threshold", trigger: { type: "threshold", value: 0.5 }, pressure: 0.5, expected: 1 },
  { name: "scaling begins", trigger: scaled, pressure: 0.8, expected: 0 },
  { name: "halfway", trigger: scaled, pressure: 0.85, expected: 0.5 },
  { name: "saturated", trigger: scaled, pressure: 1.2, expected: 1 },
] as const;
for (const { name, trigger, pressure, expected } of values) {
  test(`a trigger: ${name}`, () => {
    assert.ok(Math.abs(triggerValue(trigger, pressure) - expected) < 1e-9);
  });
}

test("memory moves every action by its own triggers, and lets go again", () => {
  const { settings, problems } = compile({
    refresh_interval: "0.25s",
    resource_monitors: [heap, connections],
    actions: [
      action("stop_accepting_requests", { threshold: { value: 0.95 } }),
      action("disable_http_keepalive", { scaled: { scaling_threshold: 0.8, saturation_threshold: 1 } }),
      action("reject_incoming_connections", { threshold: { value: 0.98 } }),
      action("stop_accepting_connections", { threshold: { value: 0.99 } }),
      action("shrink_heap", { threshold: { value: 0.9 } }),
    ],
  });
  assert.deepEqual(problems, []);
  const clock = new ManualClock();
  const state = new OverloadState();
  const metrics = new MetricRegistry();
  let memory = 700;
  const manager = new OverloadControl({
    settings,
    state,
    metrics,
    clock,
    log: new Logging({ sink: () => {} }).logger("main"),
    memoryBytes: () => memory,
  });
  manager.start();
  const at = (bytes: number): readonly unknown[] => {
    memory = bytes;
    clock.advance(250);
    const { refusedRequests, closedConnections, refusedConnections, acceptsConnections } = state;
    return [refusedRequests, Math.round(closedConnections * 100) / 100, refusedConnections, acceptsConnections];
  };
  assert.deepEqual(at(700), [0, 0, 0, true]);
  assert.deepEqual(at(900), [0, 0.5, 0, true]);
  assert.deepEqual(at(960), [1, 0.8, 0, true]);
  assert.deepEqual(at(2000), [1, 1, 1, false]);
  assert.deepEqual(at(100), [0, 0, 0, true]);
  assert.equal(state.maxConnections, 3);
  const delays = [...metrics.allSeries()].find(
    ({ statName }) => statName === "overload.refresh_interval_delay",
  )!.metric;
  assert.deepEqual("sum" in delays && [delays.count, delays.sum], [5, 1250]);
  manager.stop();
  assert.deepEqual(at(2000), [0, 0, 0, true]);
});

test("connections are refused that chance picks, or all", () => {
  const state = new OverloadState();
  assert.equal(
    state.refusesConnection(() => 0),
    false,
  );
  state.refusedConnections = 0.5;
  assert.deepEqual([state.refusesConnection(() => 0.49), state.refusesConnection(() => 0.5)], [true, false]);
  state.acceptsConnections = false;
  assert.equal(
    state.refusesConnection(() => 0.9),
    true,
  );
});

test("requests and answers are picked by chance", () => {
  const state = new OverloadState();
  const picked = (random: number) => [state.refusesRequest(() => random), state.endsConnection(() => random)];
  assert.deepEqual(picked(0), [false, false]);
  state.refusedRequests = 0.5;
  state.closedConnections = 0.25;
  assert.deepEqual(
    [picked(0.24), picked(0.25), picked(0.5)],
    [
      [true, true],
      [true, false],
      [false, false],
    ],
  );
});

const refused: readonly { name: string; json: object; place: string; severity: "error" | "warning" }[] = [
  {
    name: "a monitor that is not known",
    json: { resource_monitors: [{ name: "cpu" }] },
    place: "resource_monitors[0]",
    severity: "error",
  },
  {
    name: "no memory at all",
    json: { resource_monitors: [{ ...heap, typed_config: { "@type": heap.typed_config["@type"] } }] },
    place: "resource_monitors[0].typed_config.max_heap_size_bytes",
    severity: "error",
  },
  {
    name: "a trigger of no monitor",
    json: { actions: [action("stop_accepting_requests", { threshold: { value: 1 } })] },
    place: "actions[0].triggers[0].name",
    severity: "error",
  },
  {
    name: "scaling that ends before it begins",
    json: {
      resource_monitors: [heap],
      actions: [action("stop_accepting_requests", { scaled: { scaling_threshold: 0.9, saturation_threshold: 0.8 } })],
    },
    place: "actions[0].triggers[0].scaled",
    severity: "error",
  },
  {
    name: "an action without effect",
    json: { resource_monitors: [heap], actions: [action("reduce_timeouts", { threshold: { value: 1 } })] },
    place: "actions[0]",
    severity: "warning",
  },
];
for (const { name, json, place, severity } of refused) {
  test(`refused or told: ${name}`, () => {
    const { problems } = compile(json);
    assert.deepEqual(
      problems.map((problem) => [problem.severity, problem.place]),
      [[severity, place]],
    );
  });
}
