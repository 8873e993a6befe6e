// The web front end. CATALOG_URL names the catalog, and CATALOG_GRPC its gRPC port, such as catalog:9090, by which it
// is read where it is set; the mesh finds out where that is.
import { serve } from "../serve.ts";
import { createWebapp } from "./webapp.ts";

const catalogUrl = process.env["CATALOG_URL"] ?? "http://catalog";
const { CATALOG_GRPC: grpcAddress = "", HTTP_PROXY: proxy } = process.env;
if (grpcAddress === "") {
  serve("webapp", 8080, createWebapp({ catalogUrl }));
} else {
  // Only then: its library costs a start.
  const { catalogByGrpc } = await import("./catalog-by-grpc.ts");
  serve("webapp", 8080, createWebapp({ catalogUrl, byGrpc: catalogByGrpc(grpcAddress, proxy) }));
}
