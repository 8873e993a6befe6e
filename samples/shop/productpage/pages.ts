// The HTML of the product page and of its login form. Every value from outside goes through `escape`.
import type { Item } from "../catalog/items.ts";
import type { CatalogAnswer } from "./productpage.ts";

export interface ProductPageView {
  readonly user: string | undefined;
  readonly catalog: CatalogAnswer;
}

export function productPage(view: ProductPageView): string {
  return layout(
    "The shop",
    view.user,
    "items" in view.catalog ? shelf(view.catalog.items) : outage(view.catalog.status),
  );
}

export function loginPage(problem?: string): string {
  const message = problem === undefined ? "" : `<p class="problem" role="alert">${escape(problem)}</p>`;
  return layout(
    "Log in",
    undefined,
    `<form class="card login" method="post" action="/login">
      <h2>Who is shopping?</h2>
      ${message}
      <label for="name">Name</label>
      <input id="name" name="name" autocomplete="username" required maxlength="64" autofocus>
      <button type="submit">Log in</button>
    </form>`,
  );
}

function shelf(items: readonly Item[]): string {
  const version = items.some((item) => item.imageUrl !== undefined) ? "v2" : "v1";
  return `<p class="lead">${items.length} things worth having.
      <span class="version" title="Version of the catalog that answered">catalog ${version}</span></p>
    <ul class="shelf">${items.map(card).join("")}</ul>`;
}

function card(item: Item): string {
  // The catalog's v1 knows no pictures; its items show their colour alone.
  const picture =
    item.imageUrl === undefined
      ? `<div class="picture" aria-hidden="true">${escape(item.name.charAt(0))}</div>`
      : `<img class="picture" src="${escape(pathOnly(item.imageUrl))}" alt="" width="320" height="200">`;
  return `
      <li class="card color-${escape(item.color)}">
        ${picture}
        <div class="text">
          <h2>${escape(item.name)}</h2>
          <p class="department">${escape(item.department)} · ${escape(item.color)}</p>
          <p class="price">€ ${escape(item.price)}</p>
        </div>
      </li>`;
}

// Pictures lie behind the same gateway as this page, whatever its published port is.
function pathOnly(url: string): string {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.pathname.startsWith("/static/") ? parsed.pathname : url;
}

function outage(status: number): string {
  const reason = status === 0 ? "It could not be reached." : `It answered ${status}.`;
  return `<div class="card outage" role="status"><h2>The catalog is not itself today</h2>
    <p>${reason} Reload the page to try again.</p></div>`;
}

function layout(title: string, user: string | undefined, main: string): string {
  const account =
    user === undefined
      ? `<a href="/login">Log in</a>`
      : `<span>Hello, ${escape(user)}</span> <a href="/logout">Log out</a>`;
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${escape(title)}</title>
  <link rel="stylesheet" href="/static/shop.css">
  <link rel="icon" href="/static/icon.svg">
</head>
<body>
  <header>
    <a class="brand" href="/productpage"><img src="/static/icon.svg" alt="" width="32" height="32"><h1>The Shop</h1></a>
    <nav aria-label="Account">${account}</nav>
  </header>
  <main>
    ${main}
  </main>
  <footer>A sample of a shop, steered by a service mesh. <a href="/api/v1/products">The same as JSON</a></footer>
</body>
</html>
`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
