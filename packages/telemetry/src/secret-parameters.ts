// Parameters of queries and headers that are as good as passwords to whoever reads them in a log or a span.

/**
 * Codes, tokens and hints of sign-ins (RFC 6749, RFC 7009, RFC 8628, RFC 8693, RFC 9126, OpenID Connect and its
 * response modes and presentations, SAML 2.0 bindings), which stand in queries for as long as a page loads and in logs
 * for good; and the signatures of addresses that are good without more (OpenTelemetry's semantic conventions for
 * `url.query`). In lower case.
 */
export const secretParameters: readonly string[] =
  `access_token actor_token api_key apikey assertion awsaccesskeyid client_assertion client_secret code code_verifier
  device_code id_token id_token_hint login_hint logout_token nonce password refresh_token relaystate request request_uri
  response samlart samlrequest samlresponse session_state sid sig signature state subject_token token user_code vp_token
  x-amz-security-token x-amz-signature x-goog-signature`.split(/\s+/);

/** Headers that hold nothing but credentials. In lower case. */
export const credentialHeaders: readonly string[] =
  `authorization proxy-authorization cookie set-cookie x-api-key x-auth-token x-csrf-token x-xsrf-token
  x-amz-security-token x-goog-iap-jwt-assertion x-forwarded-access-token authentication-info`.split(/\s+/);

/** Headers whose values are paths or addresses, which have queries. In lower case. */
export const addressHeaders: readonly string[] =
  `:path x-envoy-original-path referer location content-location refresh link x-original-url x-original-uri
  x-rewrite-url x-forwarded-uri x-forwarded-url x-forwarded-path`.split(/\s+/);

/**
 * Where a listener says which further parameters are the mesh's own: `filter_metadata[key][field]`, a list of names.
 * Tulle's proxy reads it; to Envoy it is metadata like other.
 */
export const redactionMetadata = { key: "tulle", field: "redacted_query_parameters" } as const;
