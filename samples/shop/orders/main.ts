// The orders service. ISSUER, AUDIENCE and JWKS_URL say whose tokens it accepts, USERINFO_URL who has them.
import { serve } from "../serve.ts";
import { createOrders } from "./orders.ts";

function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is missing`);
  return value;
}

const options = {
  issuer: needed("ISSUER"),
  audience: needed("AUDIENCE"),
  jwksUrl: needed("JWKS_URL"),
  userInfoUrl: needed("USERINFO_URL"),
  signOutPath: needed("SIGN_OUT_PATH"),
};
serve("orders", 3100, createOrders(options));
