// The pages of the client application.

const style = `:root{color-scheme:light dark;--ground:#f4f3ef;--card:#fff;--ink:#23262b;--soft:#5b616b;--line:#dedcd5;--accent:#0f5e63;--on:#fff}
@media (prefers-color-scheme:dark){:root{--ground:#15181b;--card:#1e2226;--ink:#e9e8e4;--soft:#a6adb6;--line:#343a40;--accent:#6cc3bd;--on:#0c2426}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.55 system-ui,sans-serif;padding:2.5rem 1rem}
main{max-width:40rem;margin:0 auto;background:var(--card);border:1px solid var(--line);border-radius:1rem;padding:2rem}
h1{font-size:1.6rem;margin:0 0 .4rem;line-height:1.25}h2{font-size:1.1rem;margin:2rem 0 .6rem}p{margin:.5rem 0}.soft{color:var(--soft)}
a.button,button{font:inherit;font-weight:600;display:inline-block;border:1px solid var(--accent);border-radius:.6rem;padding:.6rem 1.2rem;background:var(--accent);color:var(--on);text-decoration:none;cursor:pointer}
button.plain{background:transparent;color:var(--ink);border-color:var(--soft)}form{display:inline-block;margin:.8rem .5rem 0 0}
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.6rem .2rem;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}td:last-child,th:last-child{text-align:right}
ol{padding-left:1.3rem}li{margin:.35rem 0}code,.soft{overflow-wrap:anywhere}:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`;

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function page(title: string, content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escape(title)}</title><style>${style}</style></head><body><main>${content}</main></body></html>`;
}

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
