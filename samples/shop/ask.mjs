// Asks the catalog by gRPC through a sidecar, as that sidecar's app would. Runs on any Node from 18 on.
import { fileURLToPath } from "node:url";
import { credentials, loadPackageDefinition, Metadata, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [proxy, id, ...headers] = process.argv.slice(2);
if (proxy === undefined) {
  process.stderr.write("Usage: node samples/shop/ask.mjs <address of a sidecar> [item's id] [header=value ...]\n");
  process.exit(2);
}
const file = fileURLToPath(new URL("catalog/proto/shop.proto", import.meta.url));
const { shop } = loadPackageDefinition(loadSync(file));
const catalog = new shop.Catalog(`${proxy}:15007`, credentials.createInsecure(), {
  "grpc.default_authority": "catalog.shop:9090",
  "grpc.enable_http_proxy": 0,
});
const metadata = new Metadata();
for (const header of headers) metadata.set(...header.split(/=(.*)/s, 2));
const print = (error, answer) => {
  process.stdout.write(`${error === null ? JSON.stringify(answer) : `${status[error.code]}: ${error.details}`}\n`);
  if (error !== null) process.exitCode = 1;
  catalog.close();
};
const options = { deadline: Date.now() + 10_000 };
if (id === undefined) catalog.listItems({}, metadata, options, print);
else catalog.getItem({ id: Number(id) }, metadata, options, print);
