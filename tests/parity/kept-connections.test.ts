// An application ends kept connections when it has waited long enough. Its sidecar, of either kind, gives them up
// before it does: a request that met such an end would be 503, since nobody could tell whether the application had
// taken it.
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { callMeshed } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";

const port = 8080;
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Keeps every connection for as long as the other side does. */
class PatientApplication implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  accepted = 0;
  ended = 0;

  constructor() {
    this.#server = createServer((socket) => {
      this.accepted += 1;
      this.#sockets.add(socket);
      socket.on("data", () => void socket.write(ok));
      socket.on("end", () => (this.ended += 1));
      socket.on("error", () => undefined);
      socket.on("close", () => void this.#sockets.delete(socket));
    });
  }

  async listen(host: string): Promise<this> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject).listen(port, host, resolve);
    await promise;
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#server[Symbol.asyncDispose]();
  }
}

describe("kept connections to applications", () => {
  const applications = new Map<string, PatientApplication>();
  let mesh: MeshedProxies;

  before(async () => {
    mesh = await MeshedProxies.start({
      pods: (["tulle", "envoy"] as const).map((proxy) => ({ name: proxy, namespace: "kept", proxy })),
      ports: [port],
      manifests: "",
      startApplication: async ({ name, appAddress }) => {
        const application = await new PatientApplication().listen(appAddress);
        applications.set(name, application);
        return application;
      },
    });
  });
  after(() => mesh[Symbol.asyncDispose]());

  for (const kind of ["tulle", "envoy"] satisfies ProxyKind[]) {
    for (const version of versions) {
      test(`${kind} gives up a connection to an application before the application does, ${version}`, async () => {
        const application = applications.get(kind)!;
        const call = async (): Promise<number | string> => {
          const outcome = await callMeshed({ host: mesh.pod(kind).address, port, version });
          return outcome.type === "answered" ? outcome.status : outcome.reason;
        };
        // Nothing else would end them while the test waits: Envoy's own limit is an hour.
        assert.equal(await call(), 200);
        await waitFor(() => application.ended > 0 && application.ended === application.accepted, {
          what: "the end of the connection",
        });
        assert.equal(await call(), 200);
      });
    }
  }
});
