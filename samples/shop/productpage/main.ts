// The product page's process. CATALOG_URL names the catalog; the mesh finds out where that is.
import path from "node:path";
import { serve } from "../serve.ts";
import { createProductpage } from "./productpage.ts";

const handler = await createProductpage({
  catalogUrl: process.env["CATALOG_URL"] ?? "http://catalog",
  staticFolder: path.join(import.meta.dirname, "static"),
});
serve("productpage", 9080, handler);
