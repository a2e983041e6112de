/* SPDX-License-Identifier: MIT
 *
 * This library is preloaded into a daemon, which then stops itself (SIGSTOP) as soon as it has
 * logged a line that contains certain words. So a test can act while the daemon is in one step,
 * however short the step is. HOLD_CONTROL names a file that the test has also mapped (struct
 * control).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct control {
	_Atomic uint32_t armed; /* the test writes this field last; 0 after the stop */
	char words[1020];       /* several alternatives, separated by '\n' */
};

static struct control *control;

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("HOLD_CONTROL");
	void *p;
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	p = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		abort();
	control = p;
}

static int has_words(const char *line, size_t len)
{
	const char *at = control->words, *end;

	for (; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '\n');
		if (memmem(line, len, at, (size_t)(end - at)))
			return 1;
	}
	return 0;
}

ssize_t write(int fd, const void *p, size_t n)
{
	ssize_t ret = syscall(SYS_write, fd, p, n);
	int saved = errno;

	if (fd == STDERR_FILENO && ret > 0 && control && atomic_load(&control->armed) &&
		has_words(p, n) && atomic_exchange(&control->armed, 0))
		(void)kill(getpid(), SIGSTOP);
	errno = saved;
	return ret;
}
