// The life of a pod with real processes: who starts when, what makes it ready or not, and in which order it ends.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { startProcess, type StartedProcess } from "../../../../tests/tools/processes.ts";
import { claimBlock } from "../network/address-block.ts";
import { loopbackPod } from "../network/loopback-network.ts";
import { waitUntil } from "../process/wait-until.ts";
import { buildPod } from "../reconcile/pod-resource.ts";
import { LocalPod, type PodPhase, type PodSettings } from "./local-pod.ts";
import { localhostOf } from "./pod-entry.ts";
import type { ContainerPlan, PodPlan } from "./pod-plan.ts";

// Both programs write what they do into one file, so that its lines tell the order. The stand-in for `tulle agent`
// answers the health port once a file says that it may.
const stage = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
const [, , who, folder] = process.argv;
const tell = (what) => appendFileSync(folder + "/story", who + " " + what + "\\n");
const address = who === "proxy" ? process.env.INSTANCE_IP : process.env.HOST;
const port = who === "proxy" ? 15021 : Number(process.env.PORT);
const server = createServer((request, response) => {
  if (existsSync(folder + "/" + who + "-drops")) {
    tell(request.headers.prefer === undefined ? "answers" : "drops");
    if (request.headers.prefer !== undefined) return request.socket.destroy();
  }
  const well = existsSync(folder + "/" + who + "-well") && !(request.url === "/live" && existsSync(folder + "/dead"));
  response.writeHead(well ? 200 : 503).end(existsSync(folder + "/" + who + "-leaves") ? "the agent is stopping" : "");
});
server.listen(port, address, () => tell("listens"));
writeFileSync(folder + "/" + who + ".pid", String(process.pid));
// A proxy that gets SIGTERM would wait for clients which nobody has told.
process.on(who === "proxy" ? "SIGINT" : "SIGTERM", () => { tell("ends"); process.exit(0); });
`;

interface Stage {
  readonly pod: LocalPod;
  readonly phases: PodPhase[];
  /** Each that was told. */
  readonly failures: string[];
  story(): readonly string[];
  /** Lets `who` answer well from now on, or no more. */
  say(who: "proxy-well" | "proxy-leaves" | "proxy-drops" | "app-well" | "dead", isSo?: boolean): void;
  until(what: string, condition: () => boolean): Promise<void>;
  /** Ends the app by its own process id, where it has left the supervisor's reach. */
  endDaemon(): void;
  withdrawals: number;
  /** ConfigMaps and Secrets, as `<kind> <name>`. */
  readonly texts: Map<string, ReadonlyMap<string, string>>;
}

async function setStage(
  t: TestContext,
  changes: Partial<ContainerPlan> = {},
  plan: Partial<PodPlan> = {},
  argv = (stageFolder: string, stageProgram: string): readonly string[] => ["node", stageProgram, "app", stageFolder],
  more: Pick<PodSettings, "tellFailureAfterMs"> = {},
): Promise<Stage> {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-pod-"));
  const program = path.join(folder, "stage.mjs");
  writeFileSync(program, stage);
  writeFileSync(path.join(folder, "story"), "");
  const block = await claimBlock(folder);
  const container: ContainerPlan = {
    name: "app",
    argv: argv(folder, program),
    user: { uid: undefined, gid: undefined },
    variables: [],
    ports: [{ name: "http", port: 3000 }],
    readinessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 1, failureThreshold: 1 },
    livenessProbe: undefined,
    startupProbe: undefined,
    ...changes,
  };
  const whole: PodPlan = {
    namespace: "shop",
    deployment: "app",
    templateHash: "hash",
    labels: {},
    annotations: {},
    spec: { containers: [{ name: "app", ports: [{ containerPort: 3000, protocol: "TCP" }] }] },
    serviceAccount: "default",
    injection: "sidecar",
    proxy: "tulle",
    proxyConfig: { problems: [] },
    proxyMemoryBytes: undefined,
    mergedMetrics: undefined,
    proxyMetadata: {},
    containers: [container],
    folder: undefined,
    terminationGraceMs: 5000,
    problems: [],
    remarks: [],
    ...plan,
  };
  const phases: PodPhase[] = [];
  const failures: string[] = [];
  const settings = {
    tulleCommand: ["node", program, "proxy", folder],
    env: process.env,
    nodePath: process.execPath,
    tulleCompileCache: path.join(folder, "cache"),
    appCompileCache: path.join(folder, "cache"),
    xdsAddress: "127.0.0.1:1",
    addressRange: "127.16.4.0/22",
    rootsFile: "/nowhere/root-cert.pem",
    tokens: { begin: () => Promise.resolve(), end: () => Promise.resolve() },
    clusterId: "local",
    podStateFolder: () => path.join(folder, "state"),
    publishedPorts: [],
    commandFolder: folder,
    logsFolder: path.join(folder, "logs"),
    restart: "always",
    textsOf: (kind: string, _namespace: string, name: string) => texts.get(`${kind} ${name}`),
    ...more,
  } as const;
  const texts: Stage["texts"] = new Map();
  const result = { withdrawals: 0, texts };
  const pod = new LocalPod(
    "app-hash-1",
    whole,
    loopbackPod({ pod: block.allocate(), app: block.allocate() }),
    settings,
    {
      onChange: ({ phase, failure }) => {
        if (phases.at(-1) !== phase) phases.push(phase);
        if (failure !== undefined && failures.at(-1) !== failure) failures.push(failure);
      },
      onUnexpectedEnd: () => undefined,
      withdrawn: () => {
        result.withdrawals += 1;
        return Promise.resolve();
      },
    },
  );
  t.after(async () => {
    pod.destroy();
    await pod.leave({ drain: false });
    block.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return Object.assign(result, {
    pod,
    phases,
    failures,
    story: () => readFileSync(path.join(folder, "story"), "utf8").trim().split("\n"),
    say: (who: string, isSo = true) => {
      if (isSo) writeFileSync(path.join(folder, who), "");
      else rmSync(path.join(folder, who), { force: true });
    },
    endDaemon: () => {
      try {
        process.kill(Number(readFileSync(path.join(folder, "app.pid"), "utf8")), "SIGKILL");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    },
    until: (what: string, condition: () => boolean) => waitUntil(condition, { timeoutMs: 60_000, what: () => what }),
  });
}

test("the app is held until its proxy is ready, and the proxy leaves after it", async (t) => {
  const on = await setStage(t);
  on.pod.start();
  await on.until("the proxy to listen", () => on.story().includes("proxy listens"));
  assert.equal(on.pod.phase, "starting-proxy");
  assert.deepEqual(on.story(), ["proxy listens"]);
  on.say("proxy-well");
  await on.until("the app to listen", () => on.story().includes("app listens"));
  assert.equal(on.pod.phase, "starting-app");
  assert.equal(on.pod.ready, false);
  on.say("app-well");
  await on.until("the pod to be ready", () => on.pod.ready);
  await on.pod.leave({ drain: true });
  assert.deepEqual(on.story(), ["proxy listens", "app listens", "app ends", "proxy ends"]);
  assert.deepEqual(on.phases, ["starting-app", "running", "draining", "stopping-app", "stopping-proxy", "gone"]);
  assert.equal(on.withdrawals, 1);
});

test("a readiness probe that fails takes the pod out, and one that is well again puts it back", async (t) => {
  const on = await setStage(t, {}, { injection: "none" });
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("app-well", false);
  await on.until("the pod to be not ready", () => !on.pod.ready);
  assert.equal(on.pod.phase, "running");
  assert.equal(
    on.pod.failure,
    "Readiness probe of container app failed: HTTP probe failed with statuscode: 503",
    "told as a kubelet does",
  );
  on.say("app-well");
  await on.until("the pod to be ready again", () => on.pod.ready);
  assert.equal(on.pod.failure, undefined);
  assert.equal(on.pod.restarts, 0);
});

test("a first probe that fails is no failure yet", async (t) => {
  const on = await setStage(t);
  on.pod.start();
  // Both are asked from their start on, before they listen.
  for (const who of ["proxy", "app"] as const) {
    await on.until(`the ${who} to listen`, () => on.story().includes(`${who} listens`));
    on.say(`${who}-well`);
  }
  await on.until("the pod to be ready", () => on.pod.ready);
  assert.deepEqual(on.failures, []);
});

test("a program that never answers well is told after a while, with what it says", async (t) => {
  const on = await setStage(t, {}, { injection: "none" }, undefined, { tellFailureAfterMs: 100 });
  on.pod.start();
  // Before it listens there is another reason.
  await on.until("its answer", () => on.pod.failure?.includes("statuscode") === true);
  assert.equal(on.pod.failure, "Readiness probe of container app failed: HTTP probe failed with statuscode: 503");
  assert.equal(on.pod.phase, "starting-app");
});

test("a liveness probe that fails has the program started again", async (t) => {
  const livenessProbe = { httpGet: { path: "/live", port: 3000 }, periodSeconds: 1, failureThreshold: 1 };
  const on = await setStage(t, { livenessProbe }, { injection: "none" });
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("dead");
  await on.until("a restart", () => on.pod.restarts > 0);
  on.say("dead", false);
  await on.until("the pod to be ready again", () => on.pod.ready);
});

test("other probes begin when the startup probe has succeeded", async (t) => {
  const startupProbe = { httpGet: { path: "/", port: "http" }, periodSeconds: 1, failureThreshold: 1000 };
  const livenessProbe = { httpGet: { path: "/live", port: "http" }, periodSeconds: 1, failureThreshold: 1 };
  const on = await setStage(t, { startupProbe, livenessProbe }, { injection: "none" });
  on.pod.start();
  await on.until("the app to listen", () => on.story().includes("app listens"));
  on.say("app-well");
  await on.until("the pod to be ready", () => on.pod.ready);
  assert.equal(on.pod.restarts, 0);
});

test("without a readiness probe the pod is ready when its port accepts connections", async (t) => {
  const on = await setStage(t, { readinessProbe: undefined }, { injection: "none" });
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  assert.deepEqual(on.story(), ["app listens"]);
});

test("a pod that cannot run starts nothing and leaves at once", async (t) => {
  const on = await setStage(t, {}, { problems: [{ message: "no command", suggestion: "add one" }] });
  on.pod.start();
  assert.equal(on.pod.phase, "blocked");
  await on.pod.leave({ drain: true });
  assert.deepEqual(on.phases, ["gone"]);
  assert.equal(on.withdrawals, 0);
});

const gone = path.join(tmpdir(), "tulle-no-such-folder");
const entries = [
  { name: "no name", container: undefined, expected: /^app$/ },
  { name: "the container's", container: "app", expected: /^app$/ },
  { name: "the proxy's", container: "istio-proxy", expected: /^proxy$/ },
  { name: "the proxy's, in short", container: "proxy", expected: /^proxy$/ },
  { name: "nobody's", container: "db", expected: /^app-hash-1 has no container "db" It has: app, istio-proxy$/ },
  {
    name: "one of a pod that cannot run",
    container: undefined,
    plan: { problems: [{ message: "no command", suggestion: "add one" }] },
    expected: /^app-hash-1 cannot run here: no command add one$/,
  },
  {
    name: "one of a pod whose folder is gone",
    container: undefined,
    plan: { folder: gone },
    expected: /^the folder of app in app-hash-1 is not there: .*tulle-no-such-folder $/,
  },
  {
    name: "one whose variables are not there",
    container: undefined,
    changes: { variables: [{ prefix: "", from: { kind: "ConfigMap", name: "none", optional: false } }] } as const,
    expected:
      /^the environment of app in app-hash-1 is not there: there is no ConfigMap shop\/none, which envFrom needs $/,
  },
];
for (const { name, container, changes, plan, expected } of entries) {
  test(`a pod is entered by a container's name: ${name}`, async (t) => {
    const { pod } = await setStage(t, changes, plan);
    const answer = pod.entry(container);
    if (!("entry" in answer)) return assert.match(`${answer.problem} ${answer.hint ?? ""}`, expected);
    const { env } = answer.entry;
    assert.match(env["HOST"] === pod.addresses.app ? "app" : env["INSTANCE_IP"] ? "proxy" : "", expected);
    assert.equal(env["POD_NAME"], pod.name);
  });
}

