// gRPC of Go, Java and Python, with their own clients and servers, through two sidecars and their mutual TLS in every
// mix of the two proxies. Go and Java run gRPC's own interoperability cases; Python's core is that of C++.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { goProgram } from "../tools/go-program.ts";
import { mavenJar } from "../tools/maven-project.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { startProcess } from "../tools/processes.ts";
import { pythonEnvironment } from "../tools/python-environment.ts";
import { runCommand } from "../tools/run-command.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;

/** What every one of gRPC's libraries tests with every other. */
const commonCases = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "cancel_after_begin",
  "cancel_after_first_response",
  "timeout_on_sleeping_server",
  "custom_metadata",
  "status_code_and_message",
  "special_status_message",
  "unimplemented_method",
  "unimplemented_service",
];
/** Java's server takes a message for compressed or not without a look. */
const javaOnlyCases = [
  "client_compressed_unary_noprobe",
  "client_compressed_streaming_noprobe",
  "server_compressed_unary",
  "server_compressed_streaming",
  "very_large_request",
];
/** Ours: a server that is to be tried again, by the mesh's default and by the library's own policy. */
const meshCases = ["mesh_retry", "own_retry", "health", "reflection"];
const pythonCases = "unary compressed status unimplemented deadline cancel streams slow_reader".split(" ");

type Language = "go" | "java" | "python";
/** The port of each one's server. */
const ports: Readonly<Record<Language, number>> = { go: 9000, java: 9001, python: 9002 };

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** Calls the authority at a proxy's address and port. */
type Call = (address: string, port: number, authority: string, cases: readonly string[]) => Command;

interface Programs {
  readonly serve: Readonly<Record<Language, (address: string, port: number) => Command>>;
  readonly call: Readonly<Record<Language, Call>>;
}

async function programs(): Promise<Programs> {
  const [go, jar, python] = await Promise.all([
    goProgram(path.join(import.meta.dirname, "grpc-go")),
    mavenJar(path.join(import.meta.dirname, "grpc-java"), "grpc-interop-1.jar"),
    pythonEnvironment("python/grpc.txt"),
  ]);
  const java = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path.join(path.dirname(jar), "*")];
  const echo = path.join(import.meta.dirname, "grpc-python", "echo.py");
  return {
    serve: {
      go: (address, port) => ({ command: go, args: ["serve", `${address}:${port}`] }),
      java: (address, port) => ({ command: "java", args: [...java, "io.tulle.InteropServer", address, String(port)] }),
      python: (address, port) => ({ command: python, args: [echo, "serve", `${address}:${port}`] }),
    },
    call: {
      go: (address, port, authority, cases) => ({
        command: go,
        args: ["call", `${address}:${port}`, authority, ...cases],
      }),
      java: (address, port, authority, cases) => {
        const target = [`--server_host=${address}`, `--server_port=${port}`, `--server_host_override=${authority}`];
        const args = [...java, "io.tulle.InteropClient", ...target, "--use_tls=false", "--", ...cases];
        return { command: "java", args };
      },
      python: (address, port, authority, cases) => ({
        command: python,
        args: [echo, "call", `${address}:${port}`, authority, ...cases],
      }),
    },
  };
}

const rows: readonly { readonly from: Language; readonly to: Language; readonly cases: readonly string[] }[] = [
  { from: "go", to: "go", cases: [...commonCases, ...meshCases] },
  { from: "go", to: "java", cases: [...commonCases, ...meshCases] },
  { from: "java", to: "go", cases: [...commonCases, ...meshCases] },
  { from: "java", to: "java", cases: [...commonCases, ...javaOnlyCases, ...meshCases] },
  { from: "python", to: "go", cases: ["health", "reflection"] },
  { from: "python", to: "python", cases: [...pythonCases, ...meshCases] },
];

describe("gRPC's libraries through two sidecars", () => {
  let libraries: Programs;
  let mesh: MeshedProxies;

  before(async () => {
    libraries = await programs();
    mesh = await MeshedProxies.start({
      pods: kinds.flatMap((proxy) =>
        ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
      ),
      ports: Object.values(ports),
      protocols: Object.fromEntries(Object.values(ports).map((port) => [port, "grpc"])),
      manifests: "",
      startApplication: async ({ name, appAddress }) => {
        const stack = new AsyncDisposableStack();
        if (name.startsWith("client")) return stack;
        for (const [language, port] of Object.entries(ports)) {
          const { command, args } = libraries.serve[language as Language](appAddress, port);
          const server = stack.use(await startProcess(command, args));
          await server.waitForOutput(/listening/, { timeoutMs: 60_000 });
        }
        return stack;
      },
    });
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  for (const { from, to, cases } of rows) {
    for (const client of kinds) {
      for (const server of kinds) {
        test(`${from} beside ${client} calls ${to} beside ${server}`, async () => {
          const { address } = mesh.pod(`client-${client}`);
          const authority = `server-${server}:${ports[to]}`;
          const { command, args } = libraries.call[from](address, outboundPort, authority, cases);
          const { code, stdout, stderr } = await runCommand(command, args, { timeoutMs: 120_000 });
          const passed = [...stdout.matchAll(/^passed (\w+)$/gm)].map(([, name]) => name);
          assert.deepEqual(
            { code, passed },
            { code: 0, passed: cases },
            stderr.slice(-3000) + mesh.output(`client-${client}`).slice(-2000),
          );
        });
      }
    }
  }
});
