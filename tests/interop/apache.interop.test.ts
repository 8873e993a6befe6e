// Apache's mod_auth_openidc against the authorization server, with its unchanged defaults: the quick start of its
// README.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { debianFolder } from "../tools/debian-folder.ts";
import type { DebianFolder } from "../tools/debian-folder.ts";
import { freePort, startProcess, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { everywhere, signInAt } from "./owner.ts";

let server: ListeningServer;
let debian: DebianFolder;

before(async () => {
  debian = await debianFolder(["apache2-bin", "libapache2-mod-auth-openidc"]);
  server = await listeningServer();
  await server.user();
});

after(() => server?.[Symbol.asyncDispose]());

const modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "dir", "headers", "alias", "auth_openidc"];

/** Apache's own part first; what the module is told stands at the end. */
function configuration(folder: string, port: number): string {
  const modulesFolder = path.join(debian.root, "usr/lib/apache2/modules");
  return `
ServerRoot "${folder}"
PidFile "${folder}/pid"
DefaultRuntimeDir "${folder}"
Mutex posixsem
Listen 127.0.0.1:${port}
ServerName 127.0.0.1:${port}
User nobody
Group nogroup
ErrorLog "${folder}/log"
LogLevel auth_openidc:info
${modules.map((name) => `LoadModule ${name}_module "${modulesFolder}/mod_${name}.so"`).join("\n")}
DocumentRoot "${folder}/pages"
DirectoryIndex index.html
<Location /secure>
  Header set x-user "expr=%{REMOTE_USER}"
  Header set x-subject "expr=%{reqenv:OIDC_CLAIM_sub}"
</Location>

OIDCProviderMetadataURL ${server.issuer}/.well-known/openid-configuration
OIDCClientID apache
OIDCClientSecret ${testSecret}
OIDCRedirectURI http://127.0.0.1:${port}/secure/redirect_uri
OIDCCryptoPassphrase any-secret-of-the-application
<Location /secure>
   AuthType openid-connect
   Require valid-user
</Location>
`;
}

test("mod_auth_openidc: login to the protected page, and logout at both", async () => {
  const folder = temporaryFolder("tulle-apache-");
  await chmod(folder, 0o755);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const bye = `${origin}/bye.html`;
  await server.client({
    id: "apache",
    redirectUris: [`${origin}/secure/redirect_uri`],
    postLogoutRedirectUris: [bye],
  });
  await mkdir(path.join(folder, "pages/secure"), { recursive: true });
  await writeFile(path.join(folder, "pages/secure/index.html"), "The protected page");
  await writeFile(path.join(folder, "pages/bye.html"), "Good bye");
  const file = path.join(folder, "httpd.conf");
  await writeFile(file, configuration(folder, port));
  await using apache = await startProcess(path.join(debian.root, "usr/sbin/apache2"), ["-f", file, "-DFOREGROUND"], {
    env: { LD_LIBRARY_PATH: debian.libraryPath },
    group: true,
  });
  const details = (): string => apache.output() + readFileSync(path.join(folder, "log"), "utf8");
  await waitFor(async () => (await fetch(bye)).ok, { what: "Apache to answer", details });

  const browser = everywhere();
  const page = await signInAt(browser, await browser.open(`${origin}/secure/`));
  assert.equal(page.body, "The protected page", details());
  assert.match(String(page.headers["x-subject"]), /^usr_/);
  assert.match(String(page.headers["x-user"]), /^usr_.*@/);

  const left = await browser.open(`${origin}/secure/redirect_uri?logout=${encodeURIComponent(bye)}`);
  assert.equal(left.body, "Good bye", details());
  const again = await browser.open(`${origin}/secure/`);
  assert.match(again.body, /name="username"/, "signed out at both");
});
