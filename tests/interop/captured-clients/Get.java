// Asks for each address by Java's own HTTP client, which offers HTTP/2 with its first request, and prints the answers.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Get {
  public static void main(String[] addresses) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (String address : addresses) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(address)).build();
      System.out.print(client.send(request, BodyHandlers.ofString()).body());
    }
  }
}
