// Looks names up by the C library that it was built with, and prints what each of them is.
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int count, char **names) {
  for (int index = 1; index < count; index++) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(names[index], "80", &hints, &found);
    printf("%s %s", names[index], code == 0 ? "" : code == EAI_NONAME ? "none" : gai_strerror(code));
    for (struct addrinfo *each = found; each != NULL; each = each->ai_next) {
      char text[64];
      getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
      printf("%s%s", each == found ? "" : ",", text);
    }
    printf("\n");
  }
}
