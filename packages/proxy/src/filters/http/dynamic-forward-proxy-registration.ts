// The dynamic forward proxy's row in the table of filters. In Envoy this filter resolves the authority before the router
// runs; here the cluster does it when the router asks for a host, so that the filter has nothing left to do.
import { FilterConfigSchema } from "@tulle/xds/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb";
import { decodeTypedConfig } from "../../fields/typed-config.ts";
import type { FilterRegistration } from "./filter-registration.ts";

export const dynamicForwardProxyRegistration: FilterRegistration = {
  types: [FilterConfigSchema.typeName],
  isTerminal: false,
  compile(config, build) {
    const message = decodeTypedConfig(FilterConfigSchema, config, build.place, build.problems);
    return message && { name: build.name };
  },
};
