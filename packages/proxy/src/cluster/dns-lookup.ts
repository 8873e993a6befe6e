// What a name leads to: a machine's own answers come from /etc/hosts, others from name servers, with the time for which
// they hold. Never the C library's look-up: it says no such time, and a silent server takes one of Node's four threads.

/** Envoy: Cluster.DnsLookupFamily. */
export type DnsLookupFamily = "auto" | "v4_only" | "v6_only" | "v4_preferred" | "all";

export interface DnsAnswer {
  /** In the order in which they are to be used; empty = there is no such name, or it has no address. */
  readonly addresses: readonly string[];
  /** How long it holds; undefined where nobody says, 0 where it is not to be kept. */
  readonly ttlMs?: number | undefined;
}

/** Rejects when nobody could be asked: that says nothing of the name. */
export type DnsLookup = (hostname: string, family: DnsLookupFamily) => Promise<DnsAnswer>;

export type AskFamily = (family: 4 | 6) => Promise<DnsAnswer>;

export async function askForFamily(family: DnsLookupFamily, ask: AskFamily): Promise<DnsAnswer> {
  switch (family) {
    case "v4_only":
      return ask(4);
    case "v6_only":
      return ask(6);
    case "all":
      return both(ask);
    case "v4_preferred":
      return preferred(ask, 4, 6);
    case "auto":
      // Envoy's AUTO is IPv6 with IPv4 as the fallback (Cluster.DnsLookupFamily).
      return preferred(ask, 6, 4);
  }
}

/** Some servers answer for one family alone. */
async function preferred(ask: AskFamily, first: 4 | 6, second: 4 | 6): Promise<DnsAnswer> {
  const answers: DnsAnswer[] = [];
  const failures: unknown[] = [];
  for (const family of [first, second]) {
    try {
      const answer = await ask(family);
      if (answer.addresses.length > 0) return answer;
      answers.push(answer);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return answers[0]!;
}

async function both(ask: AskFamily): Promise<DnsAnswer> {
  const results = await Promise.allSettled([ask(4), ask(6)]);
  const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const addresses = answers.flatMap((answer) => answer.addresses);
  const failed = results.find((result) => result.status === "rejected");
  if (addresses.length === 0 && failed !== undefined) throw failed.reason;
  return { addresses, ttlMs: shortest(answers.filter((answer) => answer.addresses.length > 0)) };
}

function shortest(answers: readonly DnsAnswer[]): number | undefined {
  const told = answers.flatMap(({ ttlMs }) => (ttlMs === undefined ? [] : [ttlMs]));
  return told.length === 0 ? undefined : Math.min(...told);
}
