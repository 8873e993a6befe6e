/** How large one document may be, however it came: as YAML or as JSON over the API. */

/** Values of one document. */
export const maxDocumentValues = 200_000;
/**
 * Of those, values that aliases stand for: a text of a few hundred characters, which is read beside other work, is not
 * to cost more.
 */
export const maxAliasedValues = 20_000;
/** Deepest nesting; the deepest schema needs 14. */
export const maxDocumentDepth = 64;
/** As text. A request to the API is no larger, and neither is an object in Kubernetes. */
export const maxDocumentCharacters = 3 * 1024 * 1024;

/**
 * What is too much of a value that came as JSON; undefined when nothing is. Without recursion, since its depth is what
 * is asked.
 */
export function beyondBounds(document: unknown): string | undefined {
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value: document, depth: 0 }];
  let values = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth } = next;
    values += 1;
    if (values > maxDocumentValues) return `the document has more than ${maxDocumentValues} values`;
    if (depth > maxDocumentDepth) return `the document is nested deeper than ${maxDocumentDepth} levels`;
    if (typeof value !== "object" || value === null) continue;
    for (const below of Object.values(value)) waiting.push({ value: below, depth: depth + 1 });
  }
  return undefined;
}
