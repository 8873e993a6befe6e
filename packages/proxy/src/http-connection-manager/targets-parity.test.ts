// What a request names, on this proxy and on a stock Envoy: paths in every spelling, hosts, and fields that its
// Connection gives up. The two agree but for the tables of this file, in which this one is stricter.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { expectedOfBoth, type ParityExpectation } from "../../../../tests/tools/parity-difference.ts";
import { seededRandom } from "../testing/random-requests.ts";
import { extension, router } from "../testing/envoy-json.ts";
import { type ParityCall, type ParityPair, type Seen, startParityPair } from "../testing/parity-pair.ts";

const settings: Readonly<Record<string, object>> = {
  none: {},
  base: { normalize_path: true },
  merge: { normalize_path: true, merge_slashes: true },
  decode: { normalize_path: true, merge_slashes: true, path_with_escaped_slashes_action: "UNESCAPE_AND_FORWARD" },
  reject: { normalize_path: true, path_with_escaped_slashes_action: "REJECT_REQUEST" },
};

const admin = { prefix: "/admin" };
/** Refuses `/admin` by its path. */
const denyAdmin = {
  name: "rbac",
  typed_config: {
    "@type": extension("filters.http.rbac.v3.RBAC"),
    rules: {
      action: "DENY",
      policies: { p: { permissions: [{ url_path: { path: admin } }], principals: [{ any: true }] } },
    },
  },
};

let pair: ParityPair;
before(async () => {
  const listeners = Object.entries(settings).flatMap(([name, manager]) => [
    { name, filters: [], manager },
    { name: `${name}-guarded`, filters: [], manager: { ...manager, http_filters: [denyAdmin, router] } },
  ]);
  pair = await startParityPair(listeners, "none");
});
after(() => pair?.stop());

/** The path that the back end got, or what the client was told. */
function outcome({ status, body, details }: Pick<Seen, "status" | "body" | "details">): string {
  return status === 200 ? (body as { url: string }).url : `${status} ${details}`;
}

/** The same over HTTP/1.1 and HTTP/2, or both. */
function inBoth(seen: Seen): string {
  const [first, second] = [outcome(seen), typeof seen.overHttp2 === "string" ? undefined : outcome(seen.overHttp2)];
  return second === undefined || second === first ? first : `${first}, over HTTP/2 ${second}`;
}

async function bothOf(calls: readonly ParityCall[]): Promise<readonly { ours: string; envoys: string }[]> {
  const { ours, envoys } = await pair.run(calls);
  return calls.map((_call, index) => ({ ours: inBoth(ours[index]!), envoys: inBoth(envoys[index]!) }));
}

/** What is refused before there is a request has no line that could be told by a header. */
async function answersOf(calls: readonly ParityCall[]): Promise<readonly { ours: string; envoys: string }[]> {
  const answers: { ours: string; envoys: string }[] = [];
  const ask = async (side: "ours" | "envoys", call: ParityCall): Promise<string> => {
    const { status, body } = await pair.ask(side, call);
    return status === 200 ? (JSON.parse(body) as { url: string }).url : String(status);
  };
  for (const call of calls) answers.push({ ours: await ask("ours", call), envoys: await ask("envoys", call) });
  return answers;
}

const pieces = [
  ..."/ / / /admin /a . .. .. ; ;a=b ..; .; %2e %2E %2f %5C \\ // %00 %3b %25 %2 %zz %c0%ae %c0%af %e9 %61 %3f".split(
    " ",
  ),
  ...'? %23 %20 + : @ { ~ %7e %0a %0d%0a %09 %7f " < | ^ ` [ ] %ff , = & %u002e %252e %2500 '.trim().split(" "),
];

function randomPaths(count: number): readonly string[] {
  const random = seededRandom(10);
  return Array.from({ length: count }, () => {
    const length = 1 + Math.floor(random() * 7);
    return `/${Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]!).join("")}`;
  });
}

/** Where this proxy is stricter: each with a row below. */
const isStricter = (path: string): boolean => {
  const [beforeQuery = ""] = path.split("?");
  const brokenEscape = /%(?=[0-9a-f]?%(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae]))/i;
  const hiddenDots = /(?:%2e|\\\.|%5c\.)[^/]*;|\\[^/]*;/i;
  const slashesAlone = /^(?:[/\\.]|%2f|%5c|%2e|;[^/]*)*$/i;
  return brokenEscape.test(beforeQuery) || hiddenDots.test(beforeQuery) || slashesAlone.test(beforeQuery);
};

