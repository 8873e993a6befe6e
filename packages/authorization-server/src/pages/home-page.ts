// The page at the issuer's own address, for people who look there.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

export function homePage(server: ServerContext): Answer {
  const texts = textsFor(server).home;
  return pageAnswer(server, {
    title: texts.title,
    content: html`<h1>${texts.title}</h1>
      <p>${texts.intro}</p>
      <a class="button primary full" href="${server.config.issuer}/account">${texts.account}</a>`,
  });
}
