// `node bench/authorization-server/main.ts [ROUNDS]`: the authorization server's bench alone.
import { measureAuthorizationServer } from "./measure-authorization-server.ts";

const result = await measureAuthorizationServer({
  rounds: Number(process.argv[2] ?? 3),
  progress: (text) => process.stderr.write(`${text}\n`),
});
process.stdout.write(`${result.markdown}\n`);
