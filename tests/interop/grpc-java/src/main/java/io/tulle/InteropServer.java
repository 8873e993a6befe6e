package io.tulle;

import io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.testing.integration.TestServiceImpl;
import io.grpc.ServerInterceptors;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** The server of gRPC's interoperability tests, with health and reflection, at the one address that it is given. */
public final class InteropServer {
  public static void main(String[] args) throws Exception {
    var executor = Executors.newSingleThreadScheduledExecutor();
    var tests = ServerInterceptors.intercept(new TestServiceImpl(executor), TestServiceImpl.interceptors());
    var refusing = ServerInterceptors.intercept(tests, new Refusals());
    var server =
        NettyServerBuilder.forAddress(new InetSocketAddress(args[0], Integer.parseInt(args[1])))
            // For very_large_request.
            .maxInboundMessageSize(16 * 1024 * 1024)
            .addService(refusing)
            .addService(new HealthStatusManager().getHealthService())
            .addService(ProtoReflectionServiceV1.newInstance())
            .build()
            .start();
    System.out.println("listening");
    server.awaitTermination();
  }
}
