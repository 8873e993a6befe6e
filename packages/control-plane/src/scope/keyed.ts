// A value with the key that its content makes. Stages behind `scope` take nothing else, so that whatever they depend on
// is in the key: what a cache finds by it cannot be out of date.
import { hash } from "node:crypto";
import type { Json } from "@tulle/config";

/**
 * Data that JSON text tells apart. A Map, a Date or a function has a text that leaves its content out, and two of them
 * with different content would have one key: the compiler refuses them.
 */
type PlainData<T> = [T] extends [Json | undefined]
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends
          | ((...args: never) => unknown)
          | ReadonlyMap<unknown, unknown>
          | ReadonlySet<unknown>
          | Date
          | ArrayBufferView
      ? never
      : T extends object
        ? { readonly [K in keyof T]: PlainData<T[K]> }
        : never;

export class Keyed<T> {
  /** Equal content, equal key. Values are built in one order of fields, so that their JSON text stands for them. */
  readonly key: string;
  readonly #value: T;

  private constructor(value: T) {
    this.key = hash("sha256", JSON.stringify(value), "base64url");
    this.#value = value;
  }

  static of<T>(value: T extends PlainData<T> ? T : never): Keyed<T> {
    return new Keyed<T>(value);
  }

  get value(): T {
    return this.#value;
  }
}
