// Spares Tulle's processes most of the questions that Node's module loader asks the disk. A proxy has 500 modules;
// where each import leads took a quarter of its start, and there are as many starts as pods.
import { registerHooks } from "node:module";

type ResolveHook = NonNullable<Parameters<typeof registerHooks>[0]["resolve"]>;

/**
 * For imports in the TypeScript files below `sources` (a `file:` URL that ends in a slash). An import of a file by its
 * relative path can lead nowhere else, and all packages here are ES modules. One of a package leads to the same place
 * from everywhere in the importing package, so that Node is asked once. Everything else is Node's to answer, as is
 * loading: what does not exist fails there.
 */
export function quickResolve(sources: string): ResolveHook {
  const answers = new Map<string, ReturnType<ResolveHook>>();
  return (specifier, context, nextResolve) => {
    if (specifier.startsWith("node:")) return { url: specifier, format: "builtin", shortCircuit: true };
    const { parentURL } = context;
    if (parentURL === undefined || !parentURL.startsWith(sources) || !parentURL.endsWith(".ts")) {
      return nextResolve(specifier, context);
    }
    if (specifier.startsWith(".")) {
      if (!specifier.endsWith(".ts")) return nextResolve(specifier, context);
      return { url: new URL(specifier, parentURL).href, format: "module-typescript", shortCircuit: true };
    }
    if (!/^[@a-z]/.test(specifier) || specifier.startsWith("file:")) return nextResolve(specifier, context);
    const importer = parentURL.slice(sources.length, parentURL.indexOf("/", sources.length));
    const key = `${importer} ${context.conditions.join()} ${specifier}`;
    let answer = answers.get(key);
    if (answer === undefined) {
      answer = { ...nextResolve(specifier, context), shortCircuit: true };
      answers.set(key, answer);
    }
    return answer;
  };
}
