// Calls that are about HTTP/2 itself: what its messages say in a way of their own, and streams that share a connection.
import { type Call, http2Alone, http2Request, type Role, roles, type Row, rows } from "./call.ts";

const path = "/v1";
/** With what every request here has, and `connection: close` has in HTTP/1.1. */
const mostFields = Object.fromEntries(Array.from({ length: 95 }, (_, index) => [`x-${index}`, String(index)]));
const long = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`x-${index}`, "a".repeat(10 * 1024)]));

type Message = readonly [Row[0], Row[1], Row[2], Row[3]];
const messages: readonly Message[] = [
  [
    "a cookie in pieces is one",
    path,
    { headers: { cookie: ["a=1", "b=2", "c=3; d=4"] } },
    { status: 200, received: { cookie: "a=1; b=2; c=3; d=4" } },
  ],
  ["other fields stay apart", path, { headers: { "x-many": ["1", "2"] } }, { status: 200 }],
  ["TE: trailers", path, { headers: { te: "trailers" } }, { status: 200 }],
  ["the body's length", path, { method: "POST", body: "abc" }, { status: 200, received: { "content-length": "3" } }],
  [
    "a body without its length",
    path,
    { method: "POST", body: ["a", "bc"] },
    { status: 200, received: { "content-length": null, "transfer-encoding": "chunked" } },
  ],
  ["a POST without a body", path, { method: "POST" }, { status: 200 }],
  ["a GET with a body", path, { body: ["abc"] }, { status: 200, bodyIncludes: '"body":"abc"' }],
  // Node's server refuses it.
  ["an unknown method passes", path, { method: "BREW" }, { status: 400 }],
  ["a method in small letters passes", path, { method: "get" }, { status: 400 }],
  ["a name with an underscore", path, { headers: { x_a: "1" } }, { status: 200 }],
  [
    "expect: 100-continue",
    path,
    { method: "POST", headers: { expect: "100-continue" }, body: "late" },
    { status: 200, interim: [100] },
  ],
  ["100 headers", path, { headers: mostFields }, { status: 200 }],
  ["a head of 50 KiB", path, { headers: long }, { status: 200 }],
  ["a path with a fragment", `${path}#a`, {}, { status: 400, details: "path_normalization_failed" }],
  ["a query that begins a path", "/?a=b", {}, { status: 200, receivedPath: "/?a=b" }],
];

function streams(role: Role): Call[] {
  const requestOf = (rest: string, method = "GET") => http2Request(role, `${path}${rest}`, { method });
  const row = { role, version: "HTTP/2" } as const;
  return [
    {
      ...row,
      name: `${role}: one stream after the other`,
      requests: [requestOf("/1"), requestOf("/2", "HEAD"), requestOf("/3")],
      expected: { status: 200, earlierStatuses: [200, 200], receivedPath: `${path}/3` },
    },
    {
      ...row,
      name: `${role}: a stream that fails leaves the others alone`,
      requests: [requestOf("~reset", "POST"), requestOf("~truncate"), requestOf("/3")],
      expected: { status: 200, earlierStatuses: [503, 200], receivedPath: `${path}/3` },
    },
  ];
}

export const http2Calls: readonly Call[] = roles.flatMap((role) => [
  ...rows(
    role,
    messages.map((message): Row => [...message, http2Alone]),
  ),
  ...streams(role),
]);
