// `POST /logging`: shows and changes the levels of the proxy's loggers, with Envoy's texts.
import { type LogLevel, type Logging, isLogLevel } from "@tulle/telemetry";
import { type AdminPage, text } from "./admin-page.ts";

const usage = `
usage: /logging?<name>=<level> (change single level)
usage: /logging?paths=name1:level1,name2:level2,... (change multiple levels)
usage: /logging?level=<level> (change all levels)
usage: /logging?group=<group_name>:<level> (change group of loggers)
levels: trace debug info warning error critical off \n`;

function activeLoggers(logging: Logging): string {
  const lines = logging.loggers().map((logger) => `  ${logger.name}: ${logger.level}\n`);
  return `active loggers:\n${lines.join("")}\n`;
}

/** The reason why nothing was changed; undefined = all was. */
function changeLevels(query: URLSearchParams, logging: Logging): string | undefined {
  const names = new Set(query.keys());
  if (names.size > 1) return "invalid number of parameters";
  const [name] = names;
  const value = name === undefined ? "" : (query.get(name) ?? "");
  if (name === undefined || value === "") return undefined;
  if (name === "group") return "group parameter requires fine-grain logging to be enabled";
  if (name === "level") {
    if (!isLogLevel(value)) return "unknown logger level";
    logging.setAllLevels(value);
    return undefined;
  }
  return changeSingle(name === "paths" ? value.split(",") : [`${name}:${value}`], logging);
}

/** All pairs or none. */
function changeSingle(pairs: readonly string[], logging: Logging): string | undefined {
  const known = new Set(logging.loggers().map((logger) => logger.name));
  const changes: [string, LogLevel][] = [];
  for (const pair of pairs) {
    const colon = pair.lastIndexOf(":");
    const name = colon < 0 ? pair : pair.slice(0, colon);
    const level = colon < 0 ? "" : pair.slice(colon + 1);
    if (name === "" || level === "") return "empty logger name or empty logger level";
    if (!isLogLevel(level)) return "unknown logger level";
    if (!known.has(name)) return "unknown logger name";
    changes.push([name, level]);
  }
  for (const [name, level] of changes) logging.setLevel(name, level);
  return undefined;
}

export const loggingPage: AdminPage = {
  path: "/logging",
  help: "query/change logging levels",
  parameters: [
    [
      "paths",
      "Change multiple logging levels by setting to <logger_name1>:<desired_level1>,<logger_name2>:<desired_level2>.",
    ],
    [
      "level",
      "desired logging level, this will change all loggers's level; One of (, trace, debug, info, warning, error, critical, off)",
    ],
  ],
  changesSomething: true,
  handle: (query, { logging }) => {
    const error = changeLevels(query, logging);
    if (error === undefined) return text(activeLoggers(logging));
    return text(`error: ${error}\n${usage}${activeLoggers(logging)}`, 400);
  },
};
