// The rules for one file, in one visible table; tidy.test.ts breaks each of them once.
import path from "node:path";
import { importsOf } from "./import-table.ts";
import { checkSizes } from "./sizes.ts";
import {
  findAll,
  isGenerated,
  isHandWrittenCode,
  type FileRule,
  type Finding,
  type SourceFile,
} from "./source-file.ts";

export const fileRules: readonly FileRule[] = [
  fileOpensWithItsPlace,
  fileNameIsKebabCase,
  folderSaysWhatItHolds,
  nameSaysWhatItIs,
  nothingLeftToDo,
  noTestIsHidden,
  noPlaceOfOneMachine,
  generatedIsMarked,
  variantsKeepToThemselves,
  fakeClocksAreTwo,
  labelsAreComparedOnce,
  configurationIsReadByItsRows,
  filtersAreFolders,
  commentsAreNarrow,
  commandsKeepToThemselves,
  pathsOfTheApiAreDeclaredOnce,
  contractOfTheApiIsLight,
  checkSizes,
];

/**
 * Label selectors have one meaning: `selects` and `isBehind` of packages/config/src/rules/label-selector.ts. Oracles of
 * tests stand apart.
 */
function labelsAreComparedOnce(file: SourceFile): readonly Finding[] {
  const isExempt = file.path.endsWith("/label-selector.ts") || file.path.endsWith(".test.ts");
  if (!isHandWrittenCode(file) || isTidyItself(file) || isExempt) return [];
  const pattern = /\.every\(.*\b[lL]abels(?:\?\.)?\[\w+\] === /;
  return findAll(file, pattern, () => "compares labels: label selectors are selects and isBehind of @tulle/config");
}

/** What two commands of the command line need lies in a room below `commands/`; `tulle x authz` is `tulle authz`. */
function commandsKeepToThemselves(file: SourceFile): readonly Finding[] {
  const folder = "packages/cli/src/commands/";
  if (!file.path.startsWith(folder) || file.path.endsWith(".test.ts")) return [];
  const commandOf = (name: string): string => name.slice(folder.length).split(/[/.]/, 1)[0]!;
  return importsOf(file).flatMap(({ specifier, line }): readonly Finding[] => {
    const target = path.posix.join(path.posix.dirname(file.path), specifier);
    const isOwn =
      !specifier.startsWith(".") || !target.startsWith(folder) || commandOf(target) === commandOf(file.path);
    if (isOwn || (commandOf(file.path) === "x" && specifier === "../authz/authz.ts")) return [];
    return [{ place: file.path, line, severity: "error", message: `"${specifier}" is of another command` }];
  });
}

/** Server and callers take the paths of the HTTP API from its contract; tests are the view from outside. */
function pathsOfTheApiAreDeclaredOnce(file: SourceFile): readonly Finding[] {
  const concerns = /^packages\/(cli|config|control-plane|local)\/src\//.test(file.path);
  if (!concerns || file.path === "packages/config/src/api/api.ts" || file.path.endsWith(".test.ts")) return [];
  return findAll(
    file,
    /["'`]\/(api\/v1|debug)\b/,
    (match) => `${match}: paths of the HTTP API stand in packages/config/src/api/api.ts`,
  );
}

/** A web page may import the contract of the HTTP API: it has no values but its own. */
function contractOfTheApiIsLight(file: SourceFile): readonly Finding[] {
  if (!/^packages\/config\/src\/api\/(api|answers|endpoint)\.ts$/.test(file.path)) return [];
  return importsOf(file)
    .filter(({ specifier, isType }) => !isType && !/^\.\/(answers|endpoint)\.ts$/.test(specifier))
    .map(({ specifier, line }) => ({
      place: file.path,
      line,
      severity: "error",
      message: `"${specifier}": a web page imports this contract, and nothing with it`,
    }));
}

/** This folder speaks about the words that it forbids. */
function isTidyItself(file: SourceFile): boolean {
  return file.path.startsWith("tools/tidy");
}

function error(file: SourceFile, message: string): readonly Finding[] {
  return [{ place: file.path, severity: "error", message }];
}

function fileOpensWithItsPlace(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file)) return [];
  const opening = file.text.startsWith("#!") ? file.text.slice(file.text.indexOf("\n") + 1) : file.text;
  return /^(\/\/|\/\*\*?)\s*\S.{15}/.test(opening)
    ? []
    : error(file, "opens without a sentence that says what it is and where it belongs");
}

function fileNameIsKebabCase(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file)) return [];
  const name = path.posix.basename(file.path);
  return /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.(ts|mjs)$/.test(name)
    ? []
    : error(file, "the file name is not in kebab-case");
}

function folderSaysWhatItHolds(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file)) return [];
  const vague = path.posix
    .dirname(file.path)
    .split("/")
    .find((name) => /^(common|utils?|helpers?|types|misc|lib|shared)$/.test(name));
  return vague === undefined ? [] : error(file, `the folder name "${vague}" says nothing about what it holds`);
}

/** Envoy's HTTP connection manager keeps its name. */
function nameSaysWhatItIs(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file) || isTidyItself(file)) return [];
  return [
    ...findAll(
      file,
      /\b(class|interface|type)\s+(?!HttpConnectionManager)\w*(Manager|Helpers?|Impl|Base|Utils?)\b/,
      (match) => `"${match}" does not say what it is`,
    ),
    ...findAll(file, /\binterface I(?!P)[A-Z]\w*/, (match) => `"${match}": an interface has no prefix`),
    ...(/(^|[-/])((?<!http-connection-)manager|helpers?|impl|utils?)\.(test\.)?ts$/.test(file.path)
      ? error(file, "the file name does not say what it holds")
      : []),
  ];
}

