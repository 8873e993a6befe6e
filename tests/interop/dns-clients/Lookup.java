// Looks names up as any program in Java does, and prints what each of them is.
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;

public class Lookup {
  public static void main(String[] names) {
    for (String name : names) {
      List<String> addresses = new ArrayList<>();
      try {
        for (InetAddress address : InetAddress.getAllByName(name)) addresses.add(address.getHostAddress());
      } catch (UnknownHostException error) {
        addresses.add("none");
      }
      System.out.println(name + " " + String.join(",", addresses));
    }
  }
}
