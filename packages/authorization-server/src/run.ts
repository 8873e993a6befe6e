// The program: reads the configuration, opens the server, prints Ready, and leaves gracefully.
import { once } from "node:events";
import { Logging, jsonSink, lineWriter, terminalText, textSink } from "@tulle/telemetry";
import { demoLines, makeDemo } from "./admin/demo.ts";
import { loadConfig } from "./config/config.ts";
import type { Config } from "./config/config.ts";
import { listeningPort } from "./config/listening-port.ts";
import { wellKnownPath } from "./routes.ts";
import type { RunningServer } from "./start.ts";
import { openServer } from "./start.ts";

const shutdownLimitMs = 10_000;

/** Runs until a signal ends it; answers the exit status. */
export async function run(): Promise<number> {
  const loaded = loadConfig({ argv: process.argv.slice(2), environment: process.env });
  if ("help" in loaded) {
    process.stdout.write(`${loaded.help}\n`);
    return 0;
  }
  if (loaded.config === undefined) {
    for (const problem of loaded.problems ?? []) process.stderr.write(terminalText(`configuration: ${problem}\n`));
    return 2;
  }
  const found = await listeningPort(loaded.config);
  if ("problem" in found) {
    process.stderr.write(terminalText(`authorization-server: ${found.problem}\n`));
    return 1;
  }
  const config = withPort(loaded.config, found.port);
  const sink = config.logFormat === "json" ? jsonSink : textSink;
  const logging = new Logging({ level: config.logLevel, sink: sink(lineWriter(2)) });
  const log = logging.logger("authorization-server");
  // Listened for before Ready is said: whoever reads it may end the server at once.
  const signals = new AbortController();
  const options = { signal: signals.signal };
  const stopped = Promise.race([once(process, "SIGINT", options), once(process, "SIGTERM", options)]);
  let server: RunningServer | undefined;
  try {
    server = await openServer({ config, log, environment: process.env });
    const demo = config.demo ? await makeDemo(server.context) : undefined;
    const address = await server.listen();
    process.stdout.write(readyText(config, address.port));
    if (demo !== undefined)
      process.stdout.write(`${demoLines(demo, config.issuer, process.stdout.isTTY).join("\n")}\n`);
    if (process.stdout.isTTY)
      process.stdout.write("\nClients of your own: ./tulle auth client create --help\nCtrl-C ends it.\n");
  } catch (error) {
    process.stderr.write(terminalText(`authorization-server: ${startProblem(error, config)}\n`));
    await server?.close();
    return 1;
  }
  await stopped;
  signals.abort();
  log.info("shutting down");
  const limit = setTimeout(() => process.exit(1), shutdownLimitMs);
  await server.close();
  clearTimeout(limit);
  return 0;
}

/** Of port 0 the free one that was found, so that the issuer and the demo name it too. */
function withPort(config: Config, port: number): Config {
  if (config.port === port) return config;
  const argv = [...process.argv.slice(2), "--port", String(port)];
  return loadConfig({ argv, environment: process.env }).config ?? config;
}

function readyText(config: Config, port: number): string {
  const lines = [
    "Ready",
    `  issuer      ${config.issuer}`,
    `  listening   http://${config.host}:${port}`,
    `  authorize   ${config.issuer}/authorize`,
    `  token       ${config.issuer}/token`,
    `  metadata    ${new URL(config.issuer).origin}${wellKnownPath(new URL(config.issuer).pathname.replace(/\/$/, ""))}`,
    `  account     ${config.issuer}/account`,
    `  store       ${config.databaseUrl === undefined ? config.dataDir : "PostgreSQL"}`,
  ];
  return `${lines.join("\n")}\n`;
}

function startProblem(error: unknown, config: Config): string {
  const { code, message } = error as NodeJS.ErrnoException;
  // Between the look at the port and this.
  if (code === "EADDRINUSE") return `port ${config.port} on ${config.host} is in use; choose another with --port`;
  return message;
}
