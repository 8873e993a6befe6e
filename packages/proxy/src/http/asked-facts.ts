// Facts that cost something to know, and that are kept from when a format has asked for them.

export const asked = {
  /** `%DOWNSTREAM_CX_RTT%` */
  roundTrips: false,
  /** `%ROUTE_RESOLUTION_TIME_US%` */
  routeTimes: false,
};
