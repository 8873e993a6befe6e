// How many bytes and characters the primitives that parsers are made of have gone over: a number that does not depend
// on the machine, for tests that something costs no more than its length.
import type { TestContext } from "node:test";

export interface CountedWork {
  /** Since the last call. */
  take(): number;
}

/** Counts until the test ends; what other code does meanwhile counts too. */
export function countWork(t: TestContext): CountedWork {
  let work = 0;
  const spy = (
    object: object,
    name: string,
    cost: (self: { length: number }, args: readonly unknown[], result: unknown) => number,
  ): void => {
    const original = Reflect.get(object, name) as (...args: unknown[]) => unknown;
    function counted(this: { length: number }, ...args: unknown[]): unknown {
      const result = Reflect.apply(original, this, args);
      work += cost(this, args, result);
      return result;
    }
    Reflect.set(object, name, counted);
    t.after(() => Reflect.set(object, name, original));
  };
  const start = (argument: unknown): number => (typeof argument === "number" ? argument : 0);
  const searched = ({ length }: { length: number }, args: readonly unknown[], result: unknown): number =>
    ((result as number) >= 0 ? (result as number) : length) - Math.min(length, start(args[1])) + 1;
  spy(Buffer.prototype, "indexOf", searched);
  spy(Buffer.prototype, "latin1Slice", (_self, args) => (args[1] as number) - start(args[0]));
  spy(Buffer.prototype, "toString", (_self, _args, result) => (result as string).length);
  spy(Buffer.prototype, "copy", (_self, _args, result) => result as number);
  spy(Buffer, "concat", (_self, _args, result) => (result as Buffer).length);
  spy(Buffer, "from", (_self, _args, result) => (result as Buffer).length);
  // What was put together of pieces is laid out anew by each of these.
  for (const name of ["endsWith", "startsWith", "indexOf"]) spy(String.prototype, name, ({ length }) => length);
  spy(RegExp.prototype, "test", (_self, args) => String(args[0]).length);
  spy(RegExp.prototype, "exec", (_self, args) => String(args[0]).length);
  return {
    take() {
      const taken = work;
      work = 0;
      return taken;
    },
  };
}
