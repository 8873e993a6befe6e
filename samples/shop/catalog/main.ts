// The catalog service. SHOW_IMAGE=true makes it version v2.
import { serve } from "../serve.ts";
import { createCatalog } from "./catalog.ts";

serve(
  "catalog",
  3000,
  createCatalog({
    showImage: process.env["SHOW_IMAGE"] === "true",
    imageBaseUrl: process.env["IMAGE_BASE_URL"] ?? "http://localhost:8080/static",
  }),
);
