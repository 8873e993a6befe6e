// A filter that stands in the list switched off (HttpFilter.disabled) works where the route, virtual host or route
// configuration names it in typed_per_filter_config. Several sign-ins of one gateway stand beside each other so.

/** Where compiled per-filter configurations keep that the filter was named; no filter's name has a NUL. */
export function enablementKey(filterName: string): string {
  return `enabled\0${filterName}`;
}
