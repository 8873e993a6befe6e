// Puts Tulle's programs and all that they load into a few files, by esbuild: for a clone (bundle.ts) and for what is
// installed (build-package.ts).
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build, type BuildOptions, type Metafile, type Plugin } from "esbuild";

/** By the program's name in the bundle. */
const programs: Readonly<Record<string, string>> = {
  tulle: "packages/cli/src/start",
  "authorization-server": "packages/authorization-server/src/run",
  "load-thread": "packages/config/src/load/load-thread",
  "machine-thread": "packages/local/src/namespaces/machine-thread",
};

const startsAtOnce: ReadonlySet<string> = new Set(["tulle", "load-thread", "machine-thread"]);

/** In a file of its own with all that it always needs: there are as many of these processes as pods. */
const agent = "packages/cli/src/agent-program";

/** Whether a file of a bundle is run, as its maps are not. */
export function isCode(file: string): boolean {
  return /\.[cm]js$/.test(file);
}

/** Loading the bundle's file starts it. */
function isRunAtOnce(file: string): boolean {
  return startsAtOnce.has(path.basename(file, ".mjs"));
}

/** Loads files of a bundle once, so that Node's compile cache has them: where that is, the environment says. */
export function compileFiles(files: readonly string[], environment: NodeJS.ProcessEnv): SpawnSyncReturns<string> {
  const urls = files.filter((file) => !isRunAtOnce(file)).map((file) => pathToFileURL(file).href);
  const program = `
    import { flushCompileCache } from "node:module";
    for (const url of ${JSON.stringify(urls)}) await import(url);
    flushCompileCache();
    process.exit(0);`;
  const env = { ...process.env, ...environment };
  return spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
}

/** In a source, the function that loads a module when it is needed, and at once then. */
const loader = "const load = createRequire(import.meta.url);\n";

/** They bring machine code, or are asked for and not there. */
const external = ["koffi", "@node-rs/argon2", "pg-native"];

/** Few agents need these libraries, and half a megabyte of text would be in each one's memory. */
const seldomLoaded = ["yaml", "re2js", "@grpc/proto-loader"];

export interface BundleSources {
  /** The folder of `packages`. */
  readonly root: string;
  /** Of the packages' files. */
  readonly extension: "ts" | "js";
  /** Where the bundle will lie: maps tell the sources from there. */
  readonly folder: string;
  /**
   * What stands in the place of a source's `import.meta.dirname` and `import.meta.url`: expressions. They may call
   * `__pathOf` (`fileURLToPath`) and `__place`, the URL of a file below the folder that the bundle's folder lies in.
   */
  readonly dirname: (file: string) => string;
  readonly url: (file: string) => string;
}

/** The bundle's files by name. */
export async function bundlePrograms(sources: BundleSources): Promise<ReadonlyMap<string, Uint8Array>> {
  const modules = await build({
    ...shared(sources),
    entryPoints: entries(sources, programs),
    outExtension: { ".js": ".mjs" },
    splitting: true,
    format: "esm",
    // Modules of CommonJS ask for others when they run.
    banner: {
      js: `import{createRequire as __createRequire}from"node:module";import{fileURLToPath as __pathOf}from"node:url";const require=__createRequire(import.meta.url),__bundleUrl=import.meta.url,${place};`,
    },
  });
  const alone = await build({
    ...shared(sources),
    entryPoints: entries(sources, { agent }),
    outExtension: { ".js": ".cjs" },
    // One file of it is loaded in three quarters of the time that sixty modules take.
    format: "cjs",
    minifyIdentifiers: true,
    external: [...external, ...seldomLoaded],
    banner: {
      js: `"use strict";const{fileURLToPath:__pathOf,pathToFileURL:__urlOf}=require("node:url"),__bundleUrl=__urlOf(__filename).href,${place};`,
    },
  });
  refuseUnnamed(modules.metafile);
  const outputs = [modules, alone].flatMap(({ outputFiles }) => outputFiles);
  return new Map(outputs.map((file) => [path.basename(file.path), file.contents]));
}

const place = "__place=(file)=>new URL(`../${file}`,__bundleUrl).href";

/**
 * Of both. The text of what runs is kept in memory: it is made short, and a letter beyond one byte doubles a file.
 * esbuild leaves those of regular expressions and of raw templates as they are.
 */
function shared(sources: BundleSources) {
  return {
    absWorkingDir: sources.root,
    nodePaths: [path.resolve(import.meta.dirname, "../node_modules")],
    outdir: sources.folder,
    bundle: true,
    minifyWhitespace: true,
    minifySyntax: true,
    charset: "ascii",
    legalComments: "none",
    write: false,
    metafile: true,
    sourcemap: true,
    sourcesContent: false,
    platform: "node",
    target: `node${process.versions.node}`,
    external,
    plugins: [inTheirPlaces(sources)],
    logLevel: "error",
  } as const satisfies BuildOptions;
}

function entries({ root, extension }: BundleSources, files: Readonly<Record<string, string>>) {
  return Object.entries(files).map(([name, file]) => ({ in: path.join(root, `${file}.${extension}`), out: name }));
}

/** A module of CommonJS that is imported when it is needed has no named exports in a bundle: `load` gives them. */
function refuseUnnamed({ inputs }: Metafile): void {
  for (const [source, { imports }] of Object.entries(inputs)) {
    for (const { kind, path: target } of imports) {
      if (kind !== "dynamic-import" || inputs[target]?.format !== "cjs") continue;
      throw new Error(
        `${source} imports ${target} when it is needed; a module of CommonJS has to be loaded by createRequire`,
      );
    }
  }
}

/** A source finds what lies beside it where it always did; what it loads when it is needed is bundled, too. */
function inTheirPlaces({ root, extension, dirname, url }: BundleSources): Plugin {
  const filter = new RegExp(`\\.${extension}$`);
  const packages = path.join(root, "packages") + path.sep;
  return {
    name: "places",
    setup(bundler) {
      bundler.onLoad({ filter }, async ({ path: file }) => {
        if (!file.startsWith(packages)) return undefined;
        let text = await readFile(file, "utf8");
        if (text.includes(loader)) text = text.replace(loader, "\n").replaceAll(/\bload\((?=["`])/g, "require(");
        text = text
          .replaceAll(/new URL\("\.\/([\w-]+)\.[tj]s", import\.meta\.url\)/g, (_all, name: string) => {
            if (!(name in programs))
              throw new Error(`${path.relative(root, file)} starts ${name}, which is not bundled`);
            return `new URL("./${name}.mjs", __bundleUrl)`;
          })
          .replaceAll("import.meta.dirname", dirname(file))
          .replaceAll("import.meta.url", url(file));
        return { contents: text, loader: extension };
      });
    },
  };
}
