// Which passwords are taken, wherever one is set: long enough, and none that is guessed first (NIST SP 800-63B
// §3.1.1.2: a list of common ones, and words of the account itself; no rules about kinds of characters, which make
// passwords worse).
import { maxPasswordCharacters } from "./passwords.ts";

export const minPasswordCharacters = 8;

export type PasswordFault = "short" | "long" | "control" | "common" | "personal";

/** Undefined when it is taken. The list of common passwords is loaded with the first question. */
export async function passwordFault(password: string, userName: string): Promise<PasswordFault | undefined> {
  const { length } = Array.from(password);
  if (length < minPasswordCharacters) return "short";
  if (length > maxPasswordCharacters) return "long";
  if (/\p{Cc}/u.test(password)) return "control";
  const lower = password.normalize("NFC").toLowerCase();
  const { commonPasswords } = await import("./common-passwords.ts");
  // One or two characters, however often, are in no list of that length.
  if (commonPasswords.has(lower) || new Set(lower).size <= 2) return "common";
  return isPersonal(lower, userName.normalize("NFC").toLowerCase()) ? "personal" : undefined;
}

/** The user's name, or what is before its `@`, with nothing but digits and signs around it: `ann-smith2026!`. */
function isPersonal(password: string, userName: string): boolean {
  const bare = (text: string): string => text.replaceAll(/[^\p{L}]/gu, "");
  return [userName, userName.split("@")[0]!].some((name) => bare(name) !== "" && bare(password) === bare(name));
}

/** For administrators; owners read it in their language. */
export const passwordFaultTexts: Readonly<Record<PasswordFault, string>> = {
  short: `the password has fewer than ${minPasswordCharacters} characters`,
  long: `the password has more than ${maxPasswordCharacters} characters`,
  control: "the password holds a control character",
  common: "the password is a common one, which is guessed first; choose another",
  personal: "the password is made of the user name, which is guessed first; choose another",
};
