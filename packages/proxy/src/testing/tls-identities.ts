// Certificates for tests of TLS, made by OpenSSL: an authority, and whatever a good or a bad peer may show.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";

export interface TestIdentity {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

export interface TestIdentityOptions {
  readonly subject?: string;
  /** As OpenSSL writes them: `URI:spiffe://…`, `DNS:a.example`. */
  readonly names?: readonly string[];
  /** Signs itself without one. */
  readonly authority?: TestIdentity;
  readonly isAuthority?: boolean;
  /** Days from now; negative = before now. */
  readonly fromDays?: number;
  readonly toDays?: number;
}

const dayMs = 86_400_000;

/** `20261120120000Z` */
function asn1Time(days: number): string {
  const text = new Date(Date.now() + days * dayMs).toISOString();
  return `${text.slice(0, 19).replace(/[-:T]/g, "")}Z`;
}

export async function testIdentity(options: TestIdentityOptions): Promise<TestIdentity> {
  const { subject = "/CN=test", names = [], authority, isAuthority = false, fromDays = -1, toDays = 30 } = options;
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-tls-"));
  try {
    const program = await debianTool("openssl");
    const file = (name: string): string => path.join(folder, name);
    const run = async (...args: readonly string[]): Promise<void> => {
      const result = await runCommand(program, args, { cwd: folder });
      if (result.code !== 0) throw new Error(`openssl ${args[0]}: ${result.stderr}`);
    };
    const san = names.length === 0 ? "" : `subjectAltName=${names.join(",")}\n`;
    const usage = isAuthority ? "keyUsage=critical,keyCertSign,cRLSign" : "keyUsage=critical,digitalSignature";
    const extensions = `basicConstraints=critical,CA:${isAuthority ? "TRUE" : "FALSE"}\n${usage}\n${san}`;
    const configuration = `[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\nx509_extensions=x\nunique_subject=no\npreserve=yes\n[p]\ncommonName=optional\norganizationName=optional\norganizationalUnitName=optional\ncountryName=optional\n[req]\nstring_mask=utf8only\ndistinguished_name=n\n[n]\n[x]\n${extensions}`;
    await writeFile(file("openssl.cnf"), configuration);
    await writeFile(file("index.txt"), "");
    await writeFile(
      file("serial"),
      `${Math.floor(Math.random() * 0xff_ff_ff)
        .toString(16)
        .padStart(6, "1")}\n`,
    );
    const newKey = ["-utf8", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem"];
    await run("req", "-new", ...newKey, "-config", "openssl.cnf", "-subj", subject, "-out", "request.pem");
    const signer = ["-keyfile", "signer.key"];
    if (authority === undefined) signer.push("-selfsign");
    else {
      await writeFile(file("signer.pem"), authority.certificate);
      signer.push("-cert", "signer.pem");
    }
    await writeFile(file("signer.key"), authority?.key ?? (await readFile(file("key.pem"), "utf8")), { mode: 0o600 });
    const times = ["-startdate", asn1Time(fromDays), "-enddate", asn1Time(toDays)];
    await run(
      "ca",
      "-batch",
      "-utf8",
      "-notext",
      "-config",
      "openssl.cnf",
      ...signer,
      ...times,
      "-in",
      "request.pem",
      "-out",
      "certificate.pem",
    );
    return {
      certificate: await readFile(file("certificate.pem"), "utf8"),
      key: await readFile(file("key.pem"), "utf8"),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
