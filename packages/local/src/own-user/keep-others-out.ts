// `tulle up --own-user-only`: the table for the addresses of an instance, or why there is none.
import { CannotStart } from "../cannot-start.ts";
import type { AddressBlock } from "../network/address-block.ts";
import { NoOwnUserTable, openOwnUserTable, type OwnUserTable } from "./own-user-table.ts";

/** @throws {CannotStart} */
export async function keepOthersOut(
  { index, range }: Pick<AddressBlock, "index" | "range">,
  env: Readonly<Record<string, string | undefined>>,
  onTrouble: (message: string) => void,
): Promise<OwnUserTable> {
  const words = env["TULLE_NFT"] || "nft";
  try {
    return await openOwnUserTable({
      name: `tulle_${index}`,
      range,
      uid: process.getuid!(),
      nft: words.split(/\s+/),
      onLost: (reason) =>
        onTrouble(`other users' programs reach ${range} again: its nftables table has gone (${reason})`),
    });
  } catch (error) {
    if (!(error instanceof NoOwnUserTable)) throw error;
    throw new CannotStart(
      `other users cannot be kept away from ${range}: ${error.message}`,
      "It takes nft (Debian: nftables) and the right to use it: TULLE_NFT has the words that run it, as `sudo -n nft`.",
    );
  }
}
