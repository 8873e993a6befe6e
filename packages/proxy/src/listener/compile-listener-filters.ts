// The listener filters of a listener: which look at the first bytes of which connections
// (config.listener.v3.ListenerFilter).
import type {
  ListenerFilter as ListenerFilterMessage,
  ListenerFilterChainMatchPredicate,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import type { ConnectionInfo } from "./connection-info.ts";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import { listenerFilterOfType } from "../filters/listener/table.ts";
import type { ListenerBuild } from "./listener-build.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { unwrapTypedConfig } from "../fields/typed-config.ts";

export function compileListenerFilters(
  messages: readonly ListenerFilterMessage[],
  { scope, isTransparent, problems }: Pick<ListenerBuild, "scope" | "isTransparent" | "problems">,
  place: Place,
): readonly ListenerFilter[] {
  const filters: ListenerFilter[] = [];
  for (const [index, message] of messages.entries()) {
    const at = place.field("listener_filters", index);
    const config = message.configType.case === "typedConfig" ? unwrapTypedConfig(message.configType.value) : undefined;
    const registration = config && listenerFilterOfType(config.typeUrl);
    if (config === undefined || registration === undefined) {
      const type = config?.typeUrl.replace(/^.*\//, "") ?? "";
      problems.error(at, `Didn't find a registered implementation for '${message.name}' with type URL: '${type}'`);
      continue;
    }
    const { metrics } = scope;
    const build = { name: message.name, metrics, isTransparent, place: at.field("typed_config"), problems };
    const filter = registration.compile(config, build);
    if (filter === undefined) continue;
    const disabled = message.filterDisabled;
    filters.push(disabled === undefined ? filter : withDisabled(filter, compilePredicate(disabled, at, problems)));
  }
  return filters;
}

type Predicate = (connection: ConnectionInfo) => boolean;

function withDisabled(filter: ListenerFilter, isDisabled: Predicate): ListenerFilter {
  return { ...filter, isSkipped: (connection) => isDisabled(connection) || filter.isSkipped(connection) };
}

function compilePredicate(message: ListenerFilterChainMatchPredicate, place: Place, problems: Problems): Predicate {
  const { rule } = message;
  const all = (rules: readonly ListenerFilterChainMatchPredicate[]): readonly Predicate[] =>
    rules.map((each) => compilePredicate(each, place, problems));
  switch (rule.case) {
    case "orMatch": {
      const rules = all(rule.value.rules);
      return (connection) => rules.some((matches) => matches(connection));
    }
    case "andMatch": {
      const rules = all(rule.value.rules);
      return (connection) => rules.every((matches) => matches(connection));
    }
    case "notMatch": {
      const matches = compilePredicate(rule.value, place, problems);
      return (connection) => !matches(connection);
    }
    case "anyMatch":
      return () => rule.value;
    case "destinationPortRange": {
      const { start, end } = rule.value;
      return ({ localPort }) => localPort >= start && localPort < end;
    }
    case undefined:
      problems.error(place.field("filter_disabled"), "a rule is required");
      return () => false;
  }
}
