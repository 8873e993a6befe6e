// The pages of the client application.
import { escape, page } from "../page.ts";

const steps = `<ol><li>This application sends your browser to the authorization server.</li>
<li>It asks you whether this application may see your orders.</li>
<li>If you agree, it sends you back here with a code that works once.</li>
<li>Behind the scenes this application exchanges the code for tokens.</li>
<li>It shows the access token to the orders service, which shows it your orders.</li>
<li>Nowhere in this does this application see your password.</li></ol>`;

export function signedOutPage(basePath: string, hint: string): string {
  return page(
    "Your orders",
    `<h1>Your orders</h1><p>This application would like to show you your orders. It needs your permission.</p>
<p><a class="button" href="${basePath}/login">Sign in</a></p><p class="soft">${escape(hint)}</p><h2>What happens then</h2>${steps}`,
  );
}

export interface SignedIn {
  readonly name: string;
  readonly scope: string;
  readonly expiresInSeconds: number;
  readonly refreshes: number;
  readonly ordersStatus: number;
  readonly orders: readonly { readonly id: number; readonly item: string; readonly price: string }[];
}

export function signedInPage(basePath: string, shown: SignedIn): string {
  const rows = shown.orders
    .map((order) => `<tr><td>${order.id}</td><td>${escape(order.item)}</td><td>€ ${escape(order.price)}</td></tr>`)
    .join("");
  const table =
    shown.ordersStatus === 200
      ? `<table><thead><tr><th>Order</th><th>Item</th><th>Price</th></tr></thead><tbody>${rows}</tbody></table>`
      : `<p>The orders service answered ${shown.ordersStatus}: the access token may have expired. Refresh it.</p>`;
  return page(
    "Your orders",
    `<h1>Your orders</h1><p class="soft">Signed in as <b>${escape(shown.name)}</b></p>${table}
<h2>The access token</h2><p>Scope <code>${escape(shown.scope)}</code>, good for ${shown.expiresInSeconds} seconds more, refreshed ${shown.refreshes} times.</p>
<form method="post" action="${basePath}/refresh"><button>Refresh</button></form>
<form method="post" action="${basePath}/logout"><button class="plain">Sign out</button></form>`,
  );
}

export function failurePage(basePath: string, words: string): string {
  return page(
    "Something went wrong",
    `<h1>That did not work</h1><p>${escape(words)}</p><p><a class="button" href="${basePath}">Start again</a></p>`,
  );
}