const localhosts = [
  { name: "beside a sidecar", plan: {}, expected: { 3000: "app", 15000: "pod", 15020: "pod", 15021: "pod" } },
  { name: "without a proxy", plan: { injection: "none" }, expected: { 3000: "app" } },
  {
    name: "of a gateway, whose port is published",
    plan: {
      injection: "gateway",
      containers: [],
      spec: {
        containers: [
          {
            name: "istio-proxy",
            ports: [
              { containerPort: 8080, protocol: "TCP" },
              { containerPort: 8443, protocol: "TCP" },
            ],
          },
        ],
      },
    },
    published: [
      { hostPort: 8080, targetPort: 8080 },
      { hostPort: 8444, targetPort: 8443 },
    ],
    expected: { 8443: "pod", 15000: "pod", 15020: "pod", 15021: "pod" },
  },
] as const;
for (const { name, plan, expected, ...more } of localhosts) {
  test(`localhost ${name}`, async (t) => {
    const { pod } = await setStage(t, {}, plan);
    const found = localhostOf(pod, "published" in more ? more.published : []).map(({ port, address }) => [
      port,
      address === pod.addresses.app ? "app" : address === pod.addresses.pod ? "pod" : address,
    ]);
    assert.deepEqual(Object.fromEntries(found), expected);
  });
}

