// /etc/hosts as hosts(5) has it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readHosts } from "./hosts-file.ts";

test("names of /etc/hosts have the addresses of all their lines", () => {
  const hosts = readHosts(
    `127.0.0.1\tlocalhost
::1 localhost ip6-localhost # the same
10.0.0.7 Db.Example. db   # two names
10.0.0.8 db
10.0.0.7 db
not-an-address other
10.0.0.9
`,
  );
  assert.deepEqual(Object.fromEntries(hosts), {
    localhost: ["127.0.0.1", "::1"],
    "ip6-localhost": ["::1"],
    "db.example": ["10.0.0.7"],
    db: ["10.0.0.7", "10.0.0.8"],
  });
});
