// The files that golden resources name, made for one run: `/etc/golden/…` stands for a folder of this machine, and so
// does the bundle of the machine's authorities, which not every machine has in that place.
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { TestAuthority, type WorkloadPem } from "../tools/workload-secrets.ts";

export class GoldenFiles implements AsyncDisposable {
  readonly folder: string;
  readonly workload: WorkloadPem;

  private constructor(folder: string, workload: WorkloadPem) {
    this.folder = folder;
    this.workload = workload;
  }

  static async create(): Promise<GoldenFiles> {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-golden-"));
    const workload = await (await TestAuthority.create()).issue("test", "golden");
    await Promise.all([
      writeFile(path.join(folder, "certificate.pem"), workload.chainPem),
      writeFile(path.join(folder, "key.pem"), workload.keyPem),
      writeFile(path.join(folder, "roots.pem"), workload.rootsPem),
      copyFile(path.join(import.meta.dirname, "destination-rule-tls/revoked.pem"), path.join(folder, "revoked.pem")),
    ]);
    return new GoldenFiles(folder, workload);
  }

  /** A golden file as this machine can take it. */
  place(text: string): string {
    return text
      .replaceAll("/etc/golden/", `${this.folder}/`)
      .replaceAll("/etc/ssl/certs/ca-certificates.crt", path.join(this.folder, "roots.pem"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