test("a pod that is told to leave while it starts ends what it has started", async (t) => {
  const on = await setStage(t);
  on.pod.start();
  await on.until("the proxy to listen", () => on.story().includes("proxy listens"));
  on.say("proxy-well");
  await Promise.all([on.pod.leave({ drain: true }), on.pod.leave({ drain: true })]);
  assert.ok(!on.story().includes("app listens"));
  assert.equal(on.story().at(-1), "proxy ends");
  assert.equal(on.withdrawals, 0);
});

test("a proxy that is started again takes the pod out, and the program goes on", async (t) => {
  const on = await setStage(t);
  on.say("proxy-well");
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("proxy-well", false);
  const restarted = on.pod.restartProxy();
  assert.equal(on.pod.restartsProxy, true);
  assert.equal(on.pod.restartProxy(), restarted, "one at a time");
  await restarted;
  assert.equal(on.withdrawals, 1);
  assert.equal(on.pod.ready, false);
  await on.until("the next proxy", () => on.story().filter((line) => line === "proxy listens").length === 2);
  assert.equal(on.pod.ready, false);
  on.say("proxy-well");
  await on.until("the pod to be ready again", () => on.pod.ready);
  assert.deepEqual(on.story(), ["proxy listens", "app listens", "proxy ends", "proxy listens"]);
  assert.equal(on.pod.restarts, 1);
  assert.equal(on.pod.phase, "running");
});

