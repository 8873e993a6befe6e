// Deletions, edits and kills in random order, several at a time: it always ends where a fresh start ends.
import { test } from "node:test";
import { keyOf } from "@tulle/config";
import { helloDeployment, SmallMesh } from "./small-mesh.ts";
import { seededRandom } from "./shop-load.ts";

const seeds = [18, 1_018_018, 77_007];
const rounds = 8;
const stepsInARound = 5;

class Disorder {
  readonly #mesh: SmallMesh;
  readonly #random: () => number;
  replicas = 2;

  constructor(mesh: SmallMesh, random: () => number) {
    this.#mesh = mesh;
    this.#random = random;
  }

  #oneOf<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  /** One step; answers what it was. The control plane may just have been killed: then nothing can be written. */
  async step(): Promise<string> {
    const step = this.#oneOf(this.#steps)!;
    try {
      return await step();
    } catch (error) {
      return `failed: ${(error as Error).message}`;
    }
  }

  readonly #steps: readonly (() => Promise<string>)[] = [
    async () => {
      const row = this.#oneOf(await this.#mesh.podRows());
      if (row === undefined) return "no pod to delete";
      await this.#mesh.api.delete(keyOf(row), { atOnce: this.#random() < 0.3 });
      return `delete ${row.metadata.name}`;
    },
    async () => {
      const row = this.#oneOf(await this.#mesh.sliceRows());
      if (row === undefined) return "no endpoints to change";
      if (this.#random() < 0.5) await this.#mesh.api.delete(keyOf(row));
      else await this.#mesh.api.apply({ ...row, endpoints: [] });
      return `change ${row.metadata.name}`;
    },
    async () => {
      const row = this.#oneOf(await this.#mesh.podRows());
      if (row === undefined) return "no pod to invent";
      const name = `hello-invented-${Math.floor(this.#random() * 1000)}`;
      await this.#mesh.api.apply({ ...row, metadata: { ...row.metadata, name } });
      return `invent ${name}`;
    },
    async () => {
      const [name, pid] = this.#oneOf([...(await this.#mesh.processes())]) ?? [];
      if (pid !== undefined) process.kill(pid, "SIGKILL");
      return `kill ${name}`;
    },
    async () => {
      this.replicas = Math.floor(this.#random() * 4);
      const spec = { ...helloDeployment.spec, replicas: this.replicas };
      await this.#mesh.write({ ...helloDeployment, spec });
      return `scale to ${this.replicas}`;
    },
    async () => {
      this.replicas = 0;
      await this.#mesh.write(undefined);
      return "remove the Deployment";
    },
    async () => {
      const at = String(Math.floor(this.#random() * 1e9));
      for (const row of await this.#mesh.podRows()) {
        const annotations = { ...row.metadata.annotations, "local.tulle.io/restarted-at": at };
        await this.#mesh.api.apply({ ...row, metadata: { ...row.metadata, annotations } });
      }
      return "restart";
    },
  ];
}

for (const seed of seeds) {
  test(`whatever happens, the mesh becomes whole again (seed ${seed})`, async () => {
    await using mesh = await SmallMesh.start();
    const disorder = new Disorder(mesh, seededRandom(seed));
    const history: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (let step = 0; step < stepsInARound; step += 1) history.push(await disorder.step());
      history.push(`-> ${disorder.replicas}`);
      await mesh.waitUntilConverged(disorder.replicas).catch((error: unknown) => {
        throw new Error(`after\n${history.join("\n")}`, { cause: error });
      });
    }
  });
}
