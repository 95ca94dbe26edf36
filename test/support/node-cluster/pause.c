/* The process that holds the namespaces of a Pod: it waits for a signal to end, and reaps the orphans of the Pod. */
#include <signal.h>
#include <unistd.h>

static void end(int number) { _exit(0); }

int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  signal(SIGCHLD, SIG_IGN);
  for (;;) pause();
}
