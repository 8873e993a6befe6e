// Parameters of queries that are as good as passwords to whoever reads them in a log or a span.

/**
 * Codes, tokens and hints of sign-ins (RFC 6749, RFC 7009, RFC 8628, RFC 9126, OpenID Connect, SAML 2.0 bindings),
 * which stand in queries for as long as a page loads and in logs for good. In lower case.
 */
export const secretParameters: readonly string[] =
  `access_token assertion client_assertion client_secret code code_verifier device_code id_token
  id_token_hint login_hint logout_token nonce password refresh_token relaystate request request_uri samlrequest samlresponse
  session_state sid state subject_token token user_code`.split(/\s+/);
