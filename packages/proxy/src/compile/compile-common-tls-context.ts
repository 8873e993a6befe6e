// CommonTlsContext, for both sides of TLS (extensions.transport_sockets.tls.v3).
import type { CommonTlsContext as CommonTlsContextMessage } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import { CommonTlsContext, type ServerSettings } from "../tls/common-tls-context.ts";
import { validationProblem } from "../tls/merged-validation.ts";
import type { ValidationContext } from "../tls/secret.ts";
import { filledSecretSlot, type SecretSlot } from "../tls/secret-slot.ts";
import { buildTlsCertificate, buildValidationContext } from "./compile-secret.ts";
import { compileSecretReference } from "../fields/compile-secret-source.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { compileTlsParameters } from "./compile-tls-parameters.ts";
import type { Place, Problems } from "../fields/problems.ts";

export interface TlsBuild {
  readonly scope: CompileScope;
  readonly problems: Problems;
  /** Gathers what must have come before the listener or cluster is warm. */
  readonly secrets: Set<SecretSlot>;
}

/** `checkFields` has looked at the message already, as part of the transport socket's configuration. */
export function compileCommonTlsContext(
  message: CommonTlsContextMessage | undefined,
  role: "client" | "server",
  build: TlsBuild,
  place: Place,
  server?: ServerSettings,
): CommonTlsContext {
  const { problems } = build;
  const validation = compileValidation(message, build, place);
  return new CommonTlsContext({
    role,
    parameters: compileTlsParameters(message?.tlsParams, place.field("tls_params"), problems),
    certificates: compileCertificates(message, role, build, place),
    ownValidation: validation.own,
    validationSlot: validation.slot,
    alpnProtocols: alpnProtocols(message, place, problems),
    server,
  });
}

function compileCertificates(
  message: CommonTlsContextMessage | undefined,
  role: "client" | "server",
  { scope, problems, secrets }: TlsBuild,
  place: Place,
): readonly SecretSlot[] {
  const inline = message?.tlsCertificates ?? [];
  const references = message?.tlsCertificateSdsSecretConfigs ?? [];
  const at = place.field("tls_certificate_sds_secret_configs");
  if (inline.length > 0 && references.length > 0) {
    problems.error(at, "only one of tls_certificates and tls_certificate_sds_secret_configs may be set");
  }
  if (role === "client" && inline.length + references.length > 1) {
    problems.error(place, "Multiple TLS certificates are not supported for client contexts");
  }
  const slots: SecretSlot[] = [];
  for (const [index, certificate] of inline.entries()) {
    const secret = buildTlsCertificate(
      certificate,
      scope.environment,
      place.field("tls_certificates", index),
      problems,
    );
    if (secret !== undefined) slots.push(filledSecretSlot("", secret));
  }
  for (const [index, reference] of references.entries()) {
    const position = place.field("tls_certificate_sds_secret_configs", index);
    const slot = compileSecretReference(reference, scope, secrets, position, problems);
    if (slot !== undefined) slots.push(slot);
  }
  return slots;
}

interface CompiledValidation {
  readonly own: ValidationContext | undefined;
  readonly slot: SecretSlot | undefined;
}

function compileValidation(
  message: CommonTlsContextMessage | undefined,
  { scope, problems, secrets }: TlsBuild,
  place: Place,
): CompiledValidation {
  const type = message?.validationContextType;
  switch (type?.case) {
    case "validationContext": {
      const at = place.field("validation_context");
      const own = buildValidationContext(type.value, scope.environment, at, problems);
      const problem = validationProblem(own);
      if (problem !== undefined) problems.error(at, problem);
      return { own, slot: undefined };
    }
    case "validationContextSdsSecretConfig": {
      const at = place.field("validation_context_sds_secret_config");
      return { own: undefined, slot: compileSecretReference(type.value, scope, secrets, at, problems) };
    }
    case "combinedValidationContext": {
      const at = place.field("combined_validation_context");
      const { defaultValidationContext: own, validationContextSdsSecretConfig: reference } = type.value;
      if (own === undefined) problems.error(at.field("default_validation_context"), "value is required");
      const sdsPlace = at.field("validation_context_sds_secret_config");
      if (reference === undefined) problems.error(sdsPlace, "value is required");
      return {
        own: own && buildValidationContext(own, scope.environment, at.field("default_validation_context"), problems),
        slot: reference && compileSecretReference(reference, scope, secrets, sdsPlace, problems),
      };
    }
    default:
      // Other kinds are refused by their fields.
      return { own: undefined, slot: undefined };
  }
}

function alpnProtocols(
  message: CommonTlsContextMessage | undefined,
  place: Place,
  problems: Problems,
): readonly string[] {
  const protocols = message?.alpnProtocols ?? [];
  for (const [index, protocol] of protocols.entries()) {
    // RFC 7301 §3.1: one octet tells the length.
    const bytes = Buffer.byteLength(protocol);
    if (bytes === 0 || bytes > 255) problems.error(place.field("alpn_protocols", index), "1 to 255 bytes are required");
  }
  return protocols;
}
