/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "proto/wire_codes.h"

#define LINE_NS UINT64_C(500000000)

void rep_out_of_memory(const char *what)
{
	cc_limit_end(what);
}

uint32_t rep_shortage(const char *what, const char *call, char *text, size_t size)
{
	char limit[CC_LIMIT_TEXT];

	if (cc_limit_is_refusal(errno))
		cc_limit_call_text(call, errno, 0, limit, sizeof limit);
	else
		cc_limit_text_of(call, errno, limit, sizeof limit);
	snprintf(text, size, "%s: %s", what, limit);
	return cc_limit_is_of(call, errno) ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR;
}

void rep_complain(struct report *r, int level, const char *fmt, ...)
{
	uint64_t now = cc_now_ns(), more = (now - r->refill_ns) / LINE_NS;
	char line[768];
	va_list ap;

	if (more > 0) {
		r->refill_ns = now;
		r->tokens = more + r->tokens > REP_BURST ? REP_BURST : (uint32_t)more + r->tokens;
	}
	if (r->tokens == 0) {
		if (r->dropped++ == 0 || level < r->level)
			r->level = level;
		return;
	}
	r->tokens--;
	if (r->dropped > 0)
		cc_log(r->level, "%" PRIu32 " similar lines left out", r->dropped);
	r->dropped = 0;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	cc_log(level, "%s", line);
}

void rep_copy_text(char *dst, size_t size, const char *src)
{
	size_t n = strnlen(src, size - 1);

	memcpy(dst, src, n);
	dst[n] = '\0';
}
