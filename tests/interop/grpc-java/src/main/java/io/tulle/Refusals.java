package io.tulle;

import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Refuses calls that ask for it by their metadata, as the server in Go does (grpc-go/main.go says how). */
final class Refusals implements ServerInterceptor {
  private final Map<String, Integer> tries = new ConcurrentHashMap<>();

  @Override
  public <A, B> ServerCall.Listener<A> interceptCall(
      ServerCall<A, B> call, Metadata metadata, ServerCallHandler<A, B> next) {
    Status refusal = refusal(valueOf(metadata, "x-fail-twice"), metadata);
    if (refusal == null) return next.startCall(call, metadata);
    call.close(refusal.withDescription("not yet"), new Metadata());
    return new ServerCall.Listener<>() {};
  }

  private Status refusal(String failing, Metadata metadata) {
    if (failing != null && tries.merge(failing, 1, Integer::sum) <= 2) return Status.UNAVAILABLE;
    String needed = valueOf(metadata, "x-needs-attempts");
    if (needed == null || needed.equals(valueOf(metadata, "grpc-previous-rpc-attempts"))) return null;
    return Status.RESOURCE_EXHAUSTED;
  }

  private static String valueOf(Metadata metadata, String name) {
    return metadata.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
  }
}
