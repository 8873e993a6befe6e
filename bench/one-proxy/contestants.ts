// The proxies that are measured side by side: how each is configured for the same work and started.
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { debianTool } from "../../tests/tools/debian-tool.ts";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { startProcess, type StartedProcess } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import { nodeOf, type Tree } from "../tree.ts";
import { bootstrapYaml, type Observed } from "./bootstrap.ts";
import type { Protocol } from "./work.ts";

export interface Place {
  readonly protocol: Protocol;
  readonly listenPort: number;
  readonly adminPort: number;
  readonly backendPort: number;
  /** A folder of this contestant's own. */
  readonly folder: string;
  /** Where it writes its access log. */
  readonly accessLogFile: string;
  readonly core: number;
}

export interface Contestant {
  readonly name: string;
  /** False for a program that is measured without an access log. */
  readonly logsRequests: boolean;
  /** It has Envoy's administration pages. */
  readonly hasAdmin: boolean;
  readonly start: (place: Place) => Promise<StartedProcess>;
}

/** Those that take Envoy's bootstrap. `observed`: what each tells of its requests; missing: an access log alone. */
export function envoyAndTulle(trees: readonly Tree[], observed?: Observed): readonly Contestant[] {
  const logsRequests = observed?.hasLogAndMetrics ?? true;
  const own = { logsRequests, hasAdmin: true };
  return [
    { name: "Envoy", ...own, start: (place) => startEnvoy(place, observed) },
    ...trees.map((tree) => ({
      name: tree.name,
      ...own,
      start: (place: Place): Promise<StartedProcess> => startTulle(tree, place, observed),
    })),
  ];
}

/** nginx and HAProxy are measured with HTTP/1.1 alone: nginx speaks nothing else to hosts. */
export function contestants(trees: readonly Tree[], protocol: Protocol): readonly Contestant[] {
  const both = envoyAndTulle(trees);
  if (protocol === "HTTP/2") return both;
  return [
    ...both,
    { name: "nginx", logsRequests: true, hasAdmin: false, start: startNginx },
    { name: "HAProxy", logsRequests: true, hasAdmin: false, start: startHaproxy },
  ];
}

/** A program given on the command line, such as a prototype: it gets its two ports and no configuration. */
export function contestantFromCommand(name: string, command: readonly string[]): Contestant {
  return {
    name,
    logsRequests: false,
    hasAdmin: false,
    start: (place) => {
      const [program = "", ...args] = command.map((part) =>
        part.replace("{listen}", String(place.listenPort)).replace("{upstream}", String(place.backendPort)),
      );
      return startProcess(...onCore(place.core, program, args), { name });
    },
  };
}

async function startEnvoy(place: Place, observed: Observed | undefined): Promise<StartedProcess> {
  const bootstrap = await writeBootstrap(place, observed);
  const args = ["-c", bootstrap, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"];
  return startProcess(...onCore(place.core, await envoyPath(), args), { name: "Envoy" });
}

async function startTulle(tree: Tree, place: Place, observed: Observed | undefined): Promise<StartedProcess> {
  const command = path.join(tree.folder, "packages", "cli", "bin", "tulle.mjs");
  const args = [command, "proxy", "-c", await writeBootstrap(place, observed), "--concurrency", "1", "-l", "warning"];
  return startProcess(...onCore(place.core, nodeOf(tree), args), { name: tree.name });
}

async function startNginx(place: Place): Promise<StartedProcess> {
  const configuration = await writeConfiguration(place.folder, "nginx.conf", [
    ...nginxPreamble(place.folder),
    "http {",
    `  log_format proxied '[$time_iso8601] "$request" $status $bytes_sent $request_time $upstream_response_time "$http_x_forwarded_for" "$http_user_agent" "$request_id" "$host" "$upstream_addr" $server_addr $remote_addr';`,
    `  access_log ${place.accessLogFile} proxied buffer=64k flush=1s;`,
    "  keepalive_requests 1000000000;",
    `  upstream catalog { server 127.0.0.1:${place.backendPort}; keepalive 128; keepalive_requests 1000000000; }`,
    "  server {",
    `    listen 127.0.0.1:${place.listenPort};`,
    "    location /api/catalog {",
    "      proxy_pass http://catalog;",
    "      proxy_http_version 1.1;",
    '      proxy_set_header Connection "";',
    "      proxy_set_header X-Request-Id $request_id;",
    "      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "      proxy_set_header X-Forwarded-Proto $scheme;",
    "    }",
    "  }",
    "}",
  ]);
  return startProcess(...onCore(place.core, await debianTool("nginx"), ["-c", configuration]), { name: "nginx" });
}

async function startHaproxy(place: Place): Promise<StartedProcess> {
  const configuration = await writeConfiguration(place.folder, "haproxy.cfg", [
    "global",
    "  nbthread 1",
    "  maxconn 4096",
    // HAProxy writes no files itself; its standard output is the log file.
    "  log stdout format raw local0 info",
    "defaults",
    "  mode http",
    "  log global",
    "  option httplog",
    "  option forwardfor",
    "  http-reuse always",
    "  timeout connect 10s",
    "  timeout client 60s",
    "  timeout server 60s",
    "  unique-id-format %{+X}o%ci:%cp_%fi:%fp_%Ts_%rt:%pid",
    "  unique-id-header X-Request-Id",
    "frontend gateway",
    `  bind 127.0.0.1:${place.listenPort}`,
    "  http-request set-header X-Forwarded-Proto http",
    "  use_backend catalog if { path_beg /api/catalog }",
    "backend catalog",
    `  server one 127.0.0.1:${place.backendPort}`,
  ]);
  const program = await debianTool("haproxy");
  const [command, args] = onCore(place.core, "sh", [
    "-c",
    'exec "$1" -db -f "$2" >> "$3"',
    "sh",
    program,
    configuration,
    place.accessLogFile,
  ]);
  return startProcess(command, args, { name: "HAProxy" });
}

export function nginxPreamble(folder: string): readonly string[] {
  return [
    "daemon off;",
    "worker_processes 1;",
    `pid ${folder}/nginx.pid;`,
    "error_log stderr warn;",
    "events { worker_connections 4096; }",
  ];
}

function writeBootstrap(place: Place, observed: Observed | undefined): Promise<string> {
  return writeConfiguration(place.folder, "bootstrap.yaml", [
    bootstrapYaml(place, place.accessLogFile, { isHttp2: place.protocol === "HTTP/2", observed }),
  ]);
}

export async function writeConfiguration(folder: string, name: string, lines: readonly string[]): Promise<string> {
  const file = path.join(folder, name);
  await writeFile(file, `${lines.join("\n")}\n`);
  return file;
}
