// The style sheet of every page, inlined so that a page is one response; its digest stands in the content security
// policy. Colours follow the reader's light or dark preference, sizes follow the reader's font size.
import { createHash } from "node:crypto";

export const style = `
:root{color-scheme:light dark;--ground:#f4f3ef;--card:#fff;--ink:#23262b;--soft:#5b616b;--line:#dedcd5;--accent:#0f5e63;
--accent-ink:#fff;--accent-hover:#0b4a4e;--tint:#e8f1f0;--bad:#9b2226;--bad-tint:#fbeceb;--good:#1e6140;--good-tint:#e7f3ec;--field:#8b909a}
@media (prefers-color-scheme:dark){:root{--ground:#15181b;--card:#1e2226;--ink:#e9e8e4;--soft:#a6adb6;--line:#343a40;
--accent:#6cc3bd;--accent-ink:#0c2426;--accent-hover:#8ad3ce;--tint:#1c3032;--bad:#f2a5a0;--bad-tint:#3a2022;--good:#94d3ae;
--good-tint:#1b3226;--field:#6d747d}}
*{box-sizing:border-box}
[hidden]{display:none!important}
html{-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;min-height:100dvh;display:flex;flex-direction:column;align-items:center;justify-content:center;gap:1.25rem;
padding:2rem 1rem;background:var(--ground);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{width:100%;max-width:26.5rem;background:var(--card);border:1px solid var(--line);border-radius:1rem;padding:2.25rem 2rem 2rem;
box-shadow:0 1px 2px rgb(0 0 0/.04),0 12px 32px -12px rgb(0 0 0/.12)}
main.wide{max-width:42rem}
.marks{display:flex;gap:.9rem;align-items:center;min-height:2.5rem;margin:0 0 .9rem}
.mark{flex:none;width:1.9rem;height:2.05rem;color:var(--accent)}
.logo{flex:none;width:2.5rem;height:2.5rem;object-fit:contain;background:#fff;border-radius:.5rem}
h1{font-size:1.55rem;line-height:1.25;font-weight:650;letter-spacing:-.012em;margin:0;overflow-wrap:anywhere}
h2{font-size:1.06rem;font-weight:650;margin:2.25rem 0 .5rem}
:lang(ja){word-break:auto-phrase}
p{margin:.6rem 0 0;overflow-wrap:anywhere}
.lead{color:var(--soft);margin-top:.3rem;overflow-wrap:anywhere}
.soft,footer{color:var(--soft);font-size:.9rem}
footer{text-align:center;overflow-wrap:anywhere}
a{color:var(--accent);text-underline-offset:.18em}
label{display:block;font-weight:550;margin:1.15rem 0 .35rem}
input{width:100%;font:inherit;color:inherit;background:transparent;border:1px solid var(--field);border-radius:.6rem;padding:.68rem .8rem;min-height:2.9rem}
.secret{position:relative}
.secret input{padding-right:7rem}
.secret button{position:absolute;top:0;right:0;bottom:0;min-height:0;padding:0 .9rem;border:0;font-size:.9rem;color:var(--accent);background:transparent}
input:hover{border-color:var(--soft)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
input:focus-visible{outline-offset:0}
button,.button{font:inherit;font-weight:600;min-height:2.9rem;padding:.6rem 1.2rem;border-radius:.6rem;border:1px solid var(--field);
background:transparent;color:var(--ink);cursor:pointer;text-decoration:none;display:inline-block;text-align:center}
button:hover,.button:hover{border-color:var(--soft)}
.primary{background:var(--accent);border-color:var(--accent);color:var(--accent-ink)}
.primary:hover{background:var(--accent-hover);border-color:var(--accent-hover)}
.full{width:100%;margin-top:1.6rem}
.choices{display:flex;gap:.75rem;margin-top:1.5rem}
.choices>*{flex:1}
.choices+*,form+.soft{margin-top:1.1rem}
.narrow{max-width:24rem}
.notice{border-radius:.6rem;padding:.7rem .9rem;margin:1.1rem 0 0;background:var(--tint)}
.bad{background:var(--bad-tint);color:var(--bad)}
.good{background:var(--good-tint);color:var(--good)}
.who{display:flex;flex-wrap:wrap;gap:.1rem .6rem;align-items:baseline;justify-content:space-between;border-bottom:1px solid var(--line);padding:0 0 .9rem;margin:.75rem 0 1rem}
.who b,.where b{overflow-wrap:anywhere}
ul.scopes{list-style:none;margin:.7rem 0 0;padding:0}
ul.scopes li{display:flex;gap:.7rem;padding:.36rem 0;overflow-wrap:anywhere}
fieldset{border:0;margin:0;padding:0;min-width:0}
legend{padding:0;overflow-wrap:anywhere}
ul.scopes label{display:flex;gap:.7rem;margin:0;font-weight:inherit;cursor:pointer;min-height:1.5rem}
ul.scopes input{flex:none;width:1.15rem;height:1.15rem;min-height:0;margin:.22rem 0 0;accent-color:var(--accent);cursor:pointer}
ul.scopes svg{flex:none;width:1.15rem;height:1.15rem;margin-top:.22rem;color:var(--accent)}
.where{font-size:.93rem;color:var(--soft);margin-top:1rem}
.where b{color:var(--ink);font-weight:600}
ul.rows{list-style:none;margin:.25rem 0 0;padding:0;border-top:1px solid var(--line)}
ul.rows>li{display:flex;gap:1rem;align-items:flex-start;justify-content:space-between;padding:.9rem 0;border-bottom:1px solid var(--line)}
ul.rows>li>div{min-width:0;overflow-wrap:anywhere}
ul.rows button{min-height:2.75rem;padding:.4rem .9rem;font-size:.93rem;white-space:nowrap}
.tag{display:inline-block;font-size:.8rem;font-weight:600;background:var(--tint);color:var(--accent);border-radius:1rem;padding:.05rem .6rem;margin-left:.35rem}
.top{display:flex;gap:1rem;justify-content:space-between;align-items:flex-start}
.top form{flex:none}
details{margin-top:1.4rem}
summary{cursor:pointer;color:var(--soft)}
code{font:.92em/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
dl{margin:.6rem 0 0;font-size:.93rem}
dt{color:var(--soft)}
dd{margin:0 0 .5rem}
dd code{white-space:pre-wrap}
@media (max-width:30rem){body{justify-content:flex-start;padding:0;gap:0;background:var(--card)}
main,main.wide{border:0;border-radius:0;box-shadow:none;padding:2rem 1.25rem;max-width:none}
footer{padding:0 1.25rem 2rem;width:100%;text-align:left;background:var(--card)}}
@media (max-width:24rem){.choices{flex-direction:column}ul.rows>li{flex-direction:column;align-items:stretch;gap:.6rem}}
@media (forced-colors:active){button,.button,input,main{border:1px solid}}
`;

/** As content security policies name what stands in a page. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
