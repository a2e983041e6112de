/* SPDX-License-Identifier: MIT */
#include "pcclagentd/local/outbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "pcclagentd/local/packet.h"

struct outbox_item {
	struct outbox_item *next;
	struct wl_reply reply;
	int fds[WL_FDS_MAX];
	size_t n_fds;
};

static void item_free(struct outbox_item *x)
{
	for (size_t i = 0; i < x->n_fds; i++)
		close(x->fds[i]);
	free(x);
}

static int keep(struct outbox *o, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	struct outbox_item *x;

	if (o->n == OUTBOX_MAX)
		return CC_ERR_LIMIT;
	x = malloc(sizeof *x);
	if (!x)
		return CC_ERR_NOMEM;
	*x = (struct outbox_item){.reply = *r};
	for (; x->n_fds < n_fds; x->n_fds++) {
		x->fds[x->n_fds] = fcntl(fds[x->n_fds], F_DUPFD_CLOEXEC, 0);
		if (x->fds[x->n_fds] < 0) {
			item_free(x);
			return CC_ERR_IO;
		}
	}
	if (o->last)
		o->last->next = x;
	else
		o->first = x;
	o->last = x;
	o->n++;
	return 0;
}

int loc_outbox_send(
	struct outbox *o, int sock, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	int err = o->n > 0 ? CC_ERR_LIMIT : loc_packet_send(sock, r, fds, n_fds);

	return err == CC_ERR_LIMIT ? keep(o, r, fds, n_fds) : err;
}

int loc_outbox_flush(struct outbox *o, int sock)
{
	while (o->first) {
		struct outbox_item *x = o->first;
		int err = loc_packet_send(sock, &x->reply, x->fds, x->n_fds);

		if (err < 0)
			return err == CC_ERR_LIMIT ? 0 : err;
		o->first = x->next;
		if (!o->first)
			o->last = NULL;
		o->n--;
		item_free(x);
	}
	return 0;
}

void loc_outbox_clear(struct outbox *o)
{
	while (o->first) {
		struct outbox_item *x = o->first;

		o->first = x->next;
		item_free(x);
	}
	*o = (struct outbox){0};
}
