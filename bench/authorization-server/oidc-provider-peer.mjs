// The peer of the bench: node-oidc-provider with its memory adapter, set up for the same work as our server: code grant
// without ID token, access token as an ES256 JWT, session and grant present. Prints `Ready` once it listens on PORT.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const port = Number(process.env.PORT);
const issuer = `http://localhost:${port}`;
const audience = "https://api.example";
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "app",
      client_secret: process.env.CLIENT_SECRET,
      redirect_uris: ["https://client.example/cb"],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
      id_token_signed_response_alg: "ES256",
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig", kid: "one" }] },
  scopes: ["api"],
  cookies: { keys: ["bench"] },
  pkce: { required: () => false },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "api",
        audience,
        accessTokenFormat: "jwt",
        accessTokenTTL: 300,
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});
provider.listen(port, "127.0.0.1", () => process.stdout.write("Ready\n"));