describe("paths", () => {
  const paths = randomPaths(100).filter((path) => !isStricter(path));

  for (const name of Object.keys(settings)) {
    test(`the same of both, ${name}`, async () => {
      const outcomes = await bothOf(paths.map((path) => ({ listener: name, path })));
      const different = outcomes.flatMap(({ ours, envoys }, index) =>
        ours === envoys ? [] : [{ path: paths[index], ours, envoys }],
      );
      assert.deepEqual(different, []);
    });
  }

  test("a policy judges the path that the back end gets", async () => {
    for (const name of ["base", "decode"]) {
      for (const path of randomPaths(100)) {
        const plain = await pair.ask("ours", { listener: name, path });
        const guarded = await pair.ask("ours", { listener: `${name}-guarded`, path });
        const received = plain.status === 200 ? (JSON.parse(plain.body) as { url: string }).url : "";
        assert.equal(guarded.status, received.startsWith("/admin") ? 403 : plain.status, path);
      }
    }
  });

  const refusedPath = "400 path_normalization_failed";
  const dotsOfServers = "some servers resolve what Envoy leaves; routes judge the path that the application reads";
  const rows: readonly (readonly [listener: string, path: string, expected: ParityExpectation<string>])[] = [
    ["base", "/x/..;/admin", "/admin"],
    ["base", "/..;a=b/admin", "/admin"],
    ["base", "/x/.;/admin", "/x/admin"],
    ["base", "/x/..;\\admin", "/"],
    ["base", "/x/..%3b/admin", "/x/..%3b/admin"],
    ["base", "/a%00b", refusedPath],
    ["base", "/a?b=%00", "/a?b=%00"],
    ["base", "/a#b", refusedPath],
    ["none", "/x/..;/admin", "/x/..;/admin"],
    ["none", "/a%00b", "/a%00b"],
    ["base", "/x/%2e%2e;/admin", { ours: "/admin", envoys: "/x/..;/admin", why: dotsOfServers }],
    ["base", "/x/.%2E;a/admin", { ours: "/admin", envoys: "/x/..;a/admin", why: dotsOfServers }],
    ["base", "/x/y\\..;/admin", { ours: "/x/admin", envoys: "/x/y/..;/admin", why: dotsOfServers }],
    ["decode", "/x/y%5c..;/admin", { ours: "/x/admin", envoys: "/x/y/..;/admin", why: dotsOfServers }],
    [
      "base",
      "/%%7e",
      {
        ours: "/%25~",
        envoys: "/%~",
        why: "a percent sign that begins no escape is escaped, so that nobody reads one",
      },
    ],
    ["base", "/..;%00/x", { ours: refusedPath, envoys: "/x", why: "NUL is refused wherever it stands in a path" }],
    ["merge", "//", { ours: "/", envoys: "//", why: "slashes alone are merged as others are" }],
  ];
  let outcomes: Awaited<ReturnType<typeof bothOf>>;
  before(async () => {
    outcomes = await bothOf(rows.map(([listener, path]) => ({ listener, path })));
  });
  for (const [index, [listener, path, expected]] of rows.entries()) {
    test(`${path}, ${listener}`, () => assert.deepEqual(outcomes[index], expectedOfBoth(expected)));
  }
});

