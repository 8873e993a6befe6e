// How the pages of the shop look that it writes by hand.

const style = `:root{color-scheme:light dark;--ground:#f4f3ef;--card:#fff;--ink:#23262b;--soft:#5b616b;--line:#dedcd5;--accent:#0f5e63;--on:#fff}
@media (prefers-color-scheme:dark){:root{--ground:#15181b;--card:#1e2226;--ink:#e9e8e4;--soft:#a6adb6;--line:#343a40;--accent:#6cc3bd;--on:#0c2426}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.55 system-ui,sans-serif;padding:2.5rem 1rem}
main{max-width:40rem;margin:0 auto;background:var(--card);border:1px solid var(--line);border-radius:1rem;padding:2rem}
h1{font-size:1.6rem;margin:0 0 .4rem;line-height:1.25}h2{font-size:1.1rem;margin:2rem 0 .6rem}p{margin:.5rem 0}.soft{color:var(--soft)}
a.button,button{font:inherit;font-weight:600;display:inline-block;border:1px solid var(--accent);border-radius:.6rem;padding:.6rem 1.2rem;background:var(--accent);color:var(--on);text-decoration:none;cursor:pointer}
button.plain{background:transparent;color:var(--ink);border-color:var(--soft)}form{display:inline-block;margin:.8rem .5rem 0 0}
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.6rem .2rem;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}td:last-child,th:last-child{text-align:right;white-space:nowrap}
ol{padding-left:1.3rem}li{margin:.35rem 0}code,.soft{overflow-wrap:anywhere}:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`;

/** Text as it may stand in HTML. */
export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

export function page(title: string, content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escape(title)}</title><style>${style}</style></head><body><main>${content}</main></body></html>`;
}
