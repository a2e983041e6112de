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

#define LINE_SIZE 1024 /* no more than PIPE_BUF: a pipe takes a line as a whole or not at all */

static _Atomic int max_level = CC_LOG_INFO;
static _Atomic unsigned dropped; /* lines, since the last one that was written */
static _Atomic bool cut;         /* the last of them has its beginning written */

const char *const cc_log_levels[] = {
	[CC_LOG_ERR - CC_LOG_ERR] = "err",
	[CC_LOG_WARNING - CC_LOG_ERR] = "warning",
	[CC_LOG_NOTICE - CC_LOG_ERR] = "notice",
	[CC_LOG_INFO - CC_LOG_ERR] = "info",
	[CC_LOG_DEBUG - CC_LOG_ERR] = "debug",
	NULL,
};

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

/* systemd sets JOURNAL_STREAM to device and inode of the stream that leads to the journal. Standard
 * error may be another one by now. */
static bool is_journal(void)
{
	const char *env = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return env && sscanf(env, "%ju:%ju", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

/* The journal adds time and program itself, and reads the priority from <N>. */
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

/* -1: standard error is no terminal, or not to be opened. */
static int open_terminal(void)
{
	if (!isatty(STDERR_FILENO))
		return -1;
	return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/*
 * Standard error is inherited: O_NONBLOCK would be set for the programs that share it, too. So each
 * write to a pipe or socket says for itself that it must not wait, and a terminal is opened once
 * more. Where neither is possible poll knows whether there is room.
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

/* False: there is no room, as nobody reads. Other errors are nobody's. */
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

/* False: there is no room yet. */
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
