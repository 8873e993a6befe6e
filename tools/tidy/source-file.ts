// What a tidy rule takes and gives.

export interface SourceFile {
  /** Relative to the repository's root, with forward slashes. */
  readonly path: string;
  /** Empty for a binary file. */
  readonly text: string;
}

export interface Finding {
  readonly place: string;
  /** From 1; absent when it is about the file as a whole. */
  readonly line?: number;
  /** A warning is a place to look at again and does not fail the run. */
  readonly severity: "error" | "warning";
  readonly message: string;
}

export type FileRule = (file: SourceFile) => readonly Finding[];

/** TypeScript and JavaScript that people write; what generators write is left alone. */
export function isHandWrittenCode(file: SourceFile): boolean {
  return /\.(ts|mjs)$/.test(file.path) && !isGenerated(file);
}

export function isGenerated(file: SourceFile): boolean {
  return file.path.startsWith("packages/xds/src/generated/");
}

/** One finding for each match of a pattern, at its line. */
export function findAll(file: SourceFile, pattern: RegExp, message: (match: string) => string): readonly Finding[] {
  return file.text.split("\n").flatMap((text, index) => {
    const match = pattern.exec(text);
    return match === null ? [] : [{ place: file.path, line: index + 1, severity: "error", message: message(match[0]) }];
  });
}
