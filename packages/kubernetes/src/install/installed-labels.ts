// Labels of all that is installed: by the first of them `tulle uninstall` finds it again, whoever has installed it.
import { type Expression, value } from "./template.ts";

const partOfLabel = "app.kubernetes.io/part-of";
export const partOfTulle = "tulle";

/** `component` is the chart's name. */
export function partOf(component: string): Readonly<Record<string, string | Expression>> {
  return {
    "app.kubernetes.io/name": component,
    [partOfLabel]: partOfTulle,
    "app.kubernetes.io/version": value("global.tag"),
  };
}
