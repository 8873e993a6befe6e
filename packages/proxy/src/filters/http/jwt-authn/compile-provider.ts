// An issuer of tokens and what is asked of them (extensions.filters.http.jwt_authn.v3.JwtProvider).
import { hash } from "node:crypto";
import type { JwtProvider } from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import { durationMs } from "../../../fields/duration.ts";
import { compileStringMatcher } from "../../../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { type AudienceCheck, compileAudienceCheck } from "./audience-check.ts";
import { KeySet, readKeySet } from "./key-set.ts";

export interface Provider {
  readonly name: string;
  readonly message: JwtProvider;
  readonly areAudiencesAllowed: AudienceCheck;
  readonly isSubjectAllowed: (subject: string) => boolean;
  /** How much of its life a token may have before it; Infinity = any; undefined = a token may be without an end. */
  readonly maxLifetimeSeconds: number | undefined;
  readonly clockSkewSeconds: number;
  readonly keys: KeySet;
  /** Another one after every change of the keys. */
  readonly keySetVersion: string;
}

const defaultClockSkewSeconds = 60;
/** Of a provider that is refused anyway. */
const noKeys = new KeySet([]);

export function compileProvider(name: string, message: JwtProvider, place: Place, problems: Problems): Provider {
  checkHeaderNames(message, place, problems);
  const jwks = localKeys(message, place, problems);
  const read = jwks === undefined ? undefined : readKeySet(jwks);
  if (read?.ok === false) problems.error(place.field("local_jwks"), `invalid local jwks: ${read.reason}`);
  if (read?.ok === true) {
    for (const complaint of read.complaints) problems.warning(place.field("local_jwks"), complaint);
  }
  const { subjects, maxLifetime } = message;
  return {
    name,
    message,
    areAudiencesAllowed: compileAudienceCheck(message.audiences),
    isSubjectAllowed: subjects ? compileStringMatcher(subjects, place.field("subjects"), problems) : () => true,
    maxLifetimeSeconds:
      maxLifetime === undefined
        ? message.requireExpiration
          ? Infinity
          : undefined
        : durationMs(maxLifetime, 0) / 1000,
    clockSkewSeconds: message.clockSkewSeconds === 0 ? defaultClockSkewSeconds : message.clockSkewSeconds,
    keys: read?.ok === true ? read.keys : noKeys,
    keySetVersion: hash("sha256", JSON.stringify([message.issuer, jwks]), "base64url"),
  };
}

function checkHeaderNames(message: JwtProvider, place: Place, problems: Problems): void {
  for (const [index, { name }] of message.fromHeaders.entries()) {
    if (name === "") {
      problems.error(place.field("from_headers", index).field("name"), "value length must be at least 1 characters");
    }
  }
  for (const [index, { headerName, claimName, claimPath }] of message.claimToHeaders.entries()) {
    const at = place.field("claim_to_headers", index);
    if (headerName === "") problems.error(at.field("header_name"), "value length must be at least 1 characters");
    if (claimName === "" && claimPath.length === 0) problems.error(at, "claim_name or claim_path is required");
  }
}

function localKeys(message: JwtProvider, place: Place, problems: Problems): string | undefined {
  const source = message.jwksSourceSpecifier;
  if (source.case === "remoteJwks") {
    problems.error(place.field("remote_jwks"), "only local_jwks is supported: the control plane fetches the keys");
    return undefined;
  }
  if (source.case === undefined) {
    problems.error(place.field("jwks_source_specifier"), "is required");
    return undefined;
  }
  const { specifier } = source.value;
  const at = place.field("local_jwks");
  switch (specifier.case) {
    case "inlineString":
      return specifier.value;
    case "inlineBytes":
      return Buffer.from(specifier.value).toString("utf8");
    case "filename":
      problems.error(at.field("filename"), "this field is not supported");
      return undefined;
    case "environmentVariable":
      problems.error(at.field("environment_variable"), "this field is not supported");
      return undefined;
    case undefined:
      problems.error(at.field("specifier"), "is required");
      return undefined;
  }
}
