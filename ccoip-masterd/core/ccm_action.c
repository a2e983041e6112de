/* SPDX-License-Identifier: MIT
 *
 * Actions out, and the text in them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

void ccm_problem_clear(struct ccm_problem *x)
{
	free(x->rates);
	free(x->trips_us);
	free(x->out);
	free(x->in);
	*x = (struct ccm_problem){0};
}

static void action_clear(struct ccm_action *x)
{
	if (x->type == CCM_ACT_SEND)
		wire_master_clear(&x->msg);
	else if (x->type == CCM_ACT_JOURNAL)
		wire_journal_clear(&x->record);
	else if (x->type == CCM_ACT_SOLVE)
		ccm_problem_clear(&x->problem);
}

void ccm_actions_clear(struct ccm_actions *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		action_clear(&a->v[i]);
	a->n = a->n_conns = 0;
}

void ccm_actions_free(struct ccm_actions *a)
{
	ccm_actions_clear(a);
	free(a->v);
	free(a->conns);
	*a = (struct ccm_actions){0};
}

static struct ccm_action *emit(struct ccm *m, enum ccm_action_type type)
{
	struct ccm_actions *out = m->out;
	struct ccm_action *x;

	if (out->n == out->cap)
		out->v = cc_must_grow(out->v, &out->cap, 16, sizeof *x);
	x = &out->v[out->n++];
	x->type = type;
	return x;
}

struct wm_msg *ccm_send_all(struct ccm *m, enum wm_type type)
{
	struct ccm_action *x = emit(m, CCM_ACT_SEND);

	x->first_conn = m->out->n_conns;
	x->n_conns = 0;
	memset(&x->msg, 0, wire_master_size(type));
	x->msg.type = type;
	return &x->msg;
}

void ccm_send_to(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_actions *out = m->out;

	if (a->dead || a->disconnected)
		return;
	if (out->n_conns == out->cap_conns)
		out->conns = cc_must_grow(out->conns, &out->cap_conns, 16, sizeof *out->conns);
	out->conns[out->n_conns++] = a->conn;
	out->v[out->n - 1].n_conns++;
}

struct wm_msg *ccm_send(struct ccm *m, const struct ccm_agent *a, enum wm_type type)
{
	struct wm_msg *msg = ccm_send_all(m, type);

	ccm_send_to(m, a);
	return msg;
}

struct wj_record *ccm_journal_action(struct ccm *m)
{
	return &emit(m, CCM_ACT_JOURNAL)->record;
}

struct ccm_problem *ccm_solve_action(struct ccm *m)
{
	return &emit(m, CCM_ACT_SOLVE)->problem;
}

void ccm_close(struct ccm *m, uint32_t conn, const char *text)
{
	struct ccm_action *x = emit(m, CCM_ACT_CLOSE);

	x->conn = conn;
	ccm_print(x->text, sizeof x->text, "%s", text);
}

bool ccm_logs(const struct ccm *m, uint32_t level)
{
	return level <= m->cfg.log_level;
}

__attribute__((format(printf, 4, 0))) static void log_line(
	struct ccm *m, bool stranger, uint32_t level, const char *fmt, va_list ap)
{
	struct ccm_action *x;

	if (!ccm_logs(m, level))
		return;
	x = emit(m, CCM_ACT_LOG);
	x->level = level;
	x->stranger = stranger;
	(void)vsnprintf(x->text, sizeof x->text, fmt, ap);
}

void ccm_log(struct ccm *m, uint32_t level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(m, false, level, fmt, ap);
	va_end(ap);
}

void ccm_log_agent(struct ccm *m, const struct ccm_agent *a, uint32_t level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(m, a->n_accepted == 0, level, fmt, ap);
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
