// The page at the issuer's own address, for people who look there.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";
import { inSameLanguage } from "./speech.ts";

export function homePage(server: ServerContext, speech: Speech): Answer {
  const texts = speech.texts.home;
  return pageAnswer(server, speech, {
    title: texts.title,
    content: html`<h1>${server.config.name === undefined ? texts.title : html`<bdi>${server.config.name}</bdi>`}</h1>
      <p>${texts.intro}</p>
      <a class="button primary full" href="${inSameLanguage(`${server.config.issuer}/account`, speech)}"
        >${speech.texts.ways.account}</a
      >`,
  });
}
