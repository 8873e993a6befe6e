// Configuration: where a value comes from, and that every mistake is said with its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "./config.ts";
import { parseDurationMs } from "./durations.ts";

test("flags beat the environment, which beats the file, which beats defaults", () => {
  const readFile = (): string => "port: 1\nhost: 10.0.0.1\nissuer: https://file.example\ncodeLifetime: 30s\n";
  const environment = {
    TULLE_AUTH_CONFIG: "x.yaml",
    TULLE_AUTH_PORT: "2",
    TULLE_AUTH_ISSUER: "https://env.example",
    HOST: "10.9.9.9",
  };
  const { config } = loadConfig({ argv: ["--port", "3"], environment, readFile });
  assert.equal(config?.port, 3);
  assert.equal(config?.issuer, "https://env.example");
  assert.equal(config?.host, "10.0.0.1");
  assert.equal(config?.lifetimes.codeMs, 30_000);
  assert.equal(config?.lifetimes.accessTokenMs, 300_000);
  assert.equal(config?.defaultAudience, "https://env.example");
  const platform = loadConfig({ argv: [], environment: { HOST: "127.0.0.9", PORT: "9000" } });
  assert.equal(platform.config?.host, "127.0.0.9");
  assert.equal(platform.config?.issuer, "http://localhost:9000");
});

test("lists and maps may be written as such in a file", () => {
  const readFile = (): string => "scopes:\n  orders.read: See your orders\ntrusted-proxies: [10.0.0.0/8, 127.0.0.1]\n";
  const { config } = loadConfig({ argv: ["--config", "x.yaml"], environment: {}, readFile });
  assert.deepEqual([...config!.scopeTexts], [["orders.read", "See your orders"]]);
  assert.deepEqual(config!.trustedProxies, ["10.0.0.0/8", "127.0.0.1"]);
});

const mistakes: readonly {
  argv?: readonly string[];
  environment?: Record<string, string>;
  file?: string;
  problem: RegExp;
}[] = [
  { argv: ["--isuer", "x"], problem: /Unknown option '--isuer' \(did you mean --issuer\?\)/ },
  { argv: ["extra"], problem: /^Unexpected argument 'extra'; --help lists the flags$/ },
  { argv: ["--demo=yes"], problem: /^Option '--demo' does not take an argument; / },
  { argv: ["--issuer"], problem: /^Option '--issuer <value>' argument missing; / },
  { argv: ["--data-dir", "--demo"], problem: /^Option '--data-dir <value>' argument missing; / },
  { argv: ["--port", "many"], problem: /^--port: "many" is no whole number$/ },
  { argv: ["--port", "70000"], problem: /is no port/ },
  { argv: ["--code-lifetime", "soon"], problem: /--code-lifetime: "soon" is no duration/ },
  { argv: ["--code-lifetime", "11m"], problem: /between 1s and 10m/ },
  { argv: ["--issuer", "http://auth.example"], problem: /must be https/ },
  { argv: ["--issuer", "https://AUTH.example"], problem: /normal form, https:\/\/auth\.example/ },
  { argv: ["--issuer", "https://auth.example/metrics"], problem: /reserved path/ },
  { argv: ["--issuer", "nonsense"], problem: /no absolute URL/ },
  { argv: ["--demo", "--issuer", "https://auth.example"], problem: /only for an issuer on this machine/ },
  { argv: ["--database", "mysql://x"], problem: /only postgres/ },
  { argv: ["--database", "postgres://x/y"], problem: /key-encryption-key-file: needed with PostgreSQL/ },
  { argv: ["--signing-algorithm", "HS256"], problem: /not one of RS256, ES256/ },
  { argv: ["--audience-tokens", "https://a.example=HS256"], problem: /"HS256" for https:\/\/a.example is neither/ },
  { argv: ["--audience-tokens", "https://a.example=JWT at+jwt"], problem: /"JWT at\+jwt" for/ },
  { argv: ["--audience-tokens", "api=RS256"], problem: /"api" is no absolute URI/ },
  { argv: ["--key-publish-ahead", "40d"], problem: /shorter than key-rotation/ },
  { argv: ["--key-publish-ahead", "9m"], problem: /key-publish-ahead: must be 10m at least/ },
  { environment: { TULLE_AUTH_STRICTT: "true" }, problem: /environment TULLE_AUTH_STRICTT: no such setting/ },
  {
    environment: { TULLE_AUTH_STRICT: "yes" },
    problem: /environment TULLE_AUTH_STRICT: "yes" is neither true nor false/,
  },
  { file: "prot: 1", problem: /x\.yaml: no setting "prot", did you mean "port"\?/ },
  { file: "- 1", problem: /no mapping/ },
  { file: "a: [", problem: /x\.yaml: / },
];

for (const { argv, environment, file, problem } of mistakes) {
  test(`a mistake is said: ${problem.source}`, () => {
    const flags = file === undefined ? (argv ?? []) : ["--config", "x.yaml"];
    const loaded = loadConfig({ argv: flags, environment: environment ?? {}, readFile: () => file ?? "" });
    assert.match(loaded.problems?.join("\n") ?? "", problem);
  });
}

test("several mistakes are said at once, and --help lists every flag", () => {
  const loaded = loadConfig({ argv: ["--port", "x", "--code-lifetime", "y"], environment: {} });
  assert.equal(loaded.problems?.length, 2);
  const argv = ["--isuer", "x", "--hst=y", "--port", "x", "--issuer", "nonsense"];
  assert.deepEqual(loadConfig({ argv, environment: { TULLE_AUTH_STRICTT: "true" } }).problems, [
    "Unknown option '--isuer' (did you mean --issuer?); --help lists the flags",
    "Unknown option '--hst' (did you mean --host?); --help lists the flags",
    "environment TULLE_AUTH_STRICTT: no such setting",
    '--port: "x" is no whole number',
    'issuer: "nonsense" is no absolute URL',
  ]);
  const help = loadConfig({ argv: ["--help"], environment: {} });
  assert.ok("help" in help && /--issuer TEXT/.test(help.help) && /TULLE_AUTH_ISSUER/.test(help.help));
});

test("durations", () => {
  const cases: readonly [string, number | undefined][] = [
    ["60s", 60_000],
    ["5m", 300_000],
    ["12h", 43_200_000],
    ["30d", 2_592_000_000],
    ["5", undefined],
    ["1.5m", undefined],
    ["", undefined],
  ];
  for (const [text, expected] of cases) assert.equal(parseDurationMs(text), expected, text);
});
