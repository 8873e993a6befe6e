// Rows of browser sign-in (extensions.filters.http.oauth2.v3).
import { OAuth2Schema } from "@tulle/xds/envoy/extensions/filters/http/oauth2/v3/oauth_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const oauth2 = "envoy.extensions.filters.http.oauth2.v3";

const oauth2Fields: FieldRows = {
  [`${oauth2}.OAuth2`]: "config",
  [`${oauth2}.OAuth2Config`]: {
    used: `token_endpoint retry_policy authorization_endpoint end_session_endpoint post_logout_redirect_uri credentials
      redirect_uri redirect_path_matcher signout_path forward_bearer_token forward_id_token
      preserve_authorization_header pass_through_matcher auth_scopes resources auth_type use_refresh_token
      default_expires_in deny_redirect_matcher default_refresh_token_expires_in disable_id_token_set_cookie
      disable_access_token_set_cookie disable_refresh_token_set_cookie cookie_configs stat_prefix csrf_token_expires_in
      code_verifier_token_expires_in allow_failed_matcher original_request_uri allowed_redirect_domains
      use_access_token_expiry_for_id_token_cookie`,
    told: "disable_token_encryption",
  },
  [`${oauth2}.PostLogoutRedirectUri`]: "disabled uri",
  [`${oauth2}.OAuth2Credentials`]: "client_id token_secret hmac_secret cookie_names cookie_domain",
  [`${oauth2}.OAuth2Credentials.CookieNames`]: `bearer_token oauth_hmac oauth_expires id_token refresh_token oauth_nonce
    code_verifier`,
  [`${oauth2}.OAuth2TokenForwarding`]: "header",
  [`${oauth2}.CookieConfigs`]: `bearer_token_cookie_config oauth_hmac_cookie_config oauth_expires_cookie_config
    id_token_cookie_config refresh_token_cookie_config oauth_nonce_cookie_config code_verifier_cookie_config`,
  [`${oauth2}.CookieConfig`]: "same_site path partitioned",
};

export const oauth2Message = checkedMessage(OAuth2Schema, oauth2Fields, matcherFields, sharedFields);
