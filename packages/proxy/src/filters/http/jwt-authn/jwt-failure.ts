// Why a token does not count. The text is the answer's body and part of its code details, word for word as Envoy's.

export const jwtFailures = {
  missing: "Jwt is missing",
  notYetValid: "Jwt not yet valid",
  expired: "Jwt is expired",
  badFormat: "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
  headerBadBase64: "Jwt header is an invalid Base64url encoded",
  headerBadJson: "Jwt header is an invalid JSON",
  headerBadAlg: "Jwt header [alg] field is required and must be a string",
  headerUnknownAlg: "Jwt header [alg] is not supported",
  headerBadKid: "Jwt header [kid] field is not a string",
  payloadBadBase64: "Jwt payload is an invalid Base64url encoded",
  payloadBadJson: "Jwt payload is an invalid JSON",
  issNotString: "Jwt payload [iss] field is not a string",
  subNotString: "Jwt payload [sub] field is not a string",
  jtiNotString: "Jwt payload [jti] field is not a string",
  audNotString: "Jwt payload [aud] field is not a string or string list",
  iatNotInteger: "Jwt payload [iat] field is not an integer",
  iatOutOfRange: "Jwt payload [iat] field is not a positive 64 bit integer",
  nbfNotInteger: "Jwt payload [nbf] field is not an integer",
  nbfOutOfRange: "Jwt payload [nbf] field is not a positive 64 bit integer",
  expNotInteger: "Jwt payload [exp] field is not an integer",
  expOutOfRange: "Jwt payload [exp] field is not a positive 64 bit integer",
  signatureBadBase64: "Jwt signature is an invalid Base64url encoded",
  ed25519WrongLength: "Jwt ED25519 signature is wrong length",
  multipleTokens: "Found multiple Jwt tokens",
  unknownIssuer: "Jwt issuer is not configured",
  audienceNotAllowed: "Audiences in Jwt are not allowed",
  verificationFails: "Jwt verification fails",
  noMatchingKey: "Jwks doesn't have key to match kid or alg from Jwt",
} as const;

export type JwtFailure = keyof typeof jwtFailures;
