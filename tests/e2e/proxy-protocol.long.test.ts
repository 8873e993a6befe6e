// A stock HAProxy before gateways of both kinds: the client's own address comes through it by the PROXY protocol, both
// versions, and nobody comes in without.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { freePort, startProcess, type StartedProcess, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
const kinds = ["tulle", "envoy"] as const;

const program = `
import { createServer } from "node:http";
const server = createServer(({ headers }, response) => response.end(headers["x-forwarded-for"]));
server.listen(Number(process.env.PORT), process.env.HOST);
process.on("SIGTERM", () => process.exit(0));
`;

const application = `apiVersion: v1
kind: Namespace
metadata: { name: mine, labels: { tulle-injection: enabled } }
---
apiVersion: v1
kind: Service
metadata: { name: hello, namespace: mine }
spec: { selector: { app: hello }, ports: [{ name: http, port: 80, targetPort: 8000 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: hello, namespace: mine }
spec:
  selector: { matchLabels: { app: hello } }
  template:
    metadata:
      labels: { app: hello }
      annotations: { local.tulle.io/command.hello: '["node", "hello.mjs"]' }
    spec: { containers: [{ name: hello, ports: [{ containerPort: 8000 }] }] }
---
apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: edge, namespace: mine }
spec: { selector: { edge: "yes" }, servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }] }
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: hello, namespace: mine }
spec: { hosts: ["*"], gateways: [edge], http: [{ route: [{ destination: { host: hello } }] }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: tulle, namespace: tulle-system }
data: { mesh: "defaultConfig: { gatewayTopology: { proxyProtocol: {} } }" }
`;

const gateway = (kind: (typeof kinds)[number], port: number): string => `---
apiVersion: v1
kind: Service
metadata: { name: ${kind}, namespace: mine, annotations: { local.tulle.io/publish: "${port}:8080" } }
spec: { selector: { kind: ${kind} }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${kind}, namespace: mine }
spec:
  selector: { matchLabels: { kind: ${kind} } }
  template:
    metadata:
      labels: { kind: ${kind}, edge: "yes" }
      annotations: { inject.istio.io/templates: gateway, sidecar.tulle.io/proxy: ${kind} }
    spec: { containers: [{ name: istio-proxy, image: auto }] }
`;

const ports = new Map<string, number>();
let up: StartedProcess;
let haproxy: StartedProcess;

before(async () => {
  const folder = temporaryFolder("tulle-haproxy-");
  const mine = path.join(folder, "mine");
  await mkdir(mine);
  for (const kind of kinds)
    for (const name of [kind, `${kind} send-proxy`, `${kind} send-proxy-v2`]) ports.set(name, await freePort());
  await writeFile(path.join(mine, "hello.mjs"), program);
  await writeFile(
    path.join(mine, "mesh.yaml"),
    application + kinds.map((kind) => gateway(kind, ports.get(kind)!)).join(""),
  );
  const env = { XDG_STATE_HOME: path.join(folder, "state"), TULLE_DIR: undefined, TULLE_ENVOY: await envoyPath() };
  up = await startProcess(process.execPath, [entry, "up", mine], { name: "tulle up", env });
  const fronts = [...ports].filter(([name]) => name.includes(" "));
  const configuration = `defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
${fronts
  .map(([name, port], index) => {
    const [kind = "", option = ""] = name.split(" ");
    return `listen front${index}\n  bind 127.0.0.1:${port}\n  server gateway 127.0.0.1:${ports.get(kind)} ${option}\n`;
  })
  .join("")}`;
  await writeFile(path.join(folder, "haproxy.cfg"), configuration);
  haproxy = await startProcess(await debianTool("haproxy"), ["-db", "-f", path.join(folder, "haproxy.cfg")], {
    name: "haproxy",
  });
  await up.waitForOutput(/^Ready$/m);
});

after(async () => {
  await haproxy.stop();
  await up.stop({ signal: "SIGINT" });
});

/** The answer to a client of that address. */
function ask(port: number, localAddress: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const outgoing = request({ host: "127.0.0.1", port, localAddress, agent: false }, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (text: string) => (body += text));
    response.on("end", () => resolve(`${response.statusCode} ${body}`));
  });
  outgoing.on("error", reject).end();
  return promise;
}

for (const kind of kinds) {
  for (const option of ["send-proxy", "send-proxy-v2"]) {
    test(`${option} to a gateway of ${kind}: the application sees the client's address`, async () => {
      const answer = (): Promise<string> => ask(ports.get(`${kind} ${option}`)!, "127.9.8.7").catch(String);
      await waitFor(async () => (await answer()).startsWith("200"), {
        what: "HAProxy to lead to the gateway",
        details: () => haproxy.output(),
      });
      assert.equal(await answer(), "200 127.9.8.7");
    });
  }

  test(`a client that goes past HAProxy to a gateway of ${kind} gets nothing`, async () => {
    await assert.rejects(ask(ports.get(kind)!, "127.9.8.7"), { code: "ECONNRESET" });
    const socket = net.connect(ports.get(kind)!, "127.0.0.1");
    socket.on("error", () => undefined);
    let received = "";
    socket.setEncoding("latin1").on("data", (text: string) => (received += text));
    socket.end("PROXY TCP4 10.0.0.1 not-an-address 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await new Promise((resolve) => socket.on("close", resolve));
    assert.equal(received, "");
  });
}
