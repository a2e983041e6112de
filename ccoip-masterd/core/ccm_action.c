/* SPDX-License-Identifier: MIT
 *
 * Actions out, and the text in them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

void ccm_actions_clear(struct ccm_actions *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->v[i].type == CCM_ACT_SEND)
			wire_master_clear(&a->v[i].msg);
		else if (a->v[i].type == CCM_ACT_JOURNAL)
			wire_journal_clear(&a->v[i].record);
	a->n = 0;
}

void ccm_actions_free(struct ccm_actions *a)
{
	ccm_actions_clear(a);
	free(a->v);
	*a = (struct ccm_actions){0};
}

static struct ccm_action *emit(struct ccm *m, enum ccm_action_type type, uint32_t conn)
{
	struct ccm_actions *out = m->out;
	struct ccm_action *x;
	size_t cap;

	if (out->n == out->cap && !m->oom) {
		cap = out->cap ? 2 * out->cap : 16;
		x = realloc(out->v, cap * sizeof *x);
		if (x) {
			out->v = x;
			out->cap = cap;
		} else {
			m->oom = true;
		}
	}
	x = m->oom ? &m->scratch : &out->v[out->n++];
	x->type = type;
	x->conn = conn;
	return x;
}

struct wm_msg *ccm_send(struct ccm *m, const struct ccm_agent *a, enum wm_type type)
{
	struct wm_msg *msg;

	wire_master_clear(&m->scratch.msg);
	msg = a->dead || a->absent ? &m->scratch.msg : &emit(m, CCM_ACT_SEND, a->conn)->msg;
	memset(msg, 0, sizeof *msg);
	msg->type = type;
	return msg;
}

struct wj_record *ccm_journal_action(struct ccm *m)
{
	wire_journal_clear(&m->scratch.record);
	return &emit(m, CCM_ACT_JOURNAL, 0)->record;
}

void ccm_close(struct ccm *m, uint32_t conn, const char *text)
{
	struct ccm_action *x = emit(m, CCM_ACT_CLOSE, conn);

	ccm_print(x->text, sizeof x->text, "%s", text);
}

bool ccm_logs(const struct ccm *m, uint32_t level)
{
	return level <= m->cfg.log_level;
}

void ccm_log(struct ccm *m, uint32_t level, const char *fmt, ...)
{
	struct ccm_action *x;
	va_list ap;

	if (!ccm_logs(m, level))
		return;
	x = emit(m, CCM_ACT_LOG, 0);
	x->level = level;
	va_start(ap, fmt);
	(void)vsnprintf(x->text, sizeof x->text, fmt, ap);
	va_end(ap);
}

void ccm_print(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(dst, size, fmt, ap);
	va_end(ap);
}

void ccm_append(char *dst, size_t size, const char *fmt, ...)
{
	size_t len = strlen(dst);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(dst + len, size - len, fmt, ap);
	va_end(ap);
}

void ccm_copy(char *dst, size_t size, const char *src)
{
	size_t i;

	for (i = 0; i + 1 < size && src[i]; i++)
		dst[i] = (unsigned char)src[i] < 0x20 || src[i] == 0x7f ? '?' : src[i];
	dst[i] = '\0';
}

void *ccm_calloc(struct ccm *m, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		m->oom = true;
	return p;
}
