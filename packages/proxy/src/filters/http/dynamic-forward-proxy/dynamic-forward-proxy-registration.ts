// The dynamic forward proxy's row in the table of filters. In Envoy this filter resolves the authority before the
// router runs; here the cluster does it when the router asks for a host, so that the filter has nothing left to do.
import { FilterConfigSchema } from "@tulle/xds/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";

const filterMessage = checkedMessage(
  FilterConfigSchema,
  {
    [FilterConfigSchema.typeName]: {
      used: "dns_cache_config",
      harmless: { save_upstream_address: "saved for other filters, of which none here reads it" },
    },
  },
  sharedFields,
);

export const dynamicForwardProxyRegistration: FilterRegistration = {
  types: [FilterConfigSchema.typeName],
  isTerminal: false,
  compile(config, build) {
    const message = decodeTypedConfig(filterMessage, config, build.place, build.problems);
    return message && { name: build.name };
  },
};
