// Captured connections that are no requests, through two sidecars of either kind: servers that speak first, ends in one
// direction, resets, clients that say nothing, both families, and ten thousand connections one after another.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type CapturedPod, CapturedMesh } from "../tools/captured-mesh.ts";
import { debianTool } from "../tools/debian-tool.ts";
import type { ProxyKind } from "../tools/meshed-proxies.ts";
import { type StartedProcess, waitFor } from "../tools/processes.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
/** By the server's kind: what its Service has. */
const addresses = { tulle: ["10.96.0.11", "fd96::11"], envoy: ["10.96.0.12", "fd96::12"] } as const;
const greeting = "220 mail.test ESMTP";
/** Names of ports say TCP but for the odd ones, whose first bytes are looked at. */
const ports = { mail: 2525, anyMail: 2526, lastWord: 7000, anyLastWord: 7001, firstEnd: 7002, echo: 7003 } as const;

const server = `
  const { createServer } = require("node:net");
  const listen = (port, serve) =>
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", ({ code }) => console.log(port + " " + code));
      socket.on("close", () => console.log(port + " closed"));
      serve(socket);
    }).listen(port, "::", () => console.log("listens"));
  for (const port of [2525, 2526]) listen(port, (socket) => { socket.write("${greeting}\\r\\n"); socket.on("end", () => socket.end()); socket.resume(); });
  const all = (socket, then) => { let text = ""; socket.on("data", (chunk) => (text += chunk)); socket.on("end", () => then(text)); };
  for (const port of [7000, 7001]) listen(port, (socket) => all(socket, (text) => socket.end("answer to " + text)));
  listen(7002, (socket) => { socket.end("bye"); all(socket, (text) => console.log("then " + text)); });
  listen(7003, (socket) => {
    socket.on("data", (chunk) => (String(chunk) === "reset me" ? socket.resetAndDestroy() : socket.write(chunk)));
    socket.on("end", () => socket.end());
  });`;

const client = `
  const [mode, host, port, count = "1"] = process.argv.slice(1);
  const dial = () => require("node:net").connect({ host, port: Number(port), allowHalfOpen: true });
  const talk = (begin, onData = () => {}) => new Promise((resolve) => {
    const socket = dial();
    let text = "";
    socket.on("data", (chunk) => onData(socket, (text += chunk)));
    socket.on("error", ({ code }) => (text += " " + code));
    socket.on("close", () => resolve(text));
    begin(socket);
  });
  const modes = {
    listen: () => talk(() => {}, (socket) => socket.end()),
    lastWord: () => talk((socket) => { socket.end("question"); }),
    firstEnd: () => talk((socket) => socket.on("end", () => setTimeout(() => socket.end("late words"), 50))),
    ping: () => talk((socket) => socket.write("ping"), (socket) => socket.end()),
    reset: () => talk((socket) => socket.write("ping"), (socket) => socket.resetAndDestroy()),
    resetMe: () => talk((socket) => socket.write("reset me")),
    async many() {
      let left = Number(count), good = 0;
      const worker = async () => { while (left-- > 0) if ((await modes.ping()) === "ping") good += 1; };
      await Promise.all(Array.from({ length: 32 }, worker));
      return String(good);
    },
  };
  modes[mode]().then((text) => process.stdout.write(text));`;

interface Serving {
  readonly pod: CapturedPod;
  readonly program: StartedProcess;
  readonly proxy: StartedProcess;
}

