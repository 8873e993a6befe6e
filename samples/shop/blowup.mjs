// Switches the catalog's faults on and off by calling each catalog container itself, past the mesh. Runs on any Node
// from 18 on.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const usage = `Usage: samples/shop/blowup on [percentage] [--version v1|v2] [--dir folder]
       samples/shop/blowup off [--version v1|v2] [--dir folder]

Makes the catalog answer 500 to a share of the requests (100 percent unless chosen), or stops that.
`;

function fail(message) {
  process.stderr.write(`blowup: ${message}\n\n${usage}`);
  process.exit(2);
}

function parseArguments(args) {
  const words = [];
  const options = {};
  for (let index = 0; index < args.length; index += 1) {
    const [, name, inline] = /^--(version|dir)(?:=(.*))?$/.exec(args[index]) ?? [];
    if (name !== undefined) options[name] = inline ?? args[(index += 1)] ?? fail(`--${name} needs a value`);
    else if (args[index].startsWith("-") && !/^-\d/.test(args[index])) fail(`unknown option ${args[index]}`);
    else words.push(args[index]);
  }
  const [state, percentage = "100", ...more] = words;
  if (state !== "on" && state !== "off") fail(state === undefined ? "on or off?" : `"${state}" is neither on nor off`);
  if (more.length > 0 || (state === "off" && words.length > 1)) fail("too many arguments");
  if (!/^\d{1,3}$/.test(percentage) || Number(percentage) > 100) fail(`"${percentage}" is no percentage from 0 to 100`);
  return { active: state === "on", percentage: Number(percentage), ...options };
}

function catalogPods({ version, dir }) {
  const tulle = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../packages/cli/bin/tulle.mjs");
  const where = dir === undefined ? [] : ["--dir", dir];
  const text = execFileSync(process.execPath, [tulle, "pods", "-o", "json", ...where], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(text).filter(
    (pod) =>
      pod.namespace === "shop" &&
      pod.labels.app === "catalog" &&
      (version === undefined || pod.labels.version === version),
  );
}

if (process.argv.slice(2).some((word) => word === "--help" || word === "-h")) {
  process.stdout.write(usage);
  process.exit(0);
}
const wanted = parseArguments(process.argv.slice(2));
let pods;
try {
  pods = catalogPods(wanted);
} catch {
  process.exit(1); // `tulle pods` has said why
}
if (pods.length === 0) {
  process.stderr.write("blowup: no catalog pod runs here\n");
  process.exit(1);
}
const rule = wanted.active
  ? { active: true, type: "500", percentage: wanted.percentage }
  : { active: false, type: "500" };
for (const pod of pods) {
  const answer = await fetch(`http://${pod.app.address}:${pod.app.port}/blowup`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(rule),
  });
  process.stdout.write(`${pod.name}: ${(await answer.text()).trim()}\n`);
  if (!answer.ok) process.exitCode = 1;
}
