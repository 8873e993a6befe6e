// Compiles everything once when a clone is set up, so that its first `tulle up` is as quick as the others: a dozen
// processes would otherwise strip types and compile the same files at the same moment.
import { enableCompileCache, flushCompileCache } from "node:module";
import { compileCacheFolder, packagesUrl } from "../src/command/installation.ts";

enableCompileCache(compileCacheFolder);
// What the processes start with, and what the agent loads later.
const { commands } = await import("../src/commands.ts");
await Promise.all([
  import("../src/process-context.ts"),
  import("../src/run-cli.ts"),
  import("@tulle/proxy"),
  import(`${packagesUrl}authorization-server/src/run.ts`),
  ...commands.map((row) => row.load()),
]);
flushCompileCache();
// Nothing that was loaded may keep a set-up waiting.
process.exit(0);
