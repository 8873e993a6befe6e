// The web front end. CATALOG_URL names the catalog; the mesh finds out where that is.
import { serve } from "../serve.ts";
import { createWebapp } from "./webapp.ts";

serve("webapp", 8080, createWebapp({ catalogUrl: process.env["CATALOG_URL"] ?? "http://catalog" }));
