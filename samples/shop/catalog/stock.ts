// What one catalog process has: its items with their prices of now, and the share of requests that fail. Both of its
// ports answer from it.
import { items, type Item } from "./items.ts";

export interface StockOptions {
  /** Version v2: items carry `imageUrl`. */
  readonly showImage: boolean;
  /** Where the pictures lie. */
  readonly imageBaseUrl: string;
  /** Gives a number from 0 up to 1; decides which requests fail. */
  readonly random?: () => number;
}

export class Stock {
  readonly #items: Item[];
  readonly #random: () => number;
  /** Share of requests that fail, 0 to 100. */
  faultPercentage = 0;

  constructor({ showImage, imageBaseUrl, random = Math.random }: StockOptions) {
    this.#items = items.map((item) =>
      showImage ? { ...item, imageUrl: `${imageBaseUrl}/item-${item.id}.svg` } : item,
    );
    this.#random = random;
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  item(id: string): Item | undefined {
    return this.#items.find((each) => String(each.id) === id);
  }

  /** For as long as this process lives: the samples have no database. */
  setPrice(id: number, price: string): Item | undefined {
    const index = this.#items.findIndex((each) => each.id === id);
    if (index >= 0) this.#items[index] = { ...this.#items[index]!, price };
    return this.#items[index];
  }

  /** Whether the fault switch lets this request fail. */
  fails(): boolean {
    return this.#random() * 100 < this.faultPercentage;
  }
}
