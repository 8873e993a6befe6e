// The parts that the tests use of two client libraries that come without types.

declare module "simple-oauth2" {
  export interface ClientOptions {
    readonly client: { readonly id: string; readonly secret: string };
    readonly auth: Readonly<Record<string, string>>;
    readonly options: { readonly authorizationMethod: "header" | "body" };
  }
  export interface Token {
    readonly token: Readonly<Record<string, unknown>>;
    refresh(): Promise<Token>;
    revokeAll(): Promise<void>;
  }
  export class AuthorizationCode {
    constructor(options: ClientOptions);
    authorizeURL(parameters: Readonly<Record<string, string>>): string;
    getToken(parameters: Readonly<Record<string, string>>): Promise<Token>;
  }
  export class ClientCredentials {
    constructor(options: ClientOptions);
    getToken(parameters: Readonly<Record<string, string>>): Promise<Token>;
  }
}

declare module "passport-oauth2" {
  export default class OAuth2Strategy {
    constructor(
      options: Readonly<Record<string, unknown>>,
      verify: (
        accessToken: string,
        refreshToken: string,
        profile: unknown,
        done: (error: null, user: unknown) => void,
      ) => void,
    );
    authenticate(request: unknown): void;
  }
}
