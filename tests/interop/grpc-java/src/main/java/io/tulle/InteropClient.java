package io.tulle;

import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.stub.StreamObserver;
import io.grpc.testing.integration.TestServiceClient;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * gRPC's client of the interoperability tests for several cases: what its own main does for one. That ends the JVM, and
 * the steps are not public. Retries, health and reflection are cases of ours.
 */
public final class InteropClient {
  private static final String RETRY_POLICY =
      "{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {\"maxAttempts\": 3, \"initialBackoff\": \"0.01s\","
          + " \"maxBackoff\": \"0.1s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [\"RESOURCE_EXHAUSTED\"]}}]}";

  /** The flags of {@link TestServiceClient}, {@code --}, and cases. */
  public static void main(String[] args) throws Exception {
    List<String> all = Arrays.asList(args);
    int end = all.indexOf("--");
    List<String> flags = all.subList(0, end);
    for (String name : all.subList(end + 1, all.size())) {
      switch (name) {
        case "mesh_retry" ->
            test(flags, "empty_unary", "--additional_metadata=x-fail-twice:java " + ProcessHandle.current().pid());
        case "own_retry" ->
            test(
                flags,
                "empty_unary",
                "--additional_metadata=x-needs-attempts:2",
                "--service_config_json=" + RETRY_POLICY);
        case "health" -> withChannel(flags, InteropClient::checkHealth);
        case "reflection" -> withChannel(flags, InteropClient::reflect);
        default -> test(flags, name);
      }
      System.out.println("passed " + name);
    }
    System.exit(0);
  }

  private static void test(List<String> flags, String name, String... more) throws Exception {
    String[] all =
        Stream.of(flags.stream(), Stream.of("--test_case=" + name), Stream.of(more))
            .flatMap(each -> each)
            .toArray(String[]::new);
    var client = new TestServiceClient();
    var parse = TestServiceClient.class.getDeclaredMethod("parseArgs", String[].class);
    parse.setAccessible(true);
    parse.invoke(client, (Object) all);
    for (String step : new String[] {"setUp", "run", "tearDown"}) {
      var method = TestServiceClient.class.getDeclaredMethod(step);
      method.setAccessible(true);
      method.invoke(client);
    }
  }

  private interface Check {
    void run(ManagedChannel channel) throws Exception;
  }

  private static void withChannel(List<String> flags, Check check) throws Exception {
    int port = Integer.parseInt(valueOf(flags, "--server_port="));
    var builder = NettyChannelBuilder.forAddress(valueOf(flags, "--server_host="), port);
    var channel = builder.overrideAuthority(valueOf(flags, "--server_host_override=")).usePlaintext().build();
    try {
      check.run(channel);
    } finally {
      channel.shutdownNow();
    }
  }

  private static String valueOf(List<String> flags, String name) {
    return flags.stream().filter(flag -> flag.startsWith(name)).findFirst().orElseThrow().substring(name.length());
  }

  private static void checkHealth(ManagedChannel channel) {
    var stub = HealthGrpc.newBlockingStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
    var answer = stub.check(HealthCheckRequest.getDefaultInstance());
    if (answer.getStatus() != ServingStatus.SERVING) throw new AssertionError(answer);
    try {
      throw new AssertionError(stub.check(HealthCheckRequest.newBuilder().setService("none").build()));
    } catch (StatusRuntimeException error) {
      if (error.getStatus().getCode() != Status.Code.NOT_FOUND) throw error;
    }
  }

  private static void reflect(ManagedChannel channel) throws Exception {
    var answer = new CompletableFuture<ServerReflectionResponse>();
    var stub = ServerReflectionGrpc.newStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
    var requests =
        stub.serverReflectionInfo(
            new StreamObserver<ServerReflectionResponse>() {
              @Override
              public void onNext(ServerReflectionResponse response) {
                answer.complete(response);
              }

              @Override
              public void onError(Throwable error) {
                answer.completeExceptionally(error);
              }

              @Override
              public void onCompleted() {
                answer.completeExceptionally(new AssertionError("no answer"));
              }
            });
    requests.onNext(ServerReflectionRequest.newBuilder().setListServices("*").build());
    var services = answer.get(20, TimeUnit.SECONDS).getListServicesResponse().getServiceList();
    requests.onCompleted();
    if (services.stream().noneMatch(each -> each.getName().equals("grpc.health.v1.Health")))
      throw new AssertionError(services);
  }
}
