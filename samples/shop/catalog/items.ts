// What the shop sells.

export interface Item {
  readonly id: number;
  readonly color: string;
  readonly department: string;
  readonly name: string;
  /** Decimal amount with two fraction digits. */
  readonly price: string;
  /** Only in version v2 of the catalog. */
  readonly imageUrl?: string;
}

export const items: readonly Item[] = [
  { id: 1, color: "amber", department: "Eyewear", name: "Lighthouse Glasses", price: "282.00" },
  { id: 2, color: "cyan", department: "Clothing", name: "Harbour Jumper", price: "119.50" },
  { id: 3, color: "teal", department: "Kitchen", name: "Stoneware Teapot", price: "64.00" },
  { id: 4, color: "indigo", department: "Garden", name: "Evening Lantern", price: "38.90" },
  { id: 5, color: "olive", department: "Books", name: "Field Guide to Ferns", price: "27.00" },
  { id: 6, color: "crimson", department: "Toys", name: "Wooden Tram", price: "45.25" },
];
