/* SPDX-License-Identifier: MIT
 *
 * A fake agent as a program, which the library starts instead of pcclagentd. Of the test's
 * environment it gets only variables that begin with XDG_. It adds a line to the file
 * XDG_STANDIN_STARTS at each start: its arguments and open descriptors. It ends when the FIFO
 * XDG_STANDIN_LEASH is closed, which the test holds open for writing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/shim/fake_agent.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		exit(1);
	return value;
}

static void note(int argc, char **argv)
{
	char line[512];
	size_t n = 0;
	int fd;

	for (int i = 1; i < argc; i++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s ", argv[i]);
	n += (size_t)snprintf(line + n, sizeof line - n, "fds");
	for (fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			n += (size_t)snprintf(line + n, sizeof line - n, " %d", fd);
	n += (size_t)snprintf(line + n, sizeof line - n, "\n");
	fd = open(variable("XDG_STANDIN_STARTS"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, n) != (ssize_t)n)
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	struct fake *f;
	int leash;
	char c;

	note(argc, argv);
	fprintf(stderr, "stand-in agent started\n");
	/* The FIFO must be opened while the test still waits for this program, because later the
	 * test may have closed its end. */
	leash = open(variable("XDG_STANDIN_LEASH"), O_RDONLY | O_CLOEXEC);
	if (fork() > 0)
		_exit(0);
	setsid();
	f = fake_start_fd(3);
	(void)!read(leash, &c, 1);
	fake_stop(f);
	close(leash);
	return 0;
}
