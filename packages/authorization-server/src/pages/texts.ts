// Every word that a person reads on our pages, in one place: a translation is another object of this type.

export interface Texts {
  readonly language: string;
  readonly login: {
    readonly title: string;
    readonly toContinue: (client: string) => string;
    readonly toAccount: string;
    readonly again: string;
    readonly username: string;
    readonly password: string;
    readonly submit: string;
    readonly wrong: string;
    readonly missing: string;
    readonly throttled: (seconds: number) => string;
    readonly busy: (seconds: number) => string;
    readonly reloaded: string;
  };
  readonly consent: {
    readonly title: (client: string) => string;
    readonly signedInAs: string;
    readonly change: string;
    readonly asks: (client: string) => string;
    readonly reaches: string;
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
  readonly scopes: Readonly<Record<string, string>>;
  readonly unknownScope: (scope: string) => string;
  readonly error: {
    readonly title: string;
    readonly intro: string;
    readonly forDevelopers: string;
    readonly id: string;
    readonly expiredTitle: string;
    readonly expired: string;
    readonly unavailableTitle: string;
    readonly unavailable: string;
    readonly brokenTitle: string;
    readonly broken: string;
    readonly forgedTitle: string;
    readonly forged: string;
    readonly notFoundTitle: string;
    readonly notFound: string;
  };
  readonly account: {
    readonly title: string;
    readonly hello: (name: string) => string;
    readonly applications: string;
    readonly noApplications: string;
    readonly since: string;
    readonly revoke: string;
    readonly revokeLabel: (client: string) => string;
    readonly sessions: string;
    readonly thisBrowser: string;
    readonly lastUsed: string;
    readonly end: string;
    readonly endLabel: (browser: string) => string;
    readonly unknownBrowser: string;
    readonly passwordTitle: string;
    readonly passwordEffect: string;
    readonly currentPassword: string;
    readonly newPassword: string;
    readonly changePassword: string;
    readonly passwordWrong: string;
    readonly passwordShort: (characters: number) => string;
    readonly signOut: string;
    readonly revoked: string;
    readonly ended: string;
    readonly passwordChanged: string;
  };
  readonly logout: {
    readonly title: string;
    readonly question: (name: string) => string;
    readonly confirm: string;
    readonly stay: string;
    readonly doneTitle: string;
    readonly done: string;
    readonly stayedTitle: string;
    readonly stayed: string;
  };
  readonly errorCodes: Readonly<Record<string, string>>;
  readonly errorCodeTitle: string;
  readonly home: { readonly title: string; readonly intro: string; readonly account: string };
}

export const english: Texts = {
  language: "en",
  login: {
    title: "Sign in",
    toContinue: (client) => `to continue to ${client}`,
    toAccount: "to see your account",
    again: "Please enter your password again.",
    username: "User name",
    password: "Password",
    submit: "Sign in",
    wrong: "The user name or the password is not right.",
    missing: "Enter your user name and your password.",
    throttled: (seconds) => `Too many attempts. Try again in ${seconds} ${seconds === 1 ? "second" : "seconds"}.`,
    busy: (seconds) =>
      `Too many people are signing in at this moment. Try again in ${seconds} ${seconds === 1 ? "second" : "seconds"}.`,
    reloaded: "This page was out of date and has been reloaded. Please try again.",
  },
  consent: {
    title: (client) => `Allow ${client}?`,
    signedInAs: "Signed in as",
    change: "Not you?",
    asks: (client) => `${client} asks to:`,
    reaches: "It will be able to use this at",
    goesTo: "You will be sent on to",
    goesToDevice: "an application on this device",
    unverified: "Anyone can use this application’s name. Go on only if you have just started it yourself.",
    allow: "Allow",
    deny: "Deny",
    takeBack: "You can take this back at any time on your account page.",
  },
  formPost: {
    title: "Back to the application",
    go: "Go on",
  },
  scopes: {
    openid: "Know who you are",
    profile: "See your name",
    email: "See your email address",
    offline_access: "Keep this access while you are away",
  },
  unknownScope: (scope) => `Use “${scope}”`,
  error: {
    title: "This request cannot be answered",
    intro:
      "The application that sent you here made a request that we cannot accept. You can go back and try again; if it happens again, tell the people who run the application.",
    forDevelopers: "For its developers",
    id: "Error id",
    expiredTitle: "This page has expired",
    expired:
      "The sign-in was finished, took too long, or began in another browser. Go back to the application and start again.",
    unavailableTitle: "Not available at this moment",
    unavailable: "The service cannot reach what it needs. Nothing is lost; please try again in a minute.",
    brokenTitle: "Something went wrong on our side",
    broken:
      "We have written down what happened. Please try again; if it happens again, give the error id to the people who run this service.",
    forgedTitle: "This form did not come from our page",
    forged: "To protect you, we ignored it. Go back and try again.",
    notFoundTitle: "There is nothing here",
    notFound: "The address is not one of ours.",
  },
  account: {
    title: "Your account",
    hello: (name) => `Signed in as ${name}`,
    applications: "Applications with access",
    noApplications: "No application has access to your account.",
    since: "since",
    revoke: "Take back",
    revokeLabel: (client) => `Take back the access of ${client}`,
    sessions: "Where you are signed in",
    thisBrowser: "this browser",
    lastUsed: "last used",
    end: "Sign out",
    endLabel: (browser) => `Sign out ${browser}`,
    unknownBrowser: "Unknown browser",
    passwordTitle: "Change your password",
    passwordEffect: "You will be signed out everywhere, and every application loses its access.",
    currentPassword: "Current password",
    newPassword: "New password",
    changePassword: "Change password",
    passwordWrong: "The current password is not right.",
    passwordShort: (characters) => `Use a password of at least ${characters} characters.`,
    signOut: "Sign out",
    revoked: "The application no longer has access.",
    ended: "That browser is signed out.",
    passwordChanged: "Your password is changed. Please sign in again.",
  },
  logout: {
    title: "Sign out?",
    question: (name) => `You are signed in as ${name}. Applications that you used keep their own sign-in.`,
    confirm: "Sign out",
    stay: "Stay signed in",
    doneTitle: "You are signed out",
    done: "You can close this window.",
    stayedTitle: "You are still signed in",
    stayed: "Nothing has changed.",
  },
  errorCodeTitle: "Error",
  errorCodes: {
    invalid_request:
      "The request lacks a parameter, has one twice, or has one that cannot be read. The error description names it.",
    invalid_client: "The client could not be authenticated: it is unknown, its secret is wrong, or it sent none.",
    invalid_grant:
      "The code or the refresh token is unknown, expired, revoked, used before, or belongs to another client or redirect URI.",
    unauthorized_client: "The client is registered, but not for this way of asking. Change its registration.",
    unsupported_grant_type: "The token endpoint knows authorization_code, refresh_token and client_credentials.",
    unsupported_response_type: "The authorization endpoint knows the response type code.",
    invalid_scope: "A scope is unknown, or not registered for the client.",
    invalid_target: "A resource is not registered for the client, or was not part of the authorization.",
    access_denied: "The owner said no.",
    server_error: "Something went wrong inside the server. The error id leads its operators to the reason.",
    temporarily_unavailable:
      "The server cannot do its work at this moment. Try again after the time that Retry-After gives.",
    login_required: "The request said prompt=none, and the owner would have to sign in.",
    consent_required: "The request said prompt=none, and the owner would have to consent.",
    account_selection_required: "The request said prompt=none, and the owner would have to choose an account.",
    interaction_required: "The request said prompt=none, and the owner would have to do something.",
    request_not_supported: "Request objects (the parameter request) are not supported.",
    request_uri_not_supported: "The parameter request_uri is not supported.",
    registration_not_supported: "The parameter registration is not supported.",
    unsupported_token_type: "A token of this type cannot be revoked.",
    invalid_token: "The access token is expired, revoked, malformed or not from this server.",
    insufficient_scope: "The access token lacks the scope that the resource asks for.",
  },
  home: {
    title: "Authorization server",
    intro: "Applications send you here when you sign in.",
    account: "Go to your account",
  },
};
