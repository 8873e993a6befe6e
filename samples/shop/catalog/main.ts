// The catalog service, by HTTP at PORT and by gRPC at PORT_GRPC. SHOW_IMAGE=true makes it version v2.
import { onEnd, serve } from "../serve.ts";
import { createCatalog } from "./catalog.ts";
import { serveGrpc } from "./serve-grpc.ts";
import { Stock } from "./stock.ts";

const stock = new Stock({
  showImage: process.env["SHOW_IMAGE"] === "true",
  imageBaseUrl: process.env["IMAGE_BASE_URL"] ?? "http://localhost:8080/static",
});
// First: whoever sees the HTTP port ready may call the other one.
const grpc = await serveGrpc(stock, `${process.env["HOST"] ?? "0.0.0.0"}:${process.env["PORT_GRPC"] ?? 9090}`);
onEnd(() => grpc.end());
serve("catalog", 3000, createCatalog(stock));
