/** What a YAML syntax error means for the person who wrote the file, and what to do about it. */
import type { YAMLError } from "yaml";

export interface Explanation {
  readonly message: string;
  readonly suggestion: string;
}

/** `lineIndex` is the line of the error in `text`, counted from 0. */
export function explainSyntax(error: YAMLError, text: string, lineIndex: number): Explanation {
  const line = (text.split("\n")[lineIndex] ?? "").trim();
  const isSecret = secretDocument.test(text);
  const excerpt = (part: string): string => (isSecret ? "(a line near a Secret is not shown)" : quoted(part));
  const reason = (): string => (isSecret ? "its text is not shown, since it holds a Secret" : lower(error.message));
  switch (error.code) {
    case "TAB_AS_INDENT":
      return {
        message: "a tab character indents this line",
        suggestion: "YAML allows only spaces there: replace the tab by spaces.",
      };
    case "BAD_INDENT":
      return {
        message: `the indentation of this line fits no line above it: ${excerpt(line)}`,
        suggestion: 'Begin it in the column of its neighbours, and close every "[" and "{" above.',
      };
    case "BLOCK_AS_IMPLICIT_KEY":
      return {
        message: `this line has two ": ", or a line below it is indented too far: ${excerpt(line)}`,
        suggestion: 'Put a text that contains ": " in quotes, and begin nested fields on a line of their own.',
      };
    case "MULTILINE_IMPLICIT_KEY":
    case "BLOCK_IN_FLOW":
      return {
        message: `this is no "name: value": ${excerpt(line)}`,
        suggestion: "Write a colon and a space after the name, and check the indentation of the next line.",
      };
    case "MISSING_CHAR":
      return error.message.includes("quote")
        ? { message: "a quoted text does not end", suggestion: "Add the closing quote." }
        : {
            message: `something is missing here (${reason()})`,
            suggestion: 'Write "name: value", and close every bracket.',
          };
    case "BAD_ALIAS":
      return {
        message: `"*" begins an alias in YAML: ${excerpt(line)}`,
        suggestion: 'If the text is meant, put it in quotes: "*".',
      };
    case "BAD_SCALAR_START":
      return {
        message: `a text may not begin with this character: ${excerpt(line)}`,
        suggestion: "Put the text in quotes.",
      };
    case "TAG_RESOLVE_FAILED":
      return { message: `a tag that nobody knows: ${reason()}`, suggestion: "Leave the tag out." };
    case "RESOURCE_EXHAUSTION":
      return { message: "the document is nested too deep to be read", suggestion: "Split it into several documents." };
    default:
      return {
        message: `the document cannot be read: ${reason()}`,
        suggestion: "Check the indentation and the quotes around this place.",
      };
  }
}

export function explainDuplicateKey(key: string, text: string): Explanation {
  const shown = secretDocument.test(text) ? "(a line near a Secret is not shown)" : quoted(key);
  return {
    message: `the field ${shown} is there twice`,
    suggestion: "Remove one of the two, or indent it below the object it belongs to.",
  };
}

function lower(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/**
 * A key that was pasted with the wrong indentation must not stand in a message, which goes to logs and to every reader.
 */
const secretDocument = /\bkind["']?\s*:\s*["']?Secret\b|-----BEGIN/;

function quoted(line: string): string {
  return JSON.stringify(line.length > 60 ? `${line.slice(0, 59)}…` : line);
}
