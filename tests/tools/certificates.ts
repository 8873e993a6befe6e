// Certificates for tests, made by OpenSSL in a folder that ends with the call: nothing of it is kept, and no key lies in the
// repository.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianTool } from "./debian-tool.ts";
import { lastLines, runCommand } from "./run-command.ts";

export interface TestCertificate {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

export interface TestCertificateOptions {
  readonly commonName: string;
  /** Subject alternative names as OpenSSL writes them: `DNS:shop.example`, `IP:127.0.0.1`, `URI:spiffe://…`. */
  readonly names?: readonly string[];
  /** Signs with its own key without one. */
  readonly issuer?: TestCertificate;
  readonly isAuthority?: boolean;
  /** Below zero, with an issuer: it has expired. */
  readonly days?: number;
}

/** A P-256 key with its certificate. */
export async function testCertificate(options: TestCertificateOptions): Promise<TestCertificate> {
  const { commonName, names = [], issuer, isAuthority = false, days = 30 } = options;
  return inFolder(async (folder, openssl) => {
    const extensions = [
      `basicConstraints=critical,CA:${isAuthority ? "TRUE" : "FALSE"}`,
      `keyUsage=critical,${isAuthority ? "keyCertSign,cRLSign" : "digitalSignature"}`,
      ...(names.length === 0 ? [] : [`subjectAltName=${names.join(",")}`]),
    ];
    const request = [
      ..."req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -subj".split(" "),
      `/CN=${commonName}`,
      ...extensions.flatMap((extension) => ["-addext", extension]),
    ];
    if (issuer === undefined) await openssl([...request, "-x509", "-days", String(days), "-out", "new.crt"]);
    else {
      await writeFile(path.join(folder, "issuer.crt"), issuer.certificate);
      await writeFile(path.join(folder, "issuer.key"), issuer.key, { mode: 0o600 });
      await openssl([...request, "-new", "-out", "new.csr"]);
      const sign = "x509 -req -in new.csr -CA issuer.crt -CAkey issuer.key -out new.crt -copy_extensions copy -days";
      await openssl([...sign.split(" "), String(days)]);
    }
    const [certificate, key] = await Promise.all(
      ["new.crt", "new.key"].map((name) => readFile(path.join(folder, name), "utf8")),
    );
    return { certificate: certificate!, key: key! };
  });
}

/** A list of an authority (PEM) that revokes the given certificate. */
export async function testRevocationList(authority: TestCertificate, revoked: string): Promise<string> {
  return inFolder(async (folder, openssl) => {
    await writeFile(path.join(folder, "ca.crt"), authority.certificate);
    await writeFile(path.join(folder, "ca.key"), authority.key, { mode: 0o600 });
    await writeFile(path.join(folder, "revoked.crt"), revoked);
    await writeFile(path.join(folder, "index.txt"), "");
    await writeFile(
      path.join(folder, "ca.cnf"),
      "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=30\ncertificate=ca.crt\nprivate_key=ca.key\n",
    );
    await openssl(["ca", "-config", "ca.cnf", "-revoke", "revoked.crt"]);
    await openssl(["ca", "-config", "ca.cnf", "-gencrl", "-out", "list.pem"]);
    return readFile(path.join(folder, "list.pem"), "utf8");
  });
}

async function inFolder<T>(
  work: (folder: string, openssl: (args: readonly string[]) => Promise<void>) => Promise<T>,
): Promise<T> {
  const program = await debianTool("openssl");
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-certificates-"));
  try {
    return await work(folder, async (args) => {
      const result = await runCommand(program, args, { cwd: folder });
      if (result.code !== 0) throw new Error(`openssl ${args[0]}: ${lastLines(result)}`);
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
