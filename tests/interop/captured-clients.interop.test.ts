// Unmodified programs with their defaults call through two sidecars that they know nothing of, Tulle's proxy and Envoy:
// by name, over IPv4 and IPv6, in the mesh and out of it.
import assert from "node:assert/strict";
import path from "node:path";
import { before, describe, test } from "node:test";
import { debianTool, installDebianTools } from "../tools/debian-tool.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { goProgram } from "../tools/go-program.ts";
import { mavenJar } from "../tools/maven-project.ts";
import { playInOwnNetwork } from "../tools/own-network.ts";
import { oauthClientPackages, pythonEnvironment } from "../tools/python-environment.ts";
import { foreignCalls, type ForeignPrograms, forbiddenCalls, plainCalls } from "./captured-clients/calls.ts";
import { server as serverIps } from "./captured-clients/destinations.ts";
import type { ForeignOutcome } from "./captured-clients/stage.ts";

const stage = path.join(import.meta.dirname, "captured-clients", "stage.ts");
const tools = ["curl", "wget", "dig", "redis-server", "redis-cli", "postgresql", "psql", "tcpdump"] as const;

async function programs(): Promise<ForeignPrograms> {
  await installDebianTools(tools);
  for (const tool of tools) await debianTool(tool);
  const [go, grpcGo, jar, grpcPython, python] = await Promise.all([
    goProgram(path.join(import.meta.dirname, "captured-clients", "go")),
    goProgram(path.join(import.meta.dirname, "grpc-go")),
    mavenJar(path.join(import.meta.dirname, "grpc-java"), "grpc-interop-1.jar"),
    pythonEnvironment("python/grpc.txt"),
    pythonEnvironment(oauthClientPackages),
    envoyPath(),
  ]);
  const grpcJava = `java -Xmx256m -XX:TieredStopAtLevel=1 -cp '${path.dirname(jar)}/*' io.tulle.InteropClient`;
  const echo = path.join(import.meta.dirname, "grpc-python", "echo.py");
  const psql = path.join(path.dirname(await debianTool("postgresql")), "psql");
  return { go, python, psql, grpcGo, grpcJava, grpcPython: `${grpcPython} ${echo}` };
}

let foreign: ForeignPrograms;
before(async () => (foreign = await programs()));

for (const [client, server] of [
  ["tulle", "envoy"],
  ["envoy", "tulle"],
] as const) {
  describe(`the caller's sidecar is ${client}, the other one ${server}`, () => {
    let outcome: ForeignOutcome;
    before(async () => (outcome = await playInOwnNetwork(stage, [client, server, JSON.stringify(foreign)])));

    test("each program gets what it asks for", () => {
      const calls = [...foreignCalls(foreign), ...plainCalls(foreign), ...forbiddenCalls(foreign)];
      const expected = calls.map(({ name, expected: lines }) => [name, lines]);
      assert.deepEqual(outcome.printed, Object.fromEntries(expected));
    });

    test("nothing but TLS 1.3 goes between the sidecars", () => {
      const seen = new Set(outcome.between.map(([to]) => to));
      const all = [8080, 9000, 5432, 6379].flatMap((port) => [
        `${serverIps.four}:${port}`,
        `[${serverIps.six}]:${port}`,
      ]);
      assert.deepEqual([...seen].sort(), all.sort());
      assert.deepEqual(
        outcome.between.filter(([, fault]) => fault !== ""),
        [],
      );
      assert.equal(outcome.readableOutside, 2, "to a machine outside, the capture sees what is asked");
    });
  });
}
