// Holds the outcome of a call on one proxy against what its row expects.
import assert from "node:assert/strict";
import type { Call } from "./call.ts";
import { detailsOf, type Trace } from "./compare.ts";

export function checkExpected(call: Call, { outcome, lines }: Trace): void {
  const { expected } = call;
  const { answers } = outcome;
  const last = answers.at(-1);
  const echo = outcome.echoes.at(-1);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [...(expected.earlierStatuses ?? []), expected.status],
    `the statuses; the last body: ${last?.body}`,
  );
  assert.deepEqual(last?.interim ?? [], expected.interim ?? [], "interim answers");
  assert.equal(last?.truncated ?? false, expected.truncated ?? false, "truncated");
  assert.equal(last?.reset, expected.reset, "the code of a reset");
  if (expected.trailers !== undefined) assert.deepEqual(last?.trailers, expected.trailers, "trailers");
  if (expected.bodyIncludes !== undefined) {
    assert.ok(last?.body.includes(expected.bodyIncludes), `${expected.bodyIncludes} in ${last?.body}`);
  }
  checkFields(Object.fromEntries(last?.headers ?? []), expected.headers, "of the answer");
  if (expected.version !== undefined) assert.equal(echo?.version, expected.version);
  if (expected.attempts !== undefined) assert.equal(echo?.headers["x-envoy-attempt-count"], String(expected.attempts));
  if (expected.receivedPath !== undefined) assert.equal(echo?.path, expected.receivedPath);
  if (expected.received !== undefined) {
    assert.ok(echo, "the back end was asked");
    checkFields(echo.headers, expected.received, "received");
  }

  const line = lines.at(-1);
  assert.ok(line, "an access-log line");
  assert.deepEqual(
    { status: line.status, flags: line.flags, details: detailsOf(call, line) },
    {
      status: String(expected.status),
      flags: expected.flags ?? "-",
      details: expected.details ?? "via_upstream",
    },
  );
  if (expected.route !== undefined) assert.equal(line.route, expected.route === "" ? "-" : expected.route);
  if (echo !== undefined) assert.equal(line.requestId, echo.headers["x-request-id"]);
  if (last?.truncated === false && last.status !== 101 && !line.request.startsWith("CONNECT")) {
    assert.equal(line.bytesSent, String(last.body.length), "bytes of the body");
  }
}

function checkFields(
  seen: Readonly<Record<string, string>>,
  expected: Readonly<Record<string, string | null>> = {},
  what: string,
): void {
  for (const [name, value] of Object.entries(expected)) assert.equal(seen[name] ?? null, value, `${name} ${what}`);
}
