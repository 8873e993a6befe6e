// Starts a cluster and runs a command beside it, which finds it by KUBECONFIG; `--keep` leaves it up afterwards, until
// the process is interrupted. Started by `npm run test:kubernetes`, in namespaces of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startCluster } from "./cluster.ts";

const { values, positionals } = parseArgs({
  options: { keep: { type: "boolean", default: false }, image: { type: "string", multiple: true, default: [] } },
  allowPositionals: true,
});
const started = performance.now();
const cluster = await startCluster(values.image);
process.stdout.write(`two nodes are ready after ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
const [command, ...args] = positionals;
if (command !== undefined) {
  const child = spawn(command, args, { env: cluster.environment, stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  process.exitCode = code ?? 1;
}
if (values.keep) {
  const enter = "nsenter --target PID --mount --pid --net --";
  process.stdout.write(
    `The cluster stays up until Ctrl-C. From another terminal, as root, with the PID of "node …/cluster/run.ts":
  ${enter} env KUBECONFIG=${cluster.kubeconfig} PATH=${cluster.environment["PATH"]?.split(":")[0]}:$PATH kubectl get pods -A
Logs: ${cluster.folder}/logs
`,
  );
  await once(process, "SIGINT");
}
process.exit();
