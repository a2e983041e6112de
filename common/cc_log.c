/* SPDX-License-Identifier: MIT */
#include "common/cc_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* systemd sets JOURNAL_STREAM for services whose standard error goes to the journal, which reads
 * the priority from a <N> prefix. */
static int put_prefix(char *buf, size_t size, int level)
{
	static _Atomic int journal = -1;
	int j = atomic_load_explicit(&journal, memory_order_relaxed);

	if (j < 0) {
		j = getenv("JOURNAL_STREAM") != NULL;
		atomic_store_explicit(&journal, j, memory_order_relaxed);
	}
	if (j)
		return snprintf(buf, size, "<%d>", level);
	return snprintf(buf, size, "%s: ", level_names[level]);
}

void cc_log(int level, const char *fmt, ...)
{
	char line[1024];
	size_t len;
	va_list ap;
	int n;

	if (level > atomic_load_explicit(&max_level, memory_order_relaxed))
		return;
	len = (size_t)put_prefix(line, sizeof line, level);
	va_start(ap, fmt);
	n = vsnprintf(line + len, sizeof line - len - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	len += (size_t)n;
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	/* A log that cannot be written is nobody's error. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
