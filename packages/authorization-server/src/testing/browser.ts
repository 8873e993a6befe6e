// A browser for tests: cookies, redirects within the server, and forms, without scripts, as our pages need it.

export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export type Send = (request: SentRequest) => Promise<Received>;

export interface Visit extends Received {
  readonly url: string;
  readonly location: string | undefined;
}

const maxRedirects = 10;

export class Browser {
  readonly #send: Send;
  readonly #issuer: string;
  readonly cookies = new Map<string, string>();
  /** Sent with every request, such as fetch metadata. */
  readonly headers: Record<string, string> = {};

  constructor(send: Send, issuer: string) {
    this.#send = send;
    this.#issuer = issuer;
  }

  /** One request, without following anything. */
  async request(method: string, url: string, form?: string, headers: Record<string, string> = {}): Promise<Visit> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const received = await this.#send({
      method,
      url,
      headers: {
        ...this.headers,
        ...(cookie === "" ? {} : { cookie }),
        ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...headers,
      },
      body: form,
    });
    for (const line of [received.headers["set-cookie"] ?? []].flat()) this.#keep(line);
    const location = received.headers["location"];
    return { ...received, url, location: typeof location === "string" ? location : undefined };
  }

  #keep(line: string): void {
    const [, name = "", value = ""] = /^([^=;]*)=([^;]*)/.exec(line) ?? [];
    if (/max-age=0/i.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }

  /** Follows redirects as long as they stay at the issuer; a redirect to a client is where a test looks. */
  async open(url: string): Promise<Visit> {
    return this.#follow(await this.request("GET", url));
  }

  async #follow(first: Visit): Promise<Visit> {
    let visit = first;
    for (let count = 0; count < maxRedirects; count += 1) {
      if (visit.location === undefined || !visit.location.startsWith(this.#issuer)) return visit;
      visit = await this.request("GET", visit.location);
    }
    throw new Error("too many redirects");
  }

  /**
   * Submits the form of a page whose action matches, with its hidden fields and the boxes that are ticked, but for
   * those that the owner unticks.
   */
  async submit(
    page: Visit,
    action: RegExp,
    fields: Readonly<Record<string, string>>,
    unticked: readonly string[] = [],
  ): Promise<Visit> {
    const form = formsOf(page.body).find((candidate) => action.test(candidate.action));
    if (form === undefined) throw new Error(`no form for ${action} on ${page.url}:\n${page.body}`);
    const body = new URLSearchParams({ ...form.hidden, ...fields });
    for (const [name, value] of form.ticked) if (!unticked.includes(value)) body.append(name, value);
    return this.#follow(await this.request("POST", form.action, body.toString()));
  }

  signIn(page: Visit, username: string, password: string): Promise<Visit> {
    return this.submit(page, /\/sign-in(\?|$)/, { username, password });
  }

  decide(page: Visit, decision: "allow" | "deny", unticked: readonly string[] = []): Promise<Visit> {
    return this.submit(page, /\/consent(\?|$)/, { decision }, unticked);
  }
}

interface Form {
  readonly action: string;
  readonly hidden: Readonly<Record<string, string>>;
  readonly ticked: ReadonlyArray<readonly [string, string]>;
}

export function formsOf(body: string): readonly Form[] {
  return [...body.matchAll(/<form[^>]*action="([^"]*)"[^>]*>(.*?)<\/form>/gs)].map((match) => ({
    action: unescape(match[1]!),
    hidden: Object.fromEntries(
      [...match[2]!.matchAll(/<input type="hidden" name="([^"]*)"[^>]*?value="([^"]*)"/g)].map((input) => [
        unescape(input[1]!),
        unescape(input[2]!),
      ]),
    ),
    ticked: [...match[2]!.matchAll(/<input type="checkbox" name="([^"]*)" value="([^"]*)"\s+checked/g)].map(
      (input) => [unescape(input[1]!), unescape(input[2]!)] as const,
    ),
  }));
}

function unescape(text: string): string {
  return text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}