describe("hosts in a target", () => {
  const good = ["h", "H.example", "h:0", "h:65535", "1.2.3.4:8", "[::1]", "[::ffff:1.2.3.4]:80", "xn--a", "a-b.c."];
  const bad = [
    ..."[::1 ::1 [::1]: [::1]x [::1]] [[::1]] [] [v1.a] [:::1] [12345::1] [g::1] [::1%] [fe80::1%25e]:80".split(" "),
    ..."h%2fx h%00 h% h%zz %61 %2e%2e h%20 h%0d%0a a%b h:65536 h:99999 h:100000 h:abc h: :80 h:80:80".split(" "),
    ..."h:+80 h:-1 a,b a;b a(b) a~b a!b a$b a&b a'b a*b a+b a=b * a[b] a]b".split(" "),
  ];
  const calls = (hosts: readonly string[]): readonly ParityCall[] =>
    hosts.map((host) => ({ listener: "base", path: `http://${host}/x`, host: "other" }));

  test("both take what names a host", async () => {
    for (const [index, seen] of (await answersOf(calls(good))).entries()) {
      assert.deepEqual(seen, { ours: "/x", envoys: "/x" }, good[index]!);
    }
  });

  test("both refuse what names none", async () => {
    for (const [index, seen] of (await answersOf(calls(bad))).entries()) {
      assert.deepEqual(seen, { ours: "400", envoys: "400" }, bad[index]!);
    }
  });

  test("this one refuses user information, zones and IPv4 in brackets, and takes underscores", async () => {
    for (const host of ["a@b", "a:b@c", "h:80@x", "[fe80::1%eth0]", "[1.2.3.4]"]) {
      assert.deepEqual(await answersOf(calls([host])), [{ ours: "400", envoys: "/x" }], host);
    }
    assert.deepEqual(await answersOf(calls(["a_b"])), [{ ours: "/x", envoys: "400" }]);
  });
});

describe("hosts in a field", () => {
  const calls = (hosts: readonly string[]): readonly ParityCall[] =>
    hosts.map((host) => ({ listener: "base", path: "/x", host }));

  test("both take what names a host", async () => {
    const hosts = ["h", "h:", "h:65535", "[::1]", "[::1]:80", "a_b", "a,b", "a*b", "a~b.c."];
    for (const [index, seen] of (await answersOf(calls(hosts))).entries()) {
      assert.deepEqual(seen, { ours: "/x", envoys: "/x" }, hosts[index]!);
    }
  });

  test("this one refuses what names none", async () => {
    const hosts = [
      ..."[::1 ::1 [::1]x [::1]] [[::1]] [] [v1.a] [g::1] [fe80::1%25e] h%2fx h%00 h% %61 a@b a:b@c h:80@x".split(" "),
      ..."h:65536 h:abc :80 h:80:80 h:-1 a[b] a]b".split(" "),
    ];
    for (const [index, seen] of (await answersOf(calls(hosts))).entries()) {
      assert.deepEqual(seen, { ours: "400", envoys: "/x" }, hosts[index]!);
    }
  });
});

describe("fields that Connection names", () => {
  const headers = { "x-y": "1", "x-forwarded-host": "a", "x-request-id": "r", te: "trailers" };
  const calls = (options: readonly string[]): readonly ParityCall[] =>
    options.map((connection) => ({
      listener: "base",
      path: "/x",
      headers: { ...headers, connection },
      http1Alone: "HTTP/2 has no fields of a connection",
    }));
  const refused = "400";

  test("both take these away", async () => {
    const options = [
      "x-y",
      "X-Y , close",
      "close, connection",
      "x-request-id",
      "a,b,c,d,e,f,g,h,i",
      ",,,,,,,,,,,,",
      "te",
      "via",
    ];
    const { ours, envoys } = await pair.run(calls(options));
    assert.deepEqual(
      ours.map(({ status, body }) => ({ status, body })),
      envoys.map(({ status, body }) => ({ status, body })),
    );
    assert.ok(ours.every(({ status }) => status === 200));
    assert.equal((ours[0]!.body as { headers: Record<string, unknown> }).headers["x-y"], undefined);
  });

  test("both refuse these", async () => {
    const options = [
      ..."x-forwarded-for X-Forwarded-Host x-forwarded-proto :path :authority : a,b,c,d,e,f,g,h,i,j".split(" "),
      "close, x-forwarded-for",
      "x-forwarded-for\t",
      Array.from({ length: 10 }, () => "close").join(","),
    ];
    for (const [index, seen] of (await answersOf(calls(options))).entries()) {
      assert.deepEqual(seen, { ours: refused, envoys: refused }, options[index]!);
    }
  });

  test("this one refuses all by which a request is judged", async () => {
    const options = [
      ..."x-forwarded-client-cert x-forwarded-port x-envoy-external-address X-Envoy-Internal forwarded".split(" "),
      ..."x-real-ip authorization cookie".split(" "),
    ];
    for (const [index, seen] of (await answersOf(calls(options))).entries()) {
      assert.deepEqual(seen, { ours: refused, envoys: "/x" }, options[index]!);
    }
  });
});
