package io.tulle;

import io.grpc.testing.integration.TestServiceClient;
import java.util.Arrays;

/**
 * gRPC's client of the interoperability tests for several cases: what its own main does for one. That ends the JVM, and
 * the steps are not public.
 */
public final class InteropClient {
  /** The flags of {@link TestServiceClient}, {@code --}, and cases. */
  public static void main(String[] args) throws Exception {
    int end = Arrays.asList(args).indexOf("--");
    for (String name : Arrays.copyOfRange(args, end + 1, args.length)) {
      String[] flags = Arrays.copyOf(args, end + 1);
      flags[end] = "--test_case=" + name;
      var client = new TestServiceClient();
      var parse = TestServiceClient.class.getDeclaredMethod("parseArgs", String[].class);
      parse.setAccessible(true);
      parse.invoke(client, (Object) flags);
      for (String step : new String[] {"setUp", "run", "tearDown"}) {
        var method = TestServiceClient.class.getDeclaredMethod(step);
        method.setAccessible(true);
        method.invoke(client);
      }
      System.out.println("passed " + name);
    }
    System.exit(0);
  }
}
