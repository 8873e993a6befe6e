// The field of a password, and the button that shows what was typed: there only where scripts run, in room that is kept
// for it.
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import type { Texts } from "./texts.ts";

export interface PasswordField {
  readonly id: string;
  readonly label: string;
  /** What a password manager is to do with it. */
  readonly use: "current-password" | "new-password";
  readonly minCharacters?: number;
  readonly focus?: boolean;
}

export function passwordField({ login }: Texts, { id, label, use, minCharacters, focus }: PasswordField): Html {
  const least = minCharacters === undefined ? undefined : html` minlength="${String(minCharacters)}"`;
  return html`<label for="${id}" id="${id}-label">${label}</label>
    <div class="secret">
      <input
        id="${id}"
        name="${id}"
        type="password"
        autocomplete="${use}"
        autocapitalize="none"
        spellcheck="false"
        maxlength="1024"
        required${least}${focus === true ? html` autofocus` : undefined}
      />
      <button type="button" hidden aria-controls="${id}" aria-describedby="${id}-label" data-other="${login.hide}">
        ${login.show}
      </button>
    </div>`;
}

/** A form is sent with its passwords hidden again, so that browsers do not keep them among what was typed before. */
export const showPasswordScript = `for (const button of document.querySelectorAll(".secret button")) {
  const input = button.previousElementSibling;
  const turn = (type) => {
    if (input.type === type) return;
    input.type = type;
    [button.textContent, button.dataset.other] = [button.dataset.other, button.textContent];
  };
  button.hidden = false;
  button.addEventListener("click", () => turn(input.type === "password" ? "text" : "password"));
  input.form.addEventListener("submit", () => turn("password"));
}`;
