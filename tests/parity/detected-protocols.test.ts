// Ports whose protocol nobody has named: the first bytes tell, in every mix of the two proxies, over mutual TLS and
// without. What is HTTP is routed and judged as requests; what is not is passed on as it is.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { after, before, describe, test } from "node:test";
import tls from "node:tls";
import { MeshedProxies, type ProxyKind, type RunningPod } from "../tools/meshed-proxies.ts";
import { debianTool } from "../tools/debian-tool.ts";
import { inTime, waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { callerOf, callMeshed, type MeshedOutcome } from "./meshed-call.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;
const http1Port = 3000;
const http2Port = 3001;
/** The server greets, and the client waits for it. */
const mailPort = 3002;
const echoPort = 3003;
const strictPort = 3004;
const plainMailPort = 3005;
const plainHttp2Port = 3006;
/** A policy lets a path through. */
const ruledPort = 3007;
const ports = [http1Port, http2Port, mailPort, echoPort, strictPort, plainMailPort, plainHttp2Port, ruledPort];
const greeting = "220 mail.test ESMTP\r\n";

const resource = (kind: string, name: string, spec: object): string =>
  JSON.stringify({ apiVersion: "security.tulle.io/v1", kind, metadata: { name, namespace: "shop" }, spec });

const manifests = [
  JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "tulle", namespace: "tulle-system" },
    data: { mesh: "protocolDetectionTimeout: 1s" },
  }),
  ...kinds.flatMap((kind) => {
    const selector = { matchLabels: { app: `server-${kind}` } };
    return [
      resource("PeerAuthentication", `server-${kind}`, {
        selector,
        portLevelMtls: {
          [strictPort]: { mode: "STRICT" },
          [plainMailPort]: { mode: "DISABLE" },
          [plainHttp2Port]: { mode: "DISABLE" },
        },
      }),
      resource("AuthorizationPolicy", `server-${kind}`, {
        selector,
        rules: [
          { to: [{ operation: { ports: [String(ruledPort)], paths: ["/allowed"] } }] },
          { to: [{ operation: { notPorts: [String(ruledPort)] } }] },
        ],
      }),
    ];
  }),
];

async function startApplications({ name, appAddress }: RunningPod): Promise<AsyncDisposable> {
  const echo = (version: string, path = "", headers: object = {}): string =>
    JSON.stringify({ app: name, version, path, headers });
  const http1 = (): net.Server =>
    createServer(({ httpVersion, url, headers }, response) => {
      response.setHeader("content-type", "application/json");
      response.end(echo(httpVersion, url, headers));
    });
  const overHttp2 = (): net.Server =>
    http2.createServer(({ httpVersion, url, headers }, response) => void response.end(echo(httpVersion, url, headers)));
  // Answers each line of an SMTP client so that it goes on to its end.
  const mail = (): net.Server =>
    net.createServer((socket) => {
      socket.on("error", () => {}).write(greeting);
      socket.on("data", (line) => {
        const word = line.toString("latin1").slice(0, 4).toUpperCase();
        socket.write(word === "QUIT" ? "221 bye\r\n" : word === "DATA" ? "354 go on\r\n" : "250 done\r\n");
        if (word === "QUIT") socket.end();
      });
    });
  const bytes = (): net.Server => net.createServer((socket) => void socket.on("error", () => {}).pipe(socket));
  const servers = new Map([
    [http1Port, http1()],
    [http2Port, overHttp2()],
    [mailPort, mail()],
    [echoPort, bytes()],
    [strictPort, http1()],
    [plainMailPort, mail()],
    [plainHttp2Port, overHttp2()],
    [ruledPort, http1()],
  ]);
  for (const [port, server] of servers) {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, appAddress, resolve);
    });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const server of servers.values()) server.close();
    },
  };
}

