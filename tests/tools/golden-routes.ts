// What the control plane sends of routes in each golden case, for tests of the proxy, which takes them.
import { goldenCaseNames, resourcesFromGolden, storedFiles } from "../golden/golden-cases.ts";

/** The last part of a file: what stands before it takes longer to read. */
function routesOf(text: string): string {
  const start = text.search(/^RDS:/m);
  if (start === -1) throw new Error("a golden file without RDS");
  return text.slice(start);
}

/** The encoded route configurations of all proxies of a case. */
export async function goldenRoutes(): Promise<
  readonly { readonly name: string; readonly routes: readonly Uint8Array[] }[]
> {
  const names = await goldenCaseNames();
  return Promise.all(
    names.map(async (name) => {
      const files = [...(await storedFiles(name))].filter(([file]) => file.endsWith(".xds.yaml"));
      return {
        name,
        routes: files.flatMap(([, text]) =>
          [...resourcesFromGolden(routesOf(text)).RDS.values()].map(({ any }) => any.value),
        ),
      };
    }),
  );
}
