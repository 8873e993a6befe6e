// Certificates for tests of the transport, made by OpenSSL: an authority with an intermediate, and leaves of it.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";

export interface TestLeaf {
  readonly privateKeyPem: string;
  /** The leaf, then the intermediate. */
  readonly certChainPem: string;
}

export interface TestAuthority {
  readonly rootPem: string;
  /** `names` as OpenSSL writes them: `DNS:example.com,URI:spiffe://…`. */
  readonly leaf: (names: string) => Promise<TestLeaf>;
}

const run = promisify(execFile);
const caExtensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n";

export async function testAuthority(context: TestContext): Promise<TestAuthority> {
  const openssl = await debianTool("openssl");
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-xds-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const issue = async (name: string, extensions: string, issuer: string | undefined): Promise<void> => {
    const [key, csr, certificate, config] = ["key", "csr", "pem", "cnf"].map((kind) => `${name}.${kind}`) as [
      string,
      string,
      string,
      string,
    ];
    await writeFile(path.join(folder, config), extensions);
    const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key];
    const options = { cwd: folder, timeout: 60_000 };
    await run(openssl, ["req", "-new", ...newKey, "-subj", `/CN=${name}`, "-out", csr], options);
    const signer =
      issuer === undefined ? ["-signkey", key] : ["-CA", `${issuer}.pem`, "-CAkey", `${issuer}.key`, "-CAcreateserial"];
    await run(
      openssl,
      ["x509", "-req", "-in", csr, ...signer, "-days", "2", "-extfile", config, "-out", certificate],
      options,
    );
  };
  await issue("root", caExtensions, undefined);
  await issue("intermediate", caExtensions, "root");
  const read = (file: string): Promise<string> => readFile(path.join(folder, file), "utf8");
  let leaves = 0;
  return {
    rootPem: await read("root.pem"),
    leaf: async (names) => {
      leaves += 1;
      const name = `leaf${leaves}`;
      await issue(name, `subjectAltName=${names}\nkeyUsage=critical,digitalSignature\n`, "intermediate");
      return {
        privateKeyPem: await read(`${name}.key`),
        certChainPem: (await read(`${name}.pem`)) + (await read("intermediate.pem")),
      };
    },
  };
}
