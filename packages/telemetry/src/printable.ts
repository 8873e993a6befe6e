// Text from outside on its way to a person: characters that steer a terminal, end a line or turn the direction of
// writing are shown as escapes, so that nobody's name or header can paint over what stands beside it.

// C0 and C1 controls, DEL, line and paragraph separators, and what turns the direction of text (Unicode TR 36 §2.1).
const steering = String.raw`\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069`;
const anySteering = new RegExp(`[${steering}]`);
const allSteering = new RegExp(`[${steering}]`, "g");
/**
 * Line feeds, tabs and colours stay: a bare carriage return would go back over the line, and other sequences move the
 * cursor.
 */
const betweenLines = new RegExp(String.raw`\r\n|\u001b\[[0-9;]*m|[\n\t]|[${steering}]`, "g");

/** The text on one line: `\n`, `\u009b`, as JSON writes them. */
export function printable(text: string): string {
  return anySteering.test(text) ? text.replace(allSteering, escaped) : text;
}

/** Lines for a terminal: what steers it is escaped, but for ends of lines, tabs and colours. */
export function terminalText(text: string): string {
  if (!anySteering.test(text)) return text;
  return text.replace(betweenLines, (found) =>
    found.length > 1 || found === "\n" || found === "\t" ? found : escaped(found),
  );
}

function escaped(character: string): string {
  const short = JSON.stringify(character).slice(1, -1);
  return short === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : short;
}
