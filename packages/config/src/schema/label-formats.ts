/**
 * The formats of labels and of selectors by labels: what Kubernetes takes of the one, and what Istio checks of the
 * other.
 */
import { describe, dnsSubdomain, quote, type Format } from "./formats.ts";

const labelPart = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?";
const labelPartExpression = new RegExp(`^${labelPart}$`);

/** The value of a Kubernetes label. */
export const labelValue: Format = {
  name: "label value",
  description: 'empty, or at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit',
  check: (value) =>
    value === "" || (value.length <= 63 && labelPartExpression.test(value))
      ? undefined
      : `${quote(value)} is not a ${describe(labelValue)}`,
  jsonSchema: { maxLength: 63 },
};

/** The key of a label or of an annotation: `name` or `prefix/name`. */
export const labelKey: Format = {
  name: "label key",
  description: 'a name of at most 63 letters, digits, "-", "_" and ".", with an optional DNS name and "/" in front',
  check: (value) => {
    const slash = value.indexOf("/");
    const name = slash === -1 ? value : value.slice(slash + 1);
    const fine =
      name.length <= 63 &&
      labelPartExpression.test(name) &&
      (slash === -1 || dnsSubdomain.check(value.slice(0, slash)) === undefined);
    return fine ? undefined : `${quote(value)} is not a ${describe(labelKey)}`;
  },
};

/** Selectors may ask for labels that no pod can have; Istio takes them, and they choose nothing. */
export const selectedLabelKey: Format = {
  name: "label key of a selector",
  description: labelKey.description,
  check: (value) => {
    if (value === "") return "a label key may not be empty";
    return value.includes("*") ? `${quote(value)}: selectors take no wildcard` : undefined;
  },
  warn: (value) => noPodHas(labelKey.check(value)),
  jsonSchema: { minLength: 1 },
};

export const selectedLabelValue: Format = {
  name: "label value of a selector",
  description: labelValue.description,
  check: (value) => {
    if (value.includes("*")) return `${quote(value)}: selectors take no wildcard`;
    return value.length > 63 ? labelValue.check(value) : undefined;
  },
  warn: (value) => noPodHas(labelValue.check(value)),
  jsonSchema: { maxLength: 63 },
};

/** The selector of a Gateway, of which Istio checks nothing. */
export const gatewayLabelKey: Format = { ...selectedLabelKey, check: () => undefined };
export const gatewayLabelValue: Format = { ...selectedLabelValue, check: () => undefined };

function noPodHas(wrong: string | undefined): string | undefined {
  return wrong === undefined ? undefined : `${wrong}, so that no pod has it`;
}
