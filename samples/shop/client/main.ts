// The client application. Its secret is given to it, or lies in a file that the authorization server's `--demo` has
// written, which may come into being after this program has started.
import { readFileSync } from "node:fs";
import { serve } from "../serve.ts";
import { createClientApplication } from "./client.ts";

function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is missing`);
  return value;
}

const secret = process.env["CLIENT_SECRET"];
const credentialsFile = needed("CREDENTIALS_FILE");
serve(
  "client",
  3200,
  createClientApplication({
    baseUrl: needed("BASE_URL"),
    issuer: needed("ISSUER"),
    issuerOriginInside: needed("ISSUER_ORIGIN_INSIDE"),
    ordersUrl: needed("ORDERS_URL"),
    credentials: () =>
      secret === undefined
        ? (JSON.parse(readFileSync(credentialsFile, "utf8")) as { clientId: string; clientSecret: string })
        : { clientId: "demo-client", clientSecret: secret },
    hint: `Sign in as “demo”. The password is in ${secret === undefined ? `samples/shop/${credentialsFile}` : "the Secret shop-demo"}.`,
  }),
);
