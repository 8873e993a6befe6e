// Asks a proxy of the parity mesh again and again until it answers by what was applied.
import { waitFor } from "../tools/processes.ts";
import { type Role, rows } from "./call.ts";
import type { ParityMesh, Proxy } from "./parity-mesh.ts";

interface Wanted {
  readonly role: Role;
  readonly proxy: Proxy;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
}

export async function waitForStatus(
  mesh: ParityMesh,
  { role, proxy, path: asked, headers = {}, status }: Wanted,
): Promise<void> {
  const [call] = rows(role, [[asked, asked, { headers }, { status }]]);
  const isThere = async (): Promise<boolean> =>
    (await mesh.makeCall(call!, proxy, "127.94.0.1")).answers.at(-1)?.status === status;
  await waitFor(isThere, { what: `${status} from ${role} ${proxy}`, intervalMs: 200 });
}
