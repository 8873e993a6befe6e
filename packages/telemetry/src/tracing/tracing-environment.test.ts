// What each variable of OpenTelemetry's does, and what one that is not understood does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { tracingEnvironment } from "./tracing-environment.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

const rows: readonly {
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly expected: Readonly<Record<string, unknown>> | undefined;
  readonly problems?: readonly RegExp[];
}[] = [
  { name: "nothing", environment: {}, expected: undefined },
  { name: "empty", environment: { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, expected: undefined },
  { name: "switched off", environment: { ...endpoint, OTEL_SDK_DISABLED: "true" }, expected: undefined },
  { name: "no exporter", environment: { ...endpoint, OTEL_TRACES_EXPORTER: "none" }, expected: undefined },
  {
    name: "an endpoint alone",
    environment: endpoint,
    expected: {
      serviceName: "own",
      protocol: "http/protobuf",
      endpoint: "http://127.0.0.1:4318/v1/traces",
      timeoutMs: 10_000,
      flushIntervalMs: 5000,
      sampler: { isParentBased: true, ratio: 1 },
    },
  },
  {
    name: "a path, which goes on",
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector/a/" },
    expected: { endpoint: "https://collector/a/v1/traces" },
  },
  {
    name: "traces of their own, as they stand",
    environment: { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://other/x" },
    expected: { endpoint: "http://other/x" },
  },
  {
    name: "gRPC",
    environment: { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    expected: { protocol: "grpc", endpoint: "http://127.0.0.1:4318/" },
  },
  {
    name: "names, headers, a time limit",
    environment: {
      ...endpoint,
      OTEL_SERVICE_NAME: "shop",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=a%20b,service.name=other",
      OTEL_EXPORTER_OTLP_HEADERS: "Api-Key=s%3Dx, b=c",
      OTEL_EXPORTER_OTLP_TIMEOUT: "250",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    },
    expected: {
      serviceName: "shop",
      resource: { "deployment.environment": "a b", "service.name": "other" },
      headers: { "api-key": "s=x", b: "c" },
      timeoutMs: 250,
      flushIntervalMs: 100,
    },
  },
  ...(
    [
      ["always_on", undefined, false, 1],
      ["always_off", undefined, false, 0],
      ["traceidratio", "0.25", false, 0.25],
      ["traceidratio", undefined, false, 1],
      ["parentbased_always_on", undefined, true, 1],
      ["parentbased_always_off", "0.5", true, 0],
      ["parentbased_traceidratio", "0", true, 0],
    ] as const
  ).map(([sampler, argument, isParentBased, ratio]) => ({
    name: `${sampler} ${argument ?? ""}`,
    environment: {
      ...endpoint,
      OTEL_TRACES_SAMPLER: sampler,
      ...(argument === undefined ? {} : { OTEL_TRACES_SAMPLER_ARG: argument }),
    },
    expected: { sampler: { isParentBased, ratio } },
  })),
  {
    name: "a protocol that nobody knows",
    environment: { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" },
    expected: undefined,
    problems: [/PROTOCOL/],
  },
  {
    name: "no URL",
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" },
    expected: undefined,
    problems: [/ENDPOINT/],
  },
  {
    name: "what is not understood, beside what is",
    environment: {
      ...endpoint,
      OTEL_TRACES_SAMPLER: "constructor",
      OTEL_EXPORTER_OTLP_TIMEOUT: "soon",
      OTEL_BSP_SCHEDULE_DELAY: "0",
      OTEL_EXPORTER_OTLP_HEADERS: "secret,a=b%,x y=z,line=a%0Ab,good=1",
      OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere",
    },
    expected: { headers: { good: "1" }, timeoutMs: 10_000, sampler: { isParentBased: true, ratio: 1 } },
    problems: [
      /CERTIFICATE.*ENOENT/,
      /HEADERS/,
      /HEADERS/,
      /HEADERS/,
      /HEADERS/,
      /TIMEOUT/,
      /DELAY/,
      /SAMPLER is none of/,
    ],
  },
  {
    name: "headers that are not the sender's to choose",
    environment: {
      ...endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: "Connection=close,upgrade=h2c,transfer-encoding=chunked,content-length=3,good=1",
    },
    expected: { headers: { good: "1" } },
    problems: Array.from({ length: 4 }, () => /HEADERS: a member is a header of the connection/),
  },
  {
    name: "a share that is none",
    environment: { ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" },
    expected: { sampler: { isParentBased: false, ratio: 1 } },
    problems: [/SAMPLER_ARG/],
  },
];
for (const { name, environment, expected, problems = [] } of rows) {
  test(name, () => {
    const { settings, problems: told } = tracingEnvironment(environment, "own");
    const text = told.join("\n");
    assert.equal(told.length, problems.length, text);
    for (const problem of problems) assert.match(text, problem);
    assert.doesNotMatch(text, /secret/);
    if (expected === undefined) assert.equal(settings, undefined);
    else assert.partialDeepStrictEqual({ ...settings, endpoint: settings?.endpoint.href }, expected);
  });
}
