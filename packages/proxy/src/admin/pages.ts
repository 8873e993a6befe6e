// The table of admin paths; `/`, `/help` and the answer to an unknown path list it.
import { type AdminPage, type AdminResponse, json, text } from "./admin-page.ts";
import { certificatesPage } from "./certificates-page.ts";
import { clustersPage } from "./clusters-page.ts";
import { configDumpPage } from "./config-dump-page.ts";
import { listenersPage } from "./listeners-page.ts";
import { loggingPage } from "./logging-page.ts";
import { serverInfoPage } from "./server-info-page.ts";
import { prometheusPage, statsPage } from "./stats-page.ts";

const ok = text("OK\n");

const readyPage: AdminPage = {
  path: "/ready",
  help: "print server state, return 200 if LIVE, otherwise return 503",
  handle: (_query, { state }) => text(`${state.phase}\n`, state.phase === "LIVE" ? 200 : 503),
};

const memoryPage: AdminPage = {
  path: "/memory",
  help: "print current allocation/heap usage",
  handle: () => {
    const usage = process.memoryUsage();
    return json({
      allocated: String(usage.heapUsed + usage.external),
      heap_size: String(usage.heapTotal + usage.external),
      pageheap_unmapped: "0",
      pageheap_free: String(usage.heapTotal - usage.heapUsed),
      total_thread_cache: "0",
      total_physical_bytes: String(usage.rss),
    });
  },
};

const quitPage: AdminPage = {
  path: "/quitquitquit",
  help: "exit the server",
  changesSomething: true,
  handle: (_query, { quit }) => ({ ...ok, afterwards: quit }),
};

const drainPage: AdminPage = {
  path: "/drain_listeners",
  help: "drain listeners",
  changesSomething: true,
  handle: (_query, { drainListeners }) => {
    drainListeners();
    return ok;
  },
};

function healthPage(word: "fail" | "ok"): AdminPage {
  return {
    path: `/healthcheck/${word}`,
    help: `cause the server to ${word === "ok" ? "pass" : "fail"} health checks`,
    changesSomething: true,
    handle: (_query, { state }) => {
      state.healthCheckFails = word === "fail";
      return ok;
    },
  };
}

const reopenPage: AdminPage = {
  path: "/reopen_logs",
  help: "reopen access logs",
  changesSomething: true,
  handle: (_query, { accessLogs }) => {
    accessLogs.reopenAll();
    return ok;
  },
};

const helpPage: AdminPage = {
  path: "/help",
  help: "print out list of admin commands",
  handle: () => text(helpText()),
};

const homePage: AdminPage = { path: "/", help: "Admin home page", handle: () => home() };

const adminPages: readonly AdminPage[] = [
  homePage,
  certificatesPage,
  clustersPage,
  configDumpPage,
  drainPage,
  healthPage("fail"),
  healthPage("ok"),
  helpPage,
  listenersPage,
  loggingPage,
  memoryPage,
  quitPage,
  readyPage,
  reopenPage,
  serverInfoPage,
  statsPage,
  prometheusPage,
];

const byPath = new Map(adminPages.map((page) => [page.path, page]));

export function adminPage(path: string): AdminPage | undefined {
  return byPath.get(path);
}

/** The list of commands in Envoy's form. */
export function helpText(): string {
  const lines = adminPages.flatMap((page) => [
    `  ${page.path}${page.changesSomething === true ? " (POST)" : ""}: ${page.help}`,
    ...(page.parameters ?? []).map(([name, words]) => `      ${name}: ${words}`),
  ]);
  return `admin commands are:\n${lines.join("\n")}\n`;
}

function escapeHtml(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function home(): AdminResponse {
  const rows = adminPages
    .filter((page) => page.path !== "/")
    .map((page) => {
      const name = page.path.slice(1);
      const command =
        page.changesSomething === true
          ? `<form action="${name}" method="post"><button>${name}</button></form>`
          : `<a href="${name}">${name}</a>`;
      return `<tr><td>${command}</td><td>${escapeHtml(page.help)}</td></tr>`;
    });
  const body = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Tulle proxy admin</title></head>
<body>
<h1>Tulle proxy admin</h1>
<table>
<tr><th>Command</th><th>Description</th></tr>
${rows.join("\n")}
</table>
</body>
</html>
`;
  return { status: 200, contentType: "text/html; charset=UTF-8", body };
}
