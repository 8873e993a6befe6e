// docs/failures.md against the proxy's source: every flag, every code details and every reason that the source can give
// stands on the page, what the page names exists, and a test makes it happen.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const page = read("docs/failures.md");
const proxyFiles = globSync("packages/proxy/src/**/*.ts", { cwd: root });
const isTest = (file: string): boolean => /\.test\.ts$|\/testing\/|\/hand-built\//.test(file);
const source = proxyFiles.filter((file) => !isTest(file)).map((file) => [file, read(file)] as const);
const tests = [...proxyFiles.filter(isTest), ...globSync("tests/{parity,e2e}/**/*.ts", { cwd: root })]
  .map(read)
  .join("\n");

/** How the source writes down why something failed. */
const places: readonly { readonly name: string; readonly pattern: RegExp; readonly within?: string }[] = [
  { name: "details of an answer", pattern: /\bdetails(?::| =) "([^"]+)"/g },
  { name: "details of a stream", pattern: /responseCodeDetails = "([^"]+)"/g },
  { name: "details of a connection", pattern: /(?:terminationDetails|transportFailureReason) = "([^"]+)"/g },
  { name: "a close by a network filter", pattern: /#close\(\w+, "([^"]+)"\)/g },
  { name: "a time-out of a try", pattern: /onPerTryTimeout\(this, "([^"]+)"\)/g },
  { name: "a refused sign-in", pattern: /(?:#refuse\(visit, |reason: )"([A-Z][^"]+)"/g, within: "/oauth2/" },
  { name: "a redirect of a sign-in", pattern: /#redirect\((?:visit\.)?stream, headers, "([^"]+)"/g },
  {
    name: "a fault of the codec",
    // What a span is told has names of the same kind.
    pattern: /(?<!tag\(|key === |\[)"(https?1?\.[a-z_]+|low_version|request_header_timeout)"/g,
  },
  { name: "a reason of a token", pattern: /^ {2}\w+: "((?:Jwt|Jwks|Audiences|Found)[^"]*)"/gm },
];

const found = new Map<string, string>();
for (const { name, pattern, within = "" } of places) {
  for (const [file, text] of source.filter(([each]) => each.includes(within))) {
    for (const [, details] of text.matchAll(pattern)) found.set(details!, `${name}, ${file}`);
  }
}
/** As an access log writes it. */
const asLogged = (details: string): string => details.replaceAll(" ", "_");
const flags = [...read("packages/proxy/src/http/response-flags.ts").matchAll(/^ {2}([A-Z]+): \{ bit/gm)].map(
  ([, flag]) => flag!,
);

test("the source is read at all", () => {
  for (const { name } of places)
    assert.ok(
      [...found.values()].some((place) => place.startsWith(name)),
      `nothing was found as ${name}: does the source write it otherwise now?`,
    );
  assert.ok(flags.length > 20 && found.size > 70, `${flags.length} flags, ${found.size} details`);
});

test("every flag stands on the page", () => {
  assert.deepEqual(
    flags.filter((flag) => !page.includes(`\`${flag}\``)),
    [],
  );
});

test("every code details stands on the page", () => {
  const missing = [...found].filter(([details]) => !page.includes(details) && !page.includes(asLogged(details)));
  assert.deepEqual(missing, []);
});

test("every reason of a reset stands on the page", () => {
  const codec = read("packages/proxy/src/codec/stream-codec.ts");
  const union = codec.slice(
    codec.indexOf("type StreamResetReason"),
    codec.indexOf(";", codec.indexOf("type StreamResetReason")),
  );
  const reasons = [...union.matchAll(/"([a-z_]+)"/g)].map(([, reason]) => reason!);
  assert.ok(reasons.length > 5);
  assert.deepEqual(
    reasons.filter((reason) => !page.includes(`{${reason}}`) && !page.includes(`{${reason}\\|`)),
    [],
  );
});

/** Made to happen by what stands in the second column, in other words than the details. */
const elsewhere = new Map([["TLS error: Secret is not supplied by SDS", "listener/downstream-tls.test.ts"]]);

test("a test makes each of them happen", () => {
  const untested = [...found.keys()].filter(
    (details) => !elsewhere.has(details) && !tests.includes(details) && !tests.includes(asLogged(details)),
  );
  assert.deepEqual(untested, []);
});

test("counters that the page names are the proxy's", () => {
  const all = source.map(([, text]) => text).join("\n");
  const named = [...page.matchAll(/`((?:downstream|upstream|oauth|no|ssl|max)[._][a-z0-9_.]+)`/g)].map(
    ([, name]) => name!,
  );
  const settings = /_timeout$|_kb$|_count$|^max_(stream|connection|requests|headers|request)_|_bytes$|response_started/;
  const counters = named.filter((name) => !settings.test(name));
  assert.ok(counters.length > 20);
  assert.deepEqual(
    counters.filter((name) => !all.includes(name)),
    [],
  );
});
