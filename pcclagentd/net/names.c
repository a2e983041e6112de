/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/names.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "pcclagentd/net/net_internal.h"

#define ADDRS_MAX  16u
#define REFRESH_NS BASE_MS(30000) /* time until a name that was found is looked up again */
#define RETRY_NS   BASE_MS(3000)  /* time until a name that was not found is looked up again */

struct entry {
	struct place spec;
	struct gaicb lookup;
	struct addrinfo hints;
	bool under_way;
	int error; /* error of the last look-up; 0: no error */
	uint64_t next_ns;
	uint32_t n;
	struct cc_addr v[ADDRS_MAX];
};

struct names {
	uint32_t n;
	struct entry v[];
};

struct names *net_names_new(const struct addrs *p)
{
	struct names *ret;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += p->v[i].kind == ADDR_SPEC_NAME;
	if (n == 0)
		return NULL;
	ret = calloc(1, sizeof *ret + n * sizeof ret->v[0]);
	if (!ret)
		rep_out_of_memory("names of hosts");
	for (uint32_t i = 0; i < p->n; i++)
		if (p->v[i].kind == ADDR_SPEC_NAME)
			ret->v[ret->n++].spec = p->v[i];
	return ret;
}

/* Frees the names. A look-up in progress belongs to the resolver and cannot always be cancelled. In
 * this case the memory is not freed. */
void net_names_free(struct names *n)
{
	bool busy = false;

	for (uint32_t i = 0; n && i < n->n; i++) {
		struct entry *e = &n->v[i];

		busy |= e->under_way && gai_cancel(&e->lookup) == EAI_NOTCANCELED;
		if (!e->under_way && e->lookup.ar_result)
			freeaddrinfo(e->lookup.ar_result);
	}
	if (!busy)
		free(n);
}

static void start(struct entry *e)
{
	struct gaicb *list[] = {&e->lookup};

	e->hints = (struct addrinfo){.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	e->lookup = (struct gaicb){.ar_name = e->spec.name, .ar_request = &e->hints};
	e->under_way = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0;
	e->next_ns = cc_now_ns() + RETRY_NS;
}

/* A look-up has failed. The addresses that are known stay. */
static void fail(struct entry *e, int error)
{
	if (error != e->error)
		cc_log(CC_LOG_WARNING, "the host name %s in advertise is not found: %s",
			e->spec.name, gai_strerror(error));
	e->error = error;
	e->next_ns = cc_now_ns() + RETRY_NS;
}

static void take(struct entry *e)
{
	e->error = 0;
	e->n = 0;
	for (struct addrinfo *a = e->lookup.ar_result; a && e->n < ADDRS_MAX; a = a->ai_next)
		if (cc_addr_from_sockaddr(a->ai_addr, &e->v[e->n]) == 0 &&
			!cc_addr_is_link_local(&e->v[e->n]))
			e->v[e->n++].port = e->spec.addr.port;
	freeaddrinfo(e->lookup.ar_result);
	e->lookup.ar_result = NULL;
	e->next_ns = cc_now_ns() + REFRESH_NS;
}

static void look(struct entry *e)
{
	int error;

	if (e->under_way) {
		error = gai_error(&e->lookup);
		if (error == EAI_INPROGRESS)
			return;
		e->under_way = false;
		if (error)
			fail(e, error);
		else
			take(e);
	}
	if (cc_now_ns() >= e->next_ns)
		start(e);
}

void net_names_look(struct names *n)
{
	for (uint32_t i = 0; n && i < n->n; i++)
		look(&n->v[i]);
}

uint32_t net_names_get(const struct names *n, const struct place *p, const struct cc_addr **ret)
{
	for (uint32_t i = 0; n && i < n->n; i++) {
		const struct entry *e = &n->v[i];

		if (e->spec.addr.port != p->addr.port || strcmp(e->spec.name, p->name) != 0)
			continue;
		*ret = e->v;
		return e->n;
	}
	return 0;
}
