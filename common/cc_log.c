/* SPDX-License-Identifier: MIT */
#include "common/cc_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Atomic int max_level = CC_LOG_INFO;

static const char *const level_names[] = {
	[CC_LOG_ERR] = "err",
	[CC_LOG_WARNING] = "warning",
	[CC_LOG_NOTICE] = "notice",
	[CC_LOG_INFO] = "info",
	[CC_LOG_DEBUG] = "debug",
};

void cc_log_set_level(int level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

int cc_log_parse_level(const char *name)
{
	for (int i = CC_LOG_ERR; i <= CC_LOG_DEBUG; i++)
		if (strcmp(name, level_names[i]) == 0)
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
		program_invocation_short_name, (int)getpid(), level_names[level]);
}

void cc_log(int level, const char *fmt, ...)
{
	char line[1024];
	int saved = errno, n;
	size_t len;
	va_list ap;

	if (level > atomic_load_explicit(&max_level, memory_order_relaxed))
		return;
	len = (size_t)put_prefix(line, sizeof line, level);
	va_start(ap, fmt);
	n = vsnprintf(line + len, sizeof line - len - 1, fmt, ap);
	va_end(ap);
	len += n > 0 ? (size_t)n : 0;
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	/* A log that cannot be written is nobody's error. */
	(void)!write(STDERR_FILENO, line, len);
	errno = saved;
}
