/* SPDX-License-Identifier: MIT */
#include "common/cc_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 1024 /* at most PIPE_BUF, so that a pipe takes either a whole line or nothing */

static _Atomic int max_level = CC_LOG_INFO;
static _Atomic unsigned dropped; /* lines dropped since the last written line */
static _Atomic bool cut;         /* only the beginning of the last dropped line was written */

const char *const cc_log_levels[] = {"err", "warning", "notice", "info", "debug", NULL};

void cc_log_set_level(int level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

int cc_log_parse_level(const char *name)
{
	for (int i = CC_LOG_ERR; i <= CC_LOG_DEBUG; i++)
		if (strcmp(name, cc_log_levels[i - CC_LOG_ERR]) == 0)
			return i;
	return -1;
}

/* Returns whether standard error leads to the journal. systemd sets JOURNAL_STREAM to the device
 * and the inode of the stream to the journal, but standard error may have been redirected since
 * then. */
static bool is_journal(void)
{
	const char *env = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return env && sscanf(env, "%ju:%ju", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

/* Writes the beginning of a line. The journal adds time and program by itself, and reads the
 * priority from <N>. */
static int put_prefix(char *buf, size_t size, int level)
{
	char date[32] = "";
	struct timespec now;
	struct tm tm;

	if (is_journal())
		return snprintf(buf, size, "<%d>", level);
	clock_gettime(CLOCK_REALTIME, &now);
	if (localtime_r(&now.tv_sec, &tm))
		strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
	return snprintf(buf, size, "%s.%03ld %s[%d]: %s: ", date, now.tv_nsec / 1000000,
		program_invocation_short_name, (int)getpid(), cc_log_levels[level - CC_LOG_ERR]);
}

/* Returns a new descriptor of the terminal, or -1 if standard error is not a terminal or cannot be
 * opened. */
static int open_terminal(void)
{
	if (!isatty(STDERR_FILENO))
		return -1;
	return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/*
 * Writes as much of the line as fits without waiting. Other programs share standard error, and
 * O_NONBLOCK would apply to them, too. So each write to a pipe or a socket has its own flag not to
 * wait, and a terminal is opened again. Where neither is possible, poll reports whether there is
 * room.
 */
static ssize_t write_what_fits(char *line, size_t len)
{
	struct iovec v = {.iov_base = line, .iov_len = len};
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct stat st;
	ssize_t n;
	int fd;

	if (fstat(STDERR_FILENO, &st) < 0)
		return -1;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) {
		n = pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT);
		if (n >= 0 || errno == EAGAIN)
			return n;
	}
	fd = S_ISCHR(st.st_mode) ? open_terminal() : -1;
	if (fd >= 0) {
		n = write(fd, line, len);
		(void)close(fd);
		return n;
	}
	if (poll(&p, 1, 0) != 0)
		return write(STDERR_FILENO, line, len);
	errno = EAGAIN;
	return -1;
}

/* Returns false if there is no room because nobody reads. Ignores other errors. */
static bool write_all(char *line, size_t len)
{
	ssize_t n = write_what_fits(line, len);

	if (n > 0 && (size_t)n < len)
		atomic_store_explicit(&cut, true, memory_order_relaxed);
	return n < 0 ? errno != EAGAIN : (size_t)n == len;
}

__attribute__((format(printf, 3, 0))) static size_t put_line(
	char line[LINE_SIZE], int level, const char *fmt, va_list ap)
{
	size_t len = (size_t)put_prefix(line, LINE_SIZE, level);
	int n = vsnprintf(line + len, LINE_SIZE - len - 1, fmt, ap);

	len += n > 0 ? (size_t)n : 0;
	if (len > LINE_SIZE - 2)
		len = LINE_SIZE - 2;
	line[len++] = '\n';
	return len;
}

__attribute__((format(printf, 2, 3))) static bool write_line(int level, const char *fmt, ...)
{
	char line[LINE_SIZE];
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	len = put_line(line, level, fmt, ap);
	va_end(ap);
	return write_all(line, len);
}

static bool end_cut_line(void)
{
	char end[] = "\n";

	if (!atomic_exchange_explicit(&cut, false, memory_order_relaxed) || write_all(end, 1))
		return true;
	atomic_store_explicit(&cut, true, memory_order_relaxed);
	return false;
}

/* Logs the number of dropped lines. Returns false if there is still no room. */
static bool tell_dropped(void)
{
	unsigned n = atomic_exchange_explicit(&dropped, 0, memory_order_relaxed);

	if (n == 0 || (end_cut_line() && write_line(CC_LOG_WARNING,
						 "%u %s dropped because standard error was not "
						 "read: read it, or redirect it to a file",
						 n, n == 1 ? "line was" : "lines were")))
		return true;
	atomic_fetch_add_explicit(&dropped, n, memory_order_relaxed);
	return false;
}

void cc_log(int level, const char *fmt, ...)
{
	char line[LINE_SIZE];
	int saved = errno;
	size_t len;
	va_list ap;

	if (level > atomic_load_explicit(&max_level, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	len = put_line(line, level, fmt, ap);
	va_end(ap);
	if (!tell_dropped() || !write_all(line, len))
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
	errno = saved;
}
