/*
 * The program of the Pods. `greeter serve <port>` answers each HTTP request with the user that it runs as, and whether
 * it could write. `greeter fetch <host> <port>` prints the answer of such a server.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int serve(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  int server = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 16) != 0) return 1;
  char body[200], answer[400], request[4096];
  int written = open("/written", O_CREAT | O_WRONLY, 0600);
  snprintf(body, sizeof body, "uid %d, root file system: %s\n", getuid(), written < 0 ? strerror(errno) : "writable");
  snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
  printf("%s", body);
  fflush(stdout);
  for (;;) {
    int client = accept(server, NULL, NULL);
    if (client < 0) continue;
    if (read(client, request, sizeof request) > 0) write(client, answer, strlen(answer));
    close(client);
  }
}

static int fetch(const char *host, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  int error = getaddrinfo(host, port, &hints, &found);
  if (error != 0) {
    printf("%s: %s\n", host, gai_strerror(error));
    return 1;
  }
  int server = socket(found->ai_family, SOCK_STREAM, 0);
  if (connect(server, found->ai_addr, found->ai_addrlen) != 0) {
    printf("%s: %s\n", host, strerror(errno));
    return 1;
  }
  const char *request = "GET / HTTP/1.1\r\nHost: greeter\r\n\r\n";
  write(server, request, strlen(request));
  char answer[1000];
  for (ssize_t length; (length = read(server, answer, sizeof answer)) > 0;) fwrite(answer, 1, length, stdout);
  return 0;
}

static int write_file(const char *path) {
  FILE *file = fopen(path, "w");
  int failed = file == NULL || fputs("written", file) < 0 || fclose(file) != 0;
  printf("%s: %s\n", path, failed ? strerror(errno) : "written");
  return failed;
}

int main(int count, char **words) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, _exit);
  if (count == 3 && strcmp(words[1], "serve") == 0) return serve(atoi(words[2]));
  if (count == 3 && strcmp(words[1], "write") == 0) return write_file(words[2]);
  if (count == 4 && strcmp(words[1], "fetch") == 0) return fetch(words[2], words[3]);
  return 2;
}