function nothingLeftToDo(file: SourceFile): readonly Finding[] {
  if (isGenerated(file) || isTidyItself(file) || !/\.(ts|mjs|md|ya?ml|json)$|\.ci\/run$/.test(file.path)) return [];
  return findAll(file, /\b(TODO|FIXME|XXX|HACK)\b/, (match) => `${match}: do it now, or write an issue`);
}

function noTestIsHidden(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file) || isTidyItself(file)) return [];
  return findAll(
    file,
    /\b(test|it|describe|suite)\.(only|skip|todo)\b|\{ *(skip|todo|only): *true|--test-only/,
    (match) => `"${match}" hides a test`,
  );
}

/** Paths of one machine, and the hosts of package registries, which are the user's choice. */
function noPlaceOfOneMachine(file: SourceFile): readonly Finding[] {
  if (isTidyItself(file)) return [];
  return [
    ...findAll(
      file,
      /(?<![\w./-])\/(work|home\/\w+|Users\/\w+|root)\//,
      (match) => `"${match}" is a folder of one machine`,
    ),
    ...findAll(file, /\.\.\/shared\//, (match) => `"${match}" is not part of this repository`),
    ...findAll(
      file,
      /\bhttps?:\/\/(registry|proxy|index|files|deb|repo\d?)\.[a-z]+\.(org|com|io)\b|"resolved": "http/,
      (match) => `"${match}" is the host of a package registry`,
    ),
  ];
}

function generatedIsMarked(file: SourceFile): readonly Finding[] {
  if (!isGenerated(file) || !file.path.endsWith(".ts")) return [];
  return /^\/\/ (@generated|Written by tools\/)/.test(file.text)
    ? []
    : error(file, "is not as the generator wrote it; run npm run generate:xds");
}

/**
 * The shells of ADS and the relay carry any variant of xDS: what its messages are, its own folder and its conversation
 * know alone.
 */
function variantsKeepToThemselves(file: SourceFile): readonly Finding[] {
  const isOfTests = file.path.endsWith(".test.ts") || file.path.includes("/testing/");
  const inXds = /^packages\/xds\/src\/(?!(sotw|delta|generated)\/|index\.ts)/.test(file.path);
  const inRelay = /^packages\/agent\/src\/relay\/(?!(sotw|delta)-conversation\.ts)/.test(file.path);
  if (isOfTests || !(inXds || inRelay)) return [];
  const known = inXds
    ? /^\.\/(sotw|delta)\/(?!variant\.ts)|\/discovery_pb\.ts$/
    : /\/discovery_pb$|^\.\/(sotw|delta)-(?!conversation\.ts)/;
  return importsOf(file)
    .filter(({ specifier }) => known.test(specifier))
    .map(({ specifier, line }) => ({
      place: file.path,
      line,
      severity: "error",
      message: `"${specifier}" is one variant of xDS: what is here carries any (ARCHITECTURE.md, "A delta variant")`,
    }));
}

/** One of the contract in timing, and one of the data path's, whose timers are others. */
function fakeClocksAreTwo(file: SourceFile): readonly Finding[] {
  if (isTidyItself(file) || /^packages\/(timing|proxy)\/src\/testing\//.test(file.path)) return [];
  return findAll(
    file,
    /\bclass \w+ implements Clock\b/,
    (match) => `"${match}": take ManualClock of @tulle/timing/testing, or the proxy's`,
  );
}

/** What decodes a message of Envoy's in the proxy, and either checks it by its rows or reads no configuration. */
const decodersOfTheProxy = [
  "admin/config-dump-page.ts",
  "compile/compile-per-filter-config.ts",
  "compile/route-source.ts",
  "fields/typed-config.ts",
  "filters/http/ext-authz/grpc-authorizer.ts",
  "upstream/export-result.ts",
];

function configurationIsReadByItsRows(file: SourceFile): readonly Finding[] {
  const inProxy = /^packages\/proxy\/src\/(?!testing\/)(.*)$/.exec(file.path)?.[1];
  if (inProxy === undefined || inProxy.endsWith(".test.ts") || decodersOfTheProxy.includes(inProxy)) return [];
  return findAll(
    file,
    /\bfrom(Binary|Json)\(/,
    (match) => `"${match}": take decodeTypedConfig, which checks the fields`,
  );
}

const maxCommentColumns = 120;

function commentsAreNarrow(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file)) return [];
  return file.text.split("\n").flatMap((text, index) => {
    const isComment = /^\s*(\/\/|\/\*|\*(\s|$))/.test(text);
    if (!isComment || text.length <= maxCommentColumns) return [];
    const message = `a comment of ${text.length} columns; ${maxCommentColumns} at the most`;
    return [{ place: file.path, line: index + 1, severity: "error" as const, message }];
  });
}

/** Beside a table of filters stand what all of them share, and folders. */
function filtersAreFolders(file: SourceFile): readonly Finding[] {
  return /^packages\/proxy\/src\/filters\/[a-z]+\/(?!(network-)?filter-registration)[a-z0-9-]+-registration\.ts$/.test(
    file.path,
  )
    ? error(file, "a filter has a folder of its own")
    : [];
}
