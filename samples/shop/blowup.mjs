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

const tulle = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../packages/cli/bin/tulle.mjs");

function runTulle(dir, ...args) {
  const where = dir === undefined ? [] : ["--dir", dir];
  const [command, ...rest] = args;
  return execFileSync(process.execPath, [tulle, command, ...where, ...rest], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function catalogPods({ version, dir }) {
  return JSON.parse(runTulle(dir, "pods", "-o", "json")).filter(
    (pod) =>
      pod.namespace === "shop" &&
      pod.labels.app === "catalog" &&
      (version === undefined || pod.labels.version === version),
  );
}

async function post(url, body) {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return { ok: answer.ok, text: await answer.text() };
}

/** A pod with a network of its own is asked from within: this machine has no way there. */
async function tell(pod, body, { dir }) {
  if (pod.app.address !== pod.address) return post(`http://${pod.app.address}:${pod.app.port}/blowup`, body);
  const [url, text] = [`http://localhost:${pod.app.port}/blowup`, body].map((each) => JSON.stringify(each));
  const program = `(${post.toString()})(${url}, ${text}).then((answer) => console.log(JSON.stringify(answer)))`;
  return JSON.parse(runTulle(dir, "exec", "-n", pod.namespace, pod.name, "--", "node", "-e", program));
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
  const { ok, text } = await tell(pod, JSON.stringify(rule), wanted);
  process.stdout.write(`${pod.name}: ${text.trim()}\n`);
  if (!ok) process.exitCode = 1;
}
