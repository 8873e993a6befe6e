/** A URL of something that the mesh asks by itself. */
import { type Format, quote } from "./formats.ts";

export const webUrl: Format = {
  name: "URL",
  description: "an http or https URL without credentials and fragment",
  check: (value) => {
    const url = URL.parse(value);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
      return `${quote(value)} is not an http or https URL`;
    }
    if (url.username !== "" || url.password !== "") return "a URL with a user name or password is not taken";
    return url.hash === "" ? undefined : "a URL with a fragment is not taken";
  },
  jsonSchema: { minLength: 1 },
};