describe("ports whose protocol is not named", () => {
  let mesh: MeshedProxies;

  before(
    async () => {
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports,
        protocols: Object.fromEntries(ports.map((port) => [port, "any"])),
        manifests: manifests.join("\n---\n"),
        startApplication: startApplications,
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  interface Answer {
    readonly status: number;
    readonly version?: string;
    readonly path?: string;
  }

  const addressOf = (name: string): string => mesh.pod(name).address;
  const isOfClient = (outcome: MeshedOutcome, client: ProxyKind): boolean =>
    callerOf(outcome)?.endsWith(`/sa/client-${client}`) === true;

  const overHttp2 = async (host: string, port: number, authority: string): Promise<Answer> => {
    const session = http2.connect(`http://${host}:${port}`);
    try {
      const stream = session.request({ ":path": "/x", ":authority": authority });
      stream.setEncoding("utf8");
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      let status = 0;
      let body = "";
      stream.once("response", (headers) => (status = headers[":status"] ?? 0));
      stream.on("data", (text: string) => (body += text)).once("error", reject);
      stream.once("end", () => resolve({ status, ...(status === 200 && (JSON.parse(body) as object)) }));
      return await inTime(promise, "an answer over HTTP/2");
    } finally {
      session.destroy();
    }
  };

  /** What comes back for `sent`, up to what is waited for or the end. */
  const overTcp = async (
    place: net.TcpNetConnectOpts,
    sent: string | Buffer,
    isWhole: (received: string) => boolean,
  ): Promise<string> => {
    const socket = net.connect(place);
    let received = "";
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (isWhole(received)) resolve(received);
    });
    socket.on("error", () => {}).on("close", () => resolve(received));
    if (sent.length > 0) socket.write(sent);
    try {
      return await inTime(promise, "what comes back");
    } finally {
      socket.destroy();
    }
  };

  /** Through a tunnel of the client's sidecar; `sent` goes with the request for it. */
  const throughTunnel = async (
    client: ProxyKind,
    target: string,
    sent: string,
    isWhole: (received: string) => boolean,
  ): Promise<string> => {
    const connect = `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${sent}`;
    const bodyOf = (received: string): string => received.slice(received.indexOf("\r\n\r\n") + 4);
    const all = await overTcp({ host: addressOf(`client-${client}`), port: outboundPort }, connect, (received) =>
      received.includes("\r\n\r\n") ? isWhole(bodyOf(received)) : false,
    );
    assert.match(all, /^HTTP\/1\.1 200 /);
    return bodyOf(all);
  };

  const statistic = async (pod: string, name: string): Promise<number> => {
    const text = await mesh.admin(pod, `/stats?filter=${name}`);
    return [...text.matchAll(/: (\d+)$/gm)].reduce((sum, [, value]) => sum + Number(value), 0);
  };

  for (const client of kinds) {
    for (const server of kinds) {
      const pair = `${client} to ${server}`;
      const name = `server-${server}`;
      const request = (port: number, path = "/x") =>
        callMeshed({
          host: addressOf(`client-${client}`),
          port: outboundPort,
          path,
          headers: { host: `${name}:${port}` },
        });

      for (const port of [http1Port, strictPort]) {
        test(`${pair}: a request of HTTP/1.1 to ${port} is one, with its caller`, async () => {
          const outcome = await request(port);
          assert.ok(outcome.type === "answered" && outcome.status === 200, JSON.stringify(outcome));
          assert.ok(isOfClient(outcome, client), JSON.stringify(outcome.echo));
        });
      }

      for (const port of [http2Port, plainHttp2Port]) {
        test(`${pair}: HTTP/2 to ${port} stays HTTP/2 up to the application`, async () => {
          const answer = await overHttp2(addressOf(`client-${client}`), outboundPort, `${name}:${port}`);
          assert.deepEqual([answer.status, answer.version], [200, "2.0"]);
        });
      }

      for (const port of [mailPort, plainMailPort]) {
        test(`${pair}: a server at ${port} that speaks first is heard through a tunnel`, async () => {
          const isWhole = (text: string): boolean => text.length >= greeting.length;
          assert.equal(await throughTunnel(client, `${name}:${port}`, "", isWhole), greeting);
        });
      }

      test(`${pair}: bytes of no protocol come back through a tunnel`, async () => {
        const sent = "*1\r\n$4\r\nPING\r\n";
        const isWhole = (text: string): boolean => text.length >= sent.length;
        assert.equal(await throughTunnel(client, `${name}:${echoPort}`, sent, isWhole), sent);
      });

      test(`${pair}: a rule about paths holds, and no tunnel leads past it`, async () => {
        const statuses = await Promise.all(
          ["/allowed", "/other"].map(async (path) => {
            const outcome = await request(ruledPort, path);
            return outcome.type === "answered" ? outcome.status : 0;
          }),
        );
        assert.deepEqual(statuses, [200, 403]);
        const hidden = "GET /allowed HTTP/1.1\r\nHost: x\r\n\r\n";
        assert.equal(await throughTunnel(client, `${name}:${ruledPort}`, hidden, (text) => text !== ""), "");
      });
    }
  }

  for (const server of kinds) {
    const name = `server-${server}`;

    test(`${server}: curl without a proxy speaks HTTP/1.1, HTTP/2 and SMTP with its defaults`, async () => {
      const curl = await debianTool("curl");
      const host = addressOf(name);
      const versions = await Promise.all(
        (
          [
            [http1Port, "--http1.1"],
            [http2Port, "--http2-prior-knowledge"],
          ] as const
        ).map(async ([port, version]) => {
          const { stdout } = await runCommand(curl, ["-sS", version, `http://${host}:${port}/x`]);
          return (JSON.parse(stdout) as Answer).version;
        }),
      );
      assert.deepEqual(versions, ["1.1", "2.0"]);
      for (const port of [mailPort, plainMailPort]) {
        const mail = ["-sS", "-v", "--mail-from", "a@test", "--mail-rcpt", "b@test", "-T", "-"];
        const outcome = await runCommand(curl, [...mail, `smtp://${host}:${port}`]);
        assert.match(outcome.stderr, /220 mail\.test ESMTP/);
      }
    });

    test(`${server}: plain text at a STRICT port finds no chain`, async () => {
      const text = await overTcp(
        { host: addressOf(name), port: strictPort },
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        Boolean,
      );
      assert.equal(text, "");
    });

    test(`${server}: TLS that is not the mesh's reaches the application as it is`, async () => {
      const socket = tls.connect({ host: addressOf(name), port: echoPort, ALPNProtocols: ["http/1.1"] });
      // The application sends the hello back, which is no answer to one.
      const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException>();
      socket.once("error", resolve);
      assert.match((await inTime(promise, "an error")).code ?? "", /^ERR_SSL_/);
    });

    test(`${server}: HTTP over the mesh's TLS, whose client says nothing of HTTP, is passed on`, async () => {
      const issued = await mesh.authority.issue("shop", "webapp");
      const socket = tls.connect({
        host: addressOf(name),
        port: http1Port,
        key: issued.keyPem,
        cert: issued.chainPem,
        ALPNProtocols: ["istio"],
        rejectUnauthorized: false,
      });
      const { promise, resolve } = Promise.withResolvers<string>();
      socket.once("data", (chunk) => resolve(chunk.toString("latin1"))).once("error", () => resolve(""));
      socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      const answer = await inTime(promise, "an answer");
      socket.destroy();
      assert.match(answer, /^HTTP\/1\.1 200/);
      assert.doesNotMatch(answer, /server: istio-envoy/i, "no connection manager has touched it");
    });
  }

  test("Tulle's proxy waits for a silent client once, and never where a server speaks HTTP/2", async () => {
    const host = addressOf("server-tulle");
    const isWhole = (text: string): boolean => text.length >= greeting.length;
    const earlier = await statistic("server-tulle", `${plainMailPort}.downstream_pre_cx_server_first`);
    for (let count = 0; count < 2; count += 1)
      assert.equal(await overTcp({ host, port: plainMailPort }, "", isWhole), greeting);
    const known = await statistic("server-tulle", `${plainMailPort}.downstream_pre_cx_server_first`);
    assert.ok(known > earlier, `${known} after ${earlier}`);

    // Its SETTINGS come to a client that says nothing; the next one is still looked at.
    const silent = net.connect({ host, port: plainHttp2Port });
    await new Promise((resolve) => silent.once("data", resolve));
    silent.destroy();
    assert.equal(await statistic("server-tulle", `${plainHttp2Port}.downstream_pre_cx_silent`), 1);
    const answer = await overHttp2(host, plainHttp2Port, "x");
    assert.deepEqual([answer.status, answer.version], [200, "2.0"]);
    await waitFor(async () => (await statistic("server-tulle", "http_inspector.http2_found")) > 0, {
      what: "a finding",
    });
    assert.equal(await statistic("server-tulle", `${plainHttp2Port}.downstream_pre_cx_server_first`), 0);
  });
});
