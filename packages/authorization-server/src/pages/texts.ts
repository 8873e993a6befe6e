// Every word that a person reads on our pages, as patterns: `{client}` stands where the page puts its value. A language
// is one object of this type, so that none can leave a message out.
import type { OAuthError } from "../protocol/refusal.ts";

/** By the plural categories of the language (Unicode TR 35); `{count}` is the number, in the language's digits. */
export type Plural = { readonly other: string } & Partial<Readonly<Record<Intl.LDMLPluralRule, string>>>;

/** Scopes that have words of ours; an operator may have others for them (`scopes`). */
export type KnownScope = "openid" | "profile" | "email" | "offline_access" | "roles" | "groups";

export interface Texts {
  /** BCP 47, for `lang` and for Intl. */
  readonly language: string;
  readonly login: {
    readonly title: string;
    /** {client} */
    readonly toContinue: string;
    readonly toAccount: string;
    readonly again: string;
    readonly username: string;
    readonly password: string;
    readonly show: string;
    readonly hide: string;
    readonly submit: string;
    readonly wrong: string;
    readonly missing: string;
    /** {wait}, such as "5 minutes" */
    readonly throttled: string;
    /** {wait} */
    readonly busy: string;
    readonly reloaded: string;
  };
  readonly consent: {
    /** {client} */
    readonly title: string;
    /** {user} */
    readonly signedInAs: string;
    readonly change: string;
    /** {client} */
    readonly asks: string;
    readonly choose: string;
    /** Beside what cannot be left out. */
    readonly needed: string;
    /** {places} */
    readonly reaches: string;
    /** {place} */
    readonly goesTo: string;
    readonly goesToDevice: string;
    readonly unverified: string;
    readonly allow: string;
    readonly deny: string;
    readonly takeBack: string;
  };
  readonly formPost: {
    readonly title: string;
    readonly go: string;
  };
  readonly scopes: Readonly<Record<KnownScope, string>>;
  /** {scope}, which is the name of something that is known of the owner */
  readonly claimScope: string;
  /** {scope} */
  readonly unknownScope: string;
  readonly error: {
    readonly title: string;
    readonly intro: string;
    readonly forDevelopers: string;
    readonly id: string;
    readonly expiredTitle: string;
    readonly expired: string;
    /** {client} */
    readonly deniedTitle: string;
    readonly denied: string;
    readonly unavailableTitle: string;
    readonly unavailable: string;
    readonly brokenTitle: string;
    readonly broken: string;
    readonly forgedTitle: string;
    readonly forged: string;
    readonly notFoundTitle: string;
    readonly notFound: string;
  };
  /** What a person can do next, on links. */
  readonly ways: {
    readonly account: string;
    readonly again: string;
    /** {place} */
    readonly elsewhere: string;
    readonly home: string;
    readonly signIn: string;
  };
  readonly account: {
    readonly title: string;
    /** {user} */
    readonly hello: string;
    readonly applications: string;
    readonly noApplications: string;
    /** {moment} */
    readonly since: string;
    readonly revoke: string;
    /** {client} */
    readonly revokeLabel: string;
    readonly sessions: string;
    readonly thisBrowser: string;
    /** {moment} */
    readonly lastUsed: string;
    readonly end: string;
    /** {browser} */
    readonly endLabel: string;
    readonly unknownBrowser: string;
    readonly passwordTitle: string;
    readonly passwordEffect: string;
    readonly currentPassword: string;
    readonly newPassword: string;
    readonly changePassword: string;
    readonly passwordWrong: string;
    readonly passwordShort: Plural;
    /** {count} */
    readonly passwordUnfit: string;
    readonly passwordCommon: string;
    readonly passwordPersonal: string;
    readonly signOut: string;
    readonly revoked: string;
    readonly ended: string;
    readonly passwordChangedTitle: string;
    readonly passwordChanged: string;
  };
  readonly logout: {
    readonly title: string;
    /** {user} */
    readonly question: string;
    readonly confirm: string;
    readonly stay: string;
    readonly doneTitle: string;
    readonly done: string;
    readonly stayedTitle: string;
    readonly stayed: string;
  };
  /** {code} */
  readonly errorCodeTitle: string;
  readonly errorCodes: Readonly<Record<OAuthError, string>>;
  readonly home: { readonly title: string; readonly intro: string };
}
