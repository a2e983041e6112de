/* SPDX-License-Identifier: MIT
 *
 * The action list and the ways to append to it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

void agt_action_clear(struct agt_action *x)
{
	if (x->type == AGT_ACT_MASTER_SEND) {
		wire_master_clear(&x->u.msg);
	} else if (x->type == AGT_ACT_XFER_START || x->type == AGT_ACT_XFER_EXPECT) {
		free(x->u.xfer.members);
		free(x->u.xfer.agents);
		free(x->u.xfer.rings);
	} else if (x->type == AGT_ACT_SYNC_START) {
		free(x->u.sync.members);
		free(x->u.sync.sources);
	} else if (x->type == AGT_ACT_MEASURE) {
		free(x->u.measure.to);
		free(x->u.measure.from);
	}
}

void agt_actions_clear(struct agt_actions *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		agt_action_clear(&a->v[i]);
	a->n = 0;
}

void agt_actions_free(struct agt_actions *a)
{
	agt_actions_clear(a);
	free(a->v);
	a->v = NULL;
	a->cap = 0;
}

/* Appends an action. Clears only the first `size` bytes of its union. This must not be inlined,
 * because the compiler would replace memset by a string instruction, which is slower. */
__attribute__((noinline)) static struct agt_action *emit(
	struct agt *a, enum agt_action_type type, size_t size)
{
	struct agt_actions *out = a->out;
	struct agt_action *x;

	if (out->n == out->cap)
		out->v = cc_must_grow(out->v, &out->cap, 16, sizeof *x);
	x = &out->v[out->n++];
	memset(x, 0, offsetof(struct agt_action, u) + size);
	x->type = type;
	return x;
}

/* Returns how many bytes of the union an action of this type uses. Actions of an operation are
 * small and frequent; actions with the largest members are rare. */
static size_t size_of(enum agt_action_type type)
{
	switch (type) {
	case AGT_ACT_COMPLETE:
		return sizeof(struct agt_done);
	case AGT_ACT_XFER_START:
	case AGT_ACT_XFER_CANCEL:
	case AGT_ACT_XFER_FREE:
	case AGT_ACT_XFER_ROLLBACK:
	case AGT_ACT_XFER_EXPECT:
	case AGT_ACT_XFER_FORGET:
	case AGT_ACT_XFER_SKIP:
		return sizeof(struct agt_xfer);
	default:
		return sizeof(struct agt_action) - offsetof(struct agt_action, u);
	}
}

struct agt_action *agt_emit(struct agt *a, enum agt_action_type type)
{
	return emit(a, type, size_of(type));
}

struct wm_msg *agt_send(struct agt *a, struct agt_run *r, enum wm_type type)
{
	struct agt_action *x;

	/* A run without a master is over, or will send a snapshot to its next master. */
	if (r->state != AGT_RUN_UP && type != WM_HELLO) {
		x = &a->unsent;
		agt_action_clear(x);
		memset(x, 0, sizeof *x);
		x->type = AGT_ACT_MASTER_SEND;
	} else {
		x = emit(a, AGT_ACT_MASTER_SEND, wire_master_size(type));
	}
	x->run = r->id;
	x->u.msg.type = type;
	r->spoke_ns = a->now;
	return &x->u.msg;
}

struct wl_reply *agt_reply(
	struct agt *a, const struct agt_comm *c, uint32_t req_id, uint32_t code, const char *text)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_REPLY);

	x->session = c->session->id;
	x->u.reply.req_id = req_id;
	x->u.reply.code = code;
	x->u.reply.comm = c->id;
	agt_copy_text(x->u.reply.text, sizeof x->u.reply.text, text);
	return &x->u.reply;
}

void agt_complete(struct agt *a, uint32_t comm, uint32_t slot, const struct agt_done *done)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_COMPLETE);

	x->comm = comm;
	x->slot = slot;
	x->u.done = *done;
}

void agt_log(struct agt *a, uint32_t level, const char *fmt, ...)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_LOG);
	va_list ap;

	x->level = level;
	va_start(ap, fmt);
	(void)vsnprintf(x->u.text, sizeof x->u.text, fmt, ap);
	va_end(ap);
}

void agt_copy_text(char *dst, size_t size, const char *text)
{
	size_t len = text ? strnlen(text, size - 1) : 0;

	if (len)
		memcpy(dst, text, len);
	dst[len] = '\0';
	/* Shows that the text was cut. */
	if (len > 3 && text[len])
		memcpy(dst + len - 3, "...", 3);
}

void agt_end_status_set(struct agt_end_status *v, uint32_t code, const char *fmt, ...)
{
	va_list ap;

	v->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof v->text, fmt, ap);
	va_end(ap);
}
