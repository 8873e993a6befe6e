// The structured log of every Tulle process: named loggers with Envoy's levels, changeable while the process runs
// (the proxy's admin `/logging` does). One `Logging` is made in main and handed down; nothing here is global.
import { printable } from "./printable.ts";
import { lineWriter } from "./write-lines.ts";

/** Envoy's level names, least severe first (Envoy: `/logging?level=`). */
export const logLevels = ["trace", "debug", "info", "warning", "error", "critical", "off"] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | bigint | undefined | null>>;

/** One line that passed its logger's level; the sink decides how it looks and where it goes. */
export interface LogEntry {
  readonly timeMs: number;
  readonly level: LogLevel;
  readonly logger: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

export type LogSink = (entry: LogEntry) => void;

export function isLogLevel(text: string): text is LogLevel {
  return (logLevels as readonly string[]).includes(text);
}

/**
 * A named source of lines. `threshold` is public so that a hot path can ask `debugEnabled` (one integer compare)
 * before it builds a message.
 */
export class Logger {
  readonly name: string;
  #threshold: number;
  readonly #sink: LogSink;
  readonly #nowMs: () => number;

  constructor(name: string, level: LogLevel, sink: LogSink, nowMs: () => number) {
    this.name = name;
    this.#threshold = logLevels.indexOf(level);
    this.#sink = sink;
    this.#nowMs = nowMs;
  }

  get level(): LogLevel {
    return logLevels[this.#threshold]!;
  }

  set level(level: LogLevel) {
    this.#threshold = logLevels.indexOf(level);
  }

  get debugEnabled(): boolean {
    return this.#threshold <= 1;
  }

  trace(message: string, fields?: LogFields): void {
    this.#write(0, message, fields);
  }

  debug(message: string, fields?: LogFields): void {
    this.#write(1, message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write(2, message, fields);
  }

  warning(message: string, fields?: LogFields): void {
    this.#write(3, message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write(4, message, fields);
  }

  critical(message: string, fields?: LogFields): void {
    this.#write(5, message, fields);
  }

  #write(severity: number, message: string, fields: LogFields | undefined): void {
    if (severity < this.#threshold) return;
    this.#sink({ timeMs: this.#nowMs(), level: logLevels[severity]!, logger: this.name, message, fields });
  }
}

export interface LoggingOptions {
  readonly level?: LogLevel;
  readonly sink?: LogSink;
  readonly nowMs?: () => number;
}

/** Owns every logger of a process. A logger asked for by name is made once and lives as long as the process. */
export class Logging {
  readonly #loggers = new Map<string, Logger>();
  readonly #sink: LogSink;
  readonly #nowMs: () => number;
  #defaultLevel: LogLevel;

  constructor(options: LoggingOptions = {}) {
    this.#defaultLevel = options.level ?? "info";
    this.#sink = options.sink ?? textSink(lineWriter(2));
    this.#nowMs = options.nowMs ?? Date.now;
  }

  logger(name: string): Logger {
    let logger = this.#loggers.get(name);
    if (logger === undefined) {
      logger = new Logger(name, this.#defaultLevel, this.#sink, this.#nowMs);
      this.#loggers.set(name, logger);
    }
    return logger;
  }

  /** Every logger made so far, by name. */
  loggers(): readonly Logger[] {
    return [...this.#loggers.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Sets all loggers, those made later included. */
  setAllLevels(level: LogLevel): void {
    this.#defaultLevel = level;
    for (const logger of this.#loggers.values()) logger.level = level;
  }

  /** Sets one logger; false when no logger has that name. */
  setLevel(name: string, level: LogLevel): boolean {
    const logger = this.#loggers.get(name);
    if (logger === undefined) return false;
    logger.level = level;
    return true;
  }
}

/** Of the message and of each field: what peers send appears in lines, and a stack of calls has to fit. */
const maxFieldCharacters = 4096;

function shortened(text: string): string {
  if (text.length <= maxFieldCharacters) return text;
  return `${text.slice(0, maxFieldCharacters)}… (${text.length} characters)`;
}

function fieldText(value: LogFields[string]): string {
  // A log line must stay one line whatever a peer sent, or a client could forge entries.
  const text = printable(shortened(String(value)));
  return /[\s"=]/.test(text) || text === "" ? JSON.stringify(text) : text;
}

/** Lines for people, in Envoy's form: `[2026-11-20 12:00:00.000][info][http] message key=value`. */
export function textSink(write: (line: string) => void): LogSink {
  return (entry) => {
    const time = new Date(entry.timeMs).toISOString().replace("T", " ").slice(0, -1);
    let line = `[${time}][${entry.level}][${entry.logger}] ${printable(shortened(entry.message))}`;
    if (entry.fields !== undefined) {
      for (const [name, value] of Object.entries(entry.fields)) {
        if (value !== undefined) line += ` ${name}=${fieldText(value)}`;
      }
    }
    write(`${line}\n`);
  };
}

/** One JSON object a line, for collectors. */
export function jsonSink(write: (line: string) => void): LogSink {
  return (entry) => {
    const fields = Object.fromEntries(
      Object.entries(entry.fields ?? {}).map(([name, value]) => [
        name,
        typeof value === "bigint" ? String(value) : typeof value === "string" ? shortened(value) : value,
      ]),
    );
    const head = { time: new Date(entry.timeMs).toISOString(), level: entry.level, logger: entry.logger };
    // What JSON leaves as it is gets its escape of JSON.
    write(`${printable(JSON.stringify({ ...head, message: shortened(entry.message), ...fields }))}\n`);
  };
}
