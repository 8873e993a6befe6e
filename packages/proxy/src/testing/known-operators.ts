// The operators of formats that the proxy takes, for tests that hold others to them.
import { operators } from "../format/operators.ts";
import { unavailableOperators } from "../format/unavailable-operators.ts";

export { unavailableOperators };

export const knownOperators: readonly string[] = [...Object.keys(operators), ...Object.keys(unavailableOperators)];
