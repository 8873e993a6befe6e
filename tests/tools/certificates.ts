// Certificates for tests, made by OpenSSL, which is none of ours, in a folder that ends with the call: nothing of it is
// kept, and no key lies in the repository. Those that a mesh's own authority signs, thousands in a second and at any
// time of a clock, come from `@tulle/identity/testing`.
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
  readonly commonName?: string;
  /** In its place, as OpenSSL takes it: `/O=cluster.local/CN=a`. */
  readonly subject?: string;
  /** Subject alternative names as OpenSSL writes them: `DNS:shop.example`, `IP:127.0.0.1`, `URI:spiffe://…`. */
  readonly names?: readonly string[];
  /** Signs with its own key without one. */
  readonly issuer?: TestCertificate;
  readonly isAuthority?: boolean;
  /** When it begins and ends, in days from now; below zero = before now. */
  readonly fromDays?: number;
  readonly days?: number;
}

/** A P-256 key with its certificate. */
export async function testCertificate(options: TestCertificateOptions): Promise<TestCertificate> {
  const { commonName = "test", subject = `/CN=${commonName}`, names = [], issuer, isAuthority = false } = options;
  const { days = 30, fromDays = Math.min(days, 0) - 1 } = options;
  return inFolder(async (folder, openssl) => {
    const file = (name: string): string => path.join(folder, name);
    const extensions = [
      `basicConstraints=critical,CA:${isAuthority ? "TRUE" : "FALSE"}`,
      `keyUsage=critical,${isAuthority ? "keyCertSign,cRLSign" : "digitalSignature"}`,
      ...(names.length === 0 ? [] : [`subjectAltName=${names.join(",")}`]),
    ];
    await writeFile(file("index.txt"), "");
    await writeFile(file("openssl.cnf"), authorityConfiguration(extensions));
    const newKey = "req -new -utf8 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -out new.csr";
    await openssl([...newKey.split(" "), "-config", "openssl.cnf", "-subj", subject]);
    if (issuer !== undefined) {
      await writeFile(file("issuer.crt"), issuer.certificate);
      await writeFile(file("issuer.key"), issuer.key, { mode: 0o600 });
    }
    // `x509` of OpenSSL 3.0 knows no certificates that begin at another time than now.
    const sign = "ca -batch -utf8 -notext -config openssl.cnf -in new.csr -out new.crt";
    const signer = issuer === undefined ? "-selfsign -keyfile new.key" : "-cert issuer.crt -keyfile issuer.key";
    const times = ["-startdate", asn1Time(fromDays), "-enddate", asn1Time(days)];
    await openssl([...sign.split(" "), ...signer.split(" "), ...times]);
    const [certificate, key] = await Promise.all(["new.crt", "new.key"].map((name) => readFile(file(name), "utf8")));
    return { certificate: certificate!, key: key! };
  });
}

function authorityConfiguration(extensions: readonly string[]): string {
  return `[ca]
default_ca=d
[d]
database=index.txt
new_certs_dir=.
rand_serial=yes
default_md=sha256
policy=p
x509_extensions=x
unique_subject=no
preserve=yes
[p]
commonName=optional
organizationName=optional
organizationalUnitName=optional
countryName=optional
[req]
string_mask=utf8only
distinguished_name=n
[n]
[x]
${extensions.join("\n")}
`;
}

/** `20261120120000Z` */
function asn1Time(days: number): string {
  const text = new Date(Date.now() + days * 86_400_000).toISOString();
  return `${text.slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
}

export interface TestAuthority {
  readonly rootPem: string;
  /** `names` as OpenSSL writes them, with commas between. The chain is the leaf, then the intermediate. */
  readonly leaf: (names: string) => Promise<{ readonly privateKeyPem: string; readonly certChainPem: string }>;
}

/** A root, and an intermediate that signs the leaves. */
export async function testAuthority(): Promise<TestAuthority> {
  const root = await testCertificate({ commonName: "root", isAuthority: true });
  const issuer = await testCertificate({ commonName: "intermediate", isAuthority: true, issuer: root });
  return {
    rootPem: root.certificate,
    leaf: async (names) => {
      const { certificate, key } = await testCertificate({ commonName: "leaf", names: [names], issuer });
      return { privateKeyPem: key, certChainPem: certificate + issuer.certificate };
    },
  };
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
