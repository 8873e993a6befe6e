// The page of a signed-in customer. Whoever gets here has signed in at the gateway, which passes the access token on.
import { escape, page } from "../page.ts";

export interface Order {
  readonly id: number;
  readonly item: string;
  readonly price: string;
}

export function accountPage(name: string, orders: readonly Order[], signOutPath: string): string {
  const rows = orders
    .map(({ id, item, price }) => `<tr><td>${id}</td><td>${escape(item)}</td><td>€ ${escape(price)}</td></tr>`)
    .join("");
  return page(
    "Your account",
    `<h1>Your account</h1><p class="soft">Signed in as <b>${escape(name)}</b></p>
<table><thead><tr><th>Order</th><th>Item</th><th>Price</th></tr></thead><tbody>${rows}</tbody></table>
<form action="${escape(signOutPath)}"><button>Sign out</button></form>
<h2>Who asked you to sign in</h2><p>The gateway did, before your request came here. It keeps your session in sealed cookies and sends this page nothing but
an access token, which the proxy beside it has checked.</p>`,
  );
}