describe("captured connections that are no requests", () => {
  const open = new AsyncDisposableStack();
  const clients = new Map<ProxyKind, { readonly pod: CapturedPod; readonly proxy: StartedProcess }>();
  const servers = new Map<ProxyKind, Serving>();

  before(
    async () => {
      await debianTool("curl");
      const mesh = open.use(await CapturedMesh.open(manifests()));
      for (const [index, kind] of kinds.entries()) {
        const pod = await mesh.addPod(`server-${kind}`, [`10.88.2.${index + 1}`, `fd88::2${index}`]);
        const program = await mesh.start(pod, [process.execPath, "-e", server], `server-${kind}`);
        await program.waitForOutput(/^(listens\n){6}$/m);
        servers.set(kind, { pod, program, proxy: await mesh.startProxy(pod, kind) });
        const caller = await mesh.addPod(`client-${kind}`, [`10.88.1.${index + 1}`, `fd88::1${index}`]);
        clients.set(kind, { pod: caller, proxy: await mesh.startProxy(caller, kind) });
      }
      await mesh.settled();
    },
    { timeout: 240_000 },
  );
  after(() => open.disposeAsync());

  for (const from of kinds) {
    for (const to of kinds) {
      const ask = async (mode: string, port: number, count = 1, family: 0 | 1 = 0): Promise<string> => {
        const { network } = clients.get(from)!.pod;
        const args = [mode, addresses[to][family], String(port), String(count)];
        return (await network.run(process.execPath, "-e", client, ...args)).stdout;
      };
      /** What the server's program says next. */
      const saying = async (pattern: RegExp, act: () => Promise<string>): Promise<string> => {
        const { program } = servers.get(to)!;
        const begin = program.output().length;
        const answer = await act();
        await waitFor(() => pattern.test(program.output().slice(begin)), {
          what: `${String(pattern)} from the server`,
          details: () => program.output().slice(begin),
        });
        return answer;
      };

      describe(`${from} to ${to}`, () => {
        for (const family of [0, 1] as const) {
          test(`a server that speaks first is heard, over IPv${family === 0 ? 4 : 6}`, async () => {
            for (const port of [ports.mail, ports.anyMail])
              assert.equal(await ask("listen", port, 1, family), `${greeting}\r\n`, String(port));
          });
        }

        test("who has said all hears the answer all the same", async () => {
          assert.equal(await ask("lastWord", ports.lastWord), "answer to question");
          // While its first bytes are looked at, the end of what it says ends the connection: Envoy's behaviour.
          assert.match(await ask("lastWord", ports.anyLastWord), /^( ECONNRESET)?$/);
        });

        test("a server that has said all hears the rest", async () => {
          assert.equal(await saying(/then late words/, () => ask("firstEnd", ports.firstEnd)), "bye");
        });

        test("a client's reset ends the server's connection", async () => {
          await saying(/7003 closed/, () => ask("reset", ports.echo));
        });

        test("and a server's the client's", async () => {
          assert.match(await ask("resetMe", ports.echo), /^( ECONNRESET)?$/);
        });

        // The most of them where both are Tulle's; a command's time is bounded.
        const rounds = from === "tulle" && to === "tulle" ? 10 : 2;
        test(`${rounds} thousand connections leave nothing behind`, { timeout: 400_000 }, async () => {
          const both = [clients.get(from)!.proxy, servers.get(to)!.proxy];
          const used = (): number[] => both.map(({ pid }) => readdirSync(`/proc/${pid}/fd`).length);
          assert.equal(await ask("many", ports.echo, 200), "200");
          const earlier = used();
          for (let round = 0; round < rounds; round += 1)
            assert.equal(await ask("many", ports.echo, 1000), "1000", `round ${round}`);
          // A few are there for what is measured beside them.
          await waitFor(() => used().every((count, index) => count <= earlier[index]! + 8), {
            what: "descriptors that are given back",
            details: () => `${earlier.join()} before, ${used().join()} now`,
          });
        });
      });
    }
  }
});

function manifests(): string {
  const named = Object.entries(ports).map(([name, port]) => ({
    name: name.startsWith("any") ? name.toLowerCase() : `tcp-${name.toLowerCase()}`,
    port,
  }));
  const resources = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "istio", namespace: "istio-system" },
      data: { mesh: JSON.stringify({ protocolDetectionTimeout: "1s" }) },
    },
    ...kinds.flatMap((kind, index) => {
      const name = `server-${kind}`;
      const slice = (family: 0 | 1) => ({
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { name: `${name}-${family}`, namespace: "shop", labels: { "kubernetes.io/service-name": name } },
        addressType: family === 0 ? "IPv4" : "IPv6",
        ports: named,
        endpoints: [
          {
            addresses: [family === 0 ? `10.88.2.${index + 1}` : `fd88::2${index}`],
            targetRef: { kind: "Pod", name, namespace: "shop" },
          },
        ],
      });
      return [
        {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name, namespace: "shop" },
          spec: {
            clusterIP: addresses[kind][0],
            clusterIPs: addresses[kind],
            ipFamilies: ["IPv4", "IPv6"],
            ipFamilyPolicy: "PreferDualStack",
            selector: { app: name },
            ports: named,
          },
        },
        {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name, namespace: "shop", labels: { app: name, "security.istio.io/tlsMode": "istio" } },
          spec: { serviceAccountName: name, containers: [{ name: "app" }] },
        },
        slice(0),
        slice(1),
      ];
    }),
    {
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: "shop" },
      spec: { mtls: { mode: "STRICT" } },
    },
  ];
  return resources.map((each) => JSON.stringify(each)).join("\n---\n");
}
