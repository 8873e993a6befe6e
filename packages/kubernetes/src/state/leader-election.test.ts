// Who leads, over an API server that answers by a script.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { type AskedFor, type ScriptedAnswer, scriptedApiServer } from "../testing/scripted-api-server.ts";
import { LeaderElection } from "./leader-election.ts";

const status = (code: number, reason: string): ScriptedAnswer => ({
  status: code,
  lines: [{ kind: "Status", code, reason, message: reason }],
});

test("a lease that somebody removes is made anew, and its holder goes on", async (t) => {
  const identity = "tulled-1_a";
  const lease = (uid: string): ScriptedAnswer => ({
    lines: [{ metadata: { name: "tulle-leader", uid, resourceVersion: uid }, spec: { holderIdentity: identity } }],
  });
  // As the API server does: a PUT could make it, but for the id of the one that is gone.
  const write = (uid: string) => (asked: AskedFor) => (asked.method === "POST" ? lease(uid) : status(409, "Conflict"));
  const missing = status(404, "NotFound");
  const server = await scriptedApiServer(t, [missing, write("1"), missing, write("2"), lease("2")]);
  const clock = new ManualClock();
  const log = new Logging({ sink: () => undefined }).logger("kubernetes");
  const common = { client: server.client(), namespace: "tulle-system", name: "tulle-leader", clock, log };
  const election = new LeaderElection({ ...common, identity });
  t.after(() => election.close());
  const told: boolean[] = [];
  election.follow(() => told.push(election.isLeader));
  election.start();
  await waitFor(() => election.isLeader && clock.waiting.includes(2000), { what: "it to lead" });
  clock.pass(2000);
  await waitFor(() => server.asked.length === 4 && clock.waiting.includes(2000), { what: "another try" });
  assert.deepEqual(
    server.asked.map(({ method }) => method),
    ["GET", "POST", "GET", "POST"],
  );
  assert.deepEqual(told, [true]);
});
