// What snapshots are built from.
import type { Store } from "@tulle/config";

/** The part of a store that is read; lists come in the order in which objects were first seen. */
export type ResourceReader = Pick<Store, "list">;
