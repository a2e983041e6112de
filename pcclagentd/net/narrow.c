/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/narrow.h"

#include <stdlib.h>

#define NS_PER_MS 1000000ull

static struct narrow *find(struct narrow *list, const struct cc_id *agent)
{
	while (list && !cc_id_eq(&list->to.agent, agent))
		list = list->next;
	return list;
}

uint32_t net_narrow_size(const struct narrow *list, const struct cc_id *agent)
{
	while (list && !cc_id_eq(&list->to.agent, agent))
		list = list->next;
	return list ? list->size : 0;
}

static void wait_longer(struct narrow *n)
{
	n->wait_ms = n->wait_ms < NARROW_WAIT_MAX_MS / 2 ? 2 * n->wait_ms : NARROW_WAIT_MAX_MS;
}

static struct narrow *add(struct narrow **list, const struct cc_id *agent)
{
	struct narrow *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->to.agent = *agent;
	n->wait_ms = NARROW_WAIT_MIN_MS;
	n->next = *list;
	*list = n;
	return n;
}

int net_narrow_learn(
	struct narrow **list, const struct wm_endpoint *to, uint32_t size, uint64_t now_ns)
{
	struct narrow *n = find(*list, &to->agent);

	if (!n && size == 0)
		return 0;
	if (n && n->size == 0 && size > 0)
		wait_longer(n); /* larger segments passed, but not for long */
	if (!n)
		n = add(list, &to->agent);
	if (!n)
		return -1;
	n->to = *to;
	n->size = size;
	n->since_ns = now_ns;
	return 0;
}

void net_narrow_remains(struct narrow *list, const struct cc_id *agent)
{
	struct narrow *n = find(list, agent);

	if (n)
		wait_longer(n);
}

struct narrow *net_narrow_due(struct narrow *list, uint64_t now_ns)
{
	for (; list; list = list->next) {
		if (list->size == 0 || now_ns - list->since_ns < list->wait_ms * NS_PER_MS)
			continue;
		list->since_ns = now_ns;
		return list;
	}
	return NULL;
}

void net_narrow_free(struct narrow **list)
{
	struct narrow *n;

	while ((n = *list) != NULL) {
		*list = n->next;
		free(n);
	}
}
