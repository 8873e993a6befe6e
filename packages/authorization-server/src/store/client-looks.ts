// What clients look like on pages, apart from the clients themselves, which are read with every request.
import type { Look } from "../pages/look.ts";
import type { Reader, Transaction } from "./database.ts";

export async function findClientLook(reader: Reader, clientId: string): Promise<Look | undefined> {
  const row = await reader.get<{ colour: string | null; logo: string | null }>(
    "SELECT colour, logo FROM client_looks WHERE client_id = ?",
    [clientId],
  );
  return row === undefined ? undefined : { colour: row.colour ?? undefined, logo: row.logo ?? undefined };
}

export async function saveClientLook(transaction: Transaction, clientId: string, look: Look): Promise<void> {
  await transaction.run(
    `INSERT INTO client_looks (client_id, colour, logo) VALUES (?, ?, ?)
     ON CONFLICT (client_id) DO UPDATE SET colour = excluded.colour, logo = excluded.logo`,
    [clientId, look.colour ?? null, look.logo ?? null],
  );
}