test("a pod without a proxy has none to start again", async (t) => {
  const on = await setStage(t, {}, { injection: "none" });
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  await on.pod.restartProxy();
  assert.equal(on.withdrawals, 0);
  assert.equal(on.pod.ready, true);
});

test("a proxy that says that it leaves takes the pod out at its first word", async (t) => {
  const on = await setStage(t);
  on.say("proxy-well");
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("proxy-leaves");
  on.say("proxy-well", false);
  await on.until("the pod to be not ready", () => !on.pod.ready);
  assert.equal(on.pod.restarts, 0);
});

test("who takes the place of all that wait for a proxy's word takes no pod out", async (t) => {
  const on = await setStage(t);
  on.say("proxy-well");
  on.say("app-well");
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("proxy-drops");
  const asked = (): readonly string[] => on.story().filter((line) => /^proxy (?:drops|answers)$/.test(line));
  await on.until("three questions", () => asked().length >= 3);
  assert.deepEqual(asked().slice(0, 3), ["proxy drops", "proxy answers", "proxy drops"]);
  assert.equal(on.pod.ready, true);
});

interface Squatter {
  readonly name: string;
  readonly uid: number;
  readonly env: Readonly<Record<string, string>>;
  readonly message: RegExp;
}

const own = process.getuid!();
const squatters: readonly Squatter[] = [
  {
    name: "another pod's program",
    uid: own,
    env: { POD_NAME: "other-hash-1" },
    message:
      /^Readiness probe of container app failed: 127\.\S+:3000 is held by process \d+ \(.*\), which is not of this pod; end it$/,
  },
  {
    name: "a program of another user",
    uid: 65_534,
    // It may say of itself what it likes.
    env: { POD_NAME: "app-hash-1" },
    message: /:3000 is held by user nobody \(uid 65534\), process \d+ \(/,
  },
];

/** Answers everything well at the address, and says that it was asked. */
function squat({ uid, env }: Squatter, address: string, port = 3000): Promise<StartedProcess> {
  const script = `
    process.setgroups?.([]); process.setuid(${uid});
    require("node:http").createServer((request, response) => { console.log("asked"); response.end(); })
      .listen(${port}, ${JSON.stringify(address)}, () => console.log("listens"));`;
  return startProcess(process.execPath, ["-e", script], { env, group: true });
}

/** As soon as nobody else listens there. */
async function squatWhenFree(squatter: Squatter, address: string): Promise<StartedProcess> {
  for (;;) {
    const holder = await squat(squatter, address);
    const [outcome] = await Promise.race([
      holder.waitForOutput(/^listens$/m),
      holder.exited.then(() => ["taken"] as const),
    ]);
    if (outcome === "listens") return holder;
  }
}

// Only root can start a program as another user.
for (const squatter of squatters.filter(({ uid }) => own === 0 || uid === own)) {
  for (const readinessProbe of [undefined, { httpGet: { path: "/", port: "http" }, periodSeconds: 1 }]) {
    const how = readinessProbe === undefined ? "no" : "a";
    test(`${squatter.name} at the app's address makes no pod ready with ${how} probe, is not asked, and is told of`, async (t) => {
      const on = await setStage(t, { readinessProbe }, { injection: "none" });
      await using holder = await squat(squatter, on.pod.addresses.app);
      await holder.waitForOutput(/^listens$/m);
      on.say("app-well");
      on.pod.start();
      await on.until("a restart, since the address is taken", () => on.pod.restarts > 2);
      await on.until("the reason", () => on.pod.failure !== undefined);
      assert.match(on.pod.failure!, squatter.message);
      assert.equal(on.pod.ready, false);
      assert.doesNotMatch(holder.output(), /asked/);
      await holder.stop();
      await on.until("the pod to be ready", () => on.pod.ready);
      assert.equal(on.pod.failure, undefined);
    });
  }
}

test("another program at an address of the pod's proxy holds the app back, and is told of", async (t) => {
  const on = await setStage(t);
  const [squatter] = squatters;
  await using holder = await squat(squatter!, on.pod.addresses.pod, 15_021);
  await holder.waitForOutput(/^listens$/m);
  on.say("proxy-well");
  on.say("app-well");
  on.pod.start();
  await on.until("the reason", () => on.pod.failure !== undefined);
  assert.match(on.pod.failure!, /^Readiness probe of container istio-proxy failed: 127\.\S+:15021 is held by process /);
  assert.equal(on.pod.phase, "starting-proxy");
  assert.doesNotMatch(holder.output(), /asked/);
  await holder.stop();
  await on.until("the pod to be ready", () => on.pod.ready);
});

test("an address that is lost while the program goes on takes the pod out at once, whatever the probe's threshold", async (t) => {
  const readinessProbe = { httpGet: { path: "/", port: "http" }, periodSeconds: 1, failureThreshold: 1000 };
  const script = `
    const http = require("node:http"), fs = require("node:fs"), folder = process.argv[1];
    const server = http.createServer((_request, response) => response.end()).listen(3000, process.env.HOST);
    const timer = setInterval(() => fs.existsSync(folder + "/dead") && (clearInterval(timer), server.close()), 10);
    setInterval(() => {}, 1000);`;
  const argv = (folder: string): readonly string[] => ["node", "-e", script, folder];
  const on = await setStage(t, { readinessProbe }, { injection: "none" }, argv);
  on.pod.start();
  await on.until("the pod to be ready", () => on.pod.ready);
  on.say("dead");
  const [squatter] = squatters;
  await using holder = await squatWhenFree(squatter!, on.pod.addresses.app);
  await on.until("the pod to be not ready", () => !on.pod.ready);
  assert.doesNotMatch(holder.output(), /asked/);
});

const families: readonly { readonly name: string; readonly argv: (command: string) => readonly string[] }[] = [
  { name: "a child of the program", argv: (command) => ["sh", "-c", `${command} & wait`] },
  {
    name: "a grandchild in a process group of its own",
    argv: (command) => ["sh", "-c", `sh -c 'set -m; ${command} & wait' & wait`],
  },
  {
    name: "a daemon that has left the program's session",
    argv: (command) => ["sh", "-c", `setsid -f ${command}; exec sleep 600`],
  },
];
for (const { name, argv } of families) {
  test(`${name} counts as the pod's own`, async (t) => {
    const on = await setStage(t, {}, { injection: "none" }, (folder, program) => argv(`node ${program} app ${folder}`));
    on.say("app-well");
    on.pod.start();
    try {
      await on.until("the pod to be ready", () => on.pod.ready);
    } finally {
      on.endDaemon();
    }
  });
}

test("a program that listens on a port of its own is told which, and what to do", async (t) => {
  const variables = [{ name: "PORT", value: "3001" }];
  const on = await setStage(t, { variables }, { injection: "none" }, undefined, { tellFailureAfterMs: 500 });
  on.pod.start();
  await on.until("where it listens", () => on.pod.failure?.includes("the program listens") === true);
  const { app } = on.pod.addresses;
  const expected = `; the program listens at ${app}:3001, and is expected at ${app}:3000 (containerPort): let it listen where its variables HOST and PORT say`;
  assert.ok(on.pod.failure?.endsWith(expected) === true, String(on.pod.failure));
});

test("a program that ends again and again is told to wait for its next start", async (t) => {
  const argv = (): readonly string[] => ["node", "-e", "console.error('no database'); process.exit(4)"];
  const on = await setStage(t, {}, { injection: "none" }, argv);
  on.pod.start();
  const waiting = () => on.pod.programs[0]!.state.waiting;
  await on.until("the pause before a start", () => waiting()?.reason === "CrashLoopBackOff");
  assert.match(waiting()!.message ?? "", /exit status 4.*no database/);
  const { spec: _spec, status } = buildPod(on.pod);
  assert.equal(status?.containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
});

test("a pod whose ConfigMap is not there says so, runs once it is, and takes a changed one at its next start alone", async (t) => {
  const from = { kind: "ConfigMap", name: "settings", optional: false } as const;
  const script =
    "const fs = require('node:fs'); fs.appendFileSync(process.argv[1] + '/story', 'level ' + process.env.LEVEL + '\\n'); setInterval(() => {}, 1000)";
  const on = await setStage(
    t,
    { variables: [{ name: "LEVEL", from, key: "level" }], ports: [], readinessProbe: undefined },
    { injection: "none" },
    (folder) => ["node", "-e", script, folder],
  );
  on.pod.start();
  const message = "there is no ConfigMap shop/settings, which the variable LEVEL needs";
  const [status] = buildPod(on.pod).status?.containerStatuses ?? [];
  assert.deepEqual(status?.state, { waiting: { reason: "CreateContainerConfigError", message } });
  assert.match(on.pod.failure ?? "", /container app is not started: there is no ConfigMap shop\/settings/);
  assert.deepEqual([on.pod.ready, on.pod.phase], [false, "starting-app"]);

  on.texts.set("ConfigMap settings", new Map([["level", "debug"]]));
  on.pod.tryAgain();
  await on.until("the program to be ready", () => on.pod.ready);
  await on.until("it to tell its level", () => on.story().includes("level debug"));
  assert.deepEqual([on.pod.missing, on.pod.failure], [undefined, undefined]);

  on.texts.set("ConfigMap settings", new Map([["level", "info"]]));
  on.pod.tryAgain();
  assert.equal(on.pod.restarts, 0);
  process.kill(on.pod.programs[0]!.pid!, "SIGKILL");
  await on.until("its next start", () => on.story().includes("level info"));
});
