/**
 * A finding: one thing to tell the user about one resource, with the place in the user's file where it stands. Every
 * stage of a configuration change answers with findings instead of throwing, so that one bad resource never stops the
 * others.
 */
/**
 * How an object is known, whatever its API group and version. `kind` is text because findings also speak of kinds that
 * the mesh does not know. The namespace is '' for kinds without one.
 */
export interface ResourceKey {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A position in a file as editors count it: line and column start at 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type Severity = "error" | "warning" | "info";

/** The codes that Tulle emits, with the names and severities that Istio's analyzers gave them. */
export const findingCodes = {
  IST0002: { name: "Deprecated", severity: "warning" },
  IST0101: { name: "ReferencedResourceNotFound", severity: "error" },
  IST0102: { name: "NamespaceNotInjected", severity: "info" },
  IST0103: { name: "PodMissingProxy", severity: "warning" },
  IST0106: { name: "SchemaValidationError", severity: "error" },
  IST0109: { name: "ConflictingMeshGatewayVirtualServiceHosts", severity: "error" },
  IST0112: { name: "VirtualServiceDestinationPortSelectorRequired", severity: "error" },
  IST0113: { name: "MTLSPolicyConflict", severity: "error" },
  IST0118: { name: "PortNameIsNotUnderNamingConvention", severity: "info" },
  IST0123: { name: "NamespaceMultipleInjectionLabels", severity: "warning" },
  IST0125: { name: "InvalidAnnotation", severity: "warning" },
  IST0127: { name: "NoMatchingWorkloadsFound", severity: "warning" },
  IST0128: { name: "NoServerCertificateVerificationDestinationLevel", severity: "warning" },
  IST0129: { name: "NoServerCertificateVerificationPortLevel", severity: "warning" },
  IST0130: { name: "VirtualServiceUnreachableRule", severity: "warning" },
  IST0131: { name: "VirtualServiceIneffectiveMatch", severity: "info" },
  IST0132: { name: "VirtualServiceHostNotFoundInGateway", severity: "warning" },
  IST0133: { name: "SchemaWarning", severity: "warning" },
  IST0134: { name: "ServiceEntryAddressesRequired", severity: "warning" },
  IST0138: { name: "GatewayDuplicateCertificate", severity: "warning" },
  IST0144: { name: "InvalidApplicationUID", severity: "warning" },
  IST0145: { name: "ConflictingGateways", severity: "error" },
  IST0149: { name: "JwtClaimBasedRoutingWithoutRequestAuthN", severity: "error" },
  IST0157: { name: "InvalidTelemetryProvider", severity: "warning" },
  IST0159: { name: "ConflictingTelemetryWorkloadSelectors", severity: "error" },
  IST0160: { name: "MultipleTelemetriesWithoutWorkloadSelectors", severity: "error" },
  IST0161: { name: "InvalidGatewayCredential", severity: "error" },
  IST0162: { name: "GatewayPortNotDefinedOnService", severity: "warning" },
  IST0167: { name: "IneffectivePolicy", severity: "warning" },
  IST0173: { name: "DestinationRuleSubsetNotSelectPods", severity: "error" },
  TUL0001: { name: "NotImplementedYet", severity: "warning" },
  TUL0002: { name: "UnreadableDocument", severity: "error" },
  TUL0003: { name: "UnknownKind", severity: "warning" },
  TUL0004: { name: "DefinedTwice", severity: "warning" },
  TUL0005: { name: "ProtocolNotCarriedInLoopbackMode", severity: "warning" },
  TUL0006: { name: "AudiencesNotChecked", severity: "warning" },
  TUL0007: { name: "KeysNotFetched", severity: "warning" },
  TUL0008: { name: "ConflictingPeerAuthentications", severity: "warning" },
  TUL0009: { name: "LoginPathTaken", severity: "warning" },
  TUL0010: { name: "ProviderNotDiscovered", severity: "warning" },
  TUL0011: { name: "RefusedByProxy", severity: "error" },
  TUL0012: { name: "VariableNotSet", severity: "warning" },
  TUL0013: { name: "VolumeNotMounted", severity: "warning" },
  TUL0014: { name: "OverlappingRollouts", severity: "error" },
  TUL0015: { name: "RolloutCannotGoOn", severity: "error" },
  TUL0016: { name: "HostTaken", severity: "warning" },
  TUL0017: { name: "AddressNotGiven", severity: "error" },
} as const satisfies Record<string, { readonly name: string; readonly severity: Severity }>;

/** Pages that say more of a code than one finding can. */
export const findingPages: Readonly<Partial<Record<FindingCode, string>>> = { TUL0001: "docs/istio-api.md" };

export type FindingCode = keyof typeof findingCodes;

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** One sentence without the place: what is wrong. */
  readonly message: string;
  readonly resource?: ResourceKey;
  /** The field, as a person writes it: `spec.http[0].route[1].destination.host`. */
  readonly path?: string;
  readonly place?: Place;
  /** What to do about it. */
  readonly suggestion?: string;
}
