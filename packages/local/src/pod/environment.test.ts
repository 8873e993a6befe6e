// What a program finds in its environment.
import assert from "node:assert/strict";
import { test } from "node:test";
import { appLaunch, type AppEnvironmentInput, isPartOfTulle } from "./environment.ts";

const input: AppEnvironmentInput = {
  container: {
    name: "app",
    argv: ["node"],
    user: { uid: undefined, gid: undefined },
    variables: [{ name: "SHOW_IMAGE", value: "true" }],
    ports: [
      { name: "http-web", port: 3000 },
      { name: undefined, port: 9000 },
    ],
    readinessProbe: undefined,
    livenessProbe: undefined,
    startupProbe: undefined,
  },
  pod: {
    name: "app-1",
    namespace: "shop",
    uid: "u",
    labels: {},
    annotations: {},
    nodeName: "laptop",
    serviceAccount: "default",
    podAddress: "127.20.0.2",
    hostAddress: "127.0.0.1",
  },
  appAddress: "127.20.0.3",
  enter: (env) => ({ enter: [], env }),
  hasOwnNetwork: false,
  sidecarAddress: "127.20.0.2",
  inherited: { PATH: "/bin", HOME: "/home/a", TULLE_DIR: "/x", NODE_TEST_CONTEXT: "child", http_proxy: "http://corp" },
  nodePath: "/opt/node/bin/node",
  compileCache: "/cache",
  textsOf: () => undefined,
};

function appEnvironment(changed: AppEnvironmentInput): Readonly<Record<string, string>> {
  const launch = appLaunch(changed);
  assert.ok("env" in launch);
  return launch.env;
}

test("the app learns where to listen and sends its calls to the sidecar", () => {
  const env = appEnvironment(input);
  assert.equal(env["HOST"], "127.20.0.3");
  assert.equal(env["PORT"], "3000");
  assert.equal(env["PORT_HTTP_WEB"], "3000");
  assert.equal(env["SHOW_IMAGE"], "true");
  for (const name of ["HTTP_PROXY", "http_proxy"]) assert.equal(env[name], "http://127.20.0.2:15007");
  for (const name of ["NO_PROXY", "no_proxy"]) assert.match(env[name]!, /(^|,)127\.0\.0\.1,.*127\.20\.0\.3$/);
  assert.equal(env["NODE_USE_ENV_PROXY"], "1");
});

test("the supervisor's own settings stay with it, and node is the pinned one", () => {
  const env = appEnvironment(input);
  assert.equal(env["TULLE_DIR"], undefined);
  assert.equal(env["NODE_TEST_CONTEXT"], undefined);
  assert.equal(env["PATH"], "/opt/node/bin:/bin");
  assert.equal(env["HOME"], "/home/a");
});

test("a pod without a sidecar keeps the user's proxy", () => {
  const env = appEnvironment({ ...input, sidecarAddress: undefined });
  assert.equal(env["http_proxy"], "http://corp");
  assert.equal(env["NODE_USE_ENV_PROXY"], undefined);
});

test("the manifest's variables win", () => {
  const container = {
    ...input.container,
    variables: [
      { name: "PORT", value: "1" },
      { name: "NO_PROXY", value: "*" },
    ],
  };
  const env = appEnvironment({ ...input, container });
  assert.equal(env["PORT"], "1");
  assert.equal(env["NO_PROXY"], "*");
});

for (const { name, argv, expected } of [
  { name: "the authorization server", argv: ["node", "../packages/authorization-server/src/main.ts"], expected: true },
  { name: "a program of the user", argv: ["node", "catalog/main.ts"], expected: false },
  { name: "a program of another place", argv: ["node", "/opt/other/packages/x/src/main.ts"], expected: false },
]) {
  test(`compiled code is kept with Tulle's own: ${name}`, () => {
    const tulleCommand = ["/opt/node", "/opt/tulle/packages/cli/src/main.ts"];
    assert.equal(isPartOfTulle(argv, "/opt/tulle/shop", { tulleCommand }), expected);
  });
}

test("a command names variables of its manifest and of the platform, as in Kubernetes", () => {
  const container = {
    ...input.container,
    argv: ["node", "--level=$(LEVEL)", "$(HOST):$(PORT)", "$(HOME)", "$$(LEVEL)", "$(__proto__)"],
    variables: [{ name: "LEVEL", value: "debug" }],
  };
  const launch = appLaunch({ ...input, container });
  assert.ok("argv" in launch);
  // What only the person who runs it has in his environment is no variable of the container.
  const expected = ["node", "--level=debug", "127.20.0.3:3000", "$(HOME)", "$(LEVEL)", "$(__proto__)"];
  assert.deepEqual(launch.argv, expected);
});

test("a program is not started before its ConfigMap is there", () => {
  const from = { kind: "ConfigMap", name: "settings", optional: false } as const;
  const container = { ...input.container, variables: [{ name: "LEVEL", from, key: "level" }] };
  const before = appLaunch({ ...input, container });
  assert.deepEqual(before, { missing: "there is no ConfigMap shop/settings, which the variable LEVEL needs" });
  const textsOf = (): ReadonlyMap<string, string> => new Map([["level", "debug"]]);
  assert.equal(appEnvironment({ ...input, container, textsOf })["LEVEL"], "debug");
});
