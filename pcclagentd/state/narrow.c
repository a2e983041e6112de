/* SPDX-License-Identifier: MIT
 *
 * Sources whose large packets get lost on the path to this host. Such a source accepts streams, and
 * its kernel acknowledges data, but no answer to a request arrives. So the next streams to this
 * source have smaller segments. The segment size that this host announces limits the packets that
 * the source sends. A source whose agent is stopped looks the same for a moment. Therefore the
 * smaller size is forgotten after a while.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/flow.h"
#include "pcclagentd/state/fetch.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/narrow.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/stream.h"

/* After this time without an answer a stream is suspect. The source's kernel ends the connection
 * later than this (stall_ms in serve.c). */
#define WAITED_NS STE_MS(2000)
#define FORGET_NS STE_MS(600000)
#define SOURCES   64u
#define ALIVE_MS  1500u /* the other host's kernel answers a probe each second */

struct ste_narrow {
	struct cc_id agent;
	uint8_t times; /* its segment size: index of cc_tcp_sizes */
	uint64_t since_ns;
};

struct ste_narrow *ste_narrow_new(void)
{
	return calloc(SOURCES, sizeof(struct ste_narrow));
}

static struct ste_narrow *find(struct ste *e, const struct cc_id *agent)
{
	struct ste_narrow *oldest = e->narrow;

	for (uint32_t i = 0; i < SOURCES; i++) {
		if (cc_id_eq(&e->narrow[i].agent, agent))
			return &e->narrow[i];
		if (e->narrow[i].since_ns < oldest->since_ns)
			oldest = &e->narrow[i];
	}
	*oldest = (struct ste_narrow){.agent = *agent};
	return oldest;
}

static struct ste_narrow *get(struct ste_stream *s)
{
	struct ste_narrow *n = find(s->j->e, &s->src->s.agent);

	if (s->j->e->now_ns - n->since_ns > FORGET_NS)
		n->times = 0;
	return n;
}

void ste_narrow_begin(struct ste_stream *s)
{
	uint32_t known = get(s)->times;
	int size;

	s->narrow = (uint8_t)(known > s->src->s.segments ? known : s->src->s.segments);
	if (s->narrow >= CC_TCP_SIZES)
		s->narrow = CC_TCP_SIZES - 1;
	size = cc_tcp_sizes[s->narrow];
	if (size > 0)
		setsockopt(s->f.fd, IPPROTO_TCP, TCP_MAXSEG, &size, sizeof size);
}

static bool host_is_heard(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_last_ack_recv < ALIVE_MS;
}

bool ste_narrow_hears(struct ste_stream *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	if (getsockopt(s->f.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		info.tcpi_data_segs_in == s->segs_in)
		return false;
	s->segs_in = info.tcpi_data_segs_in;
	return true;
}

bool ste_narrow_suspect(const struct ste_stream *s)
{
	return s->state == STE_UP && !s->stalled && (s->busy || s->n_asks > 0) &&
	       s->j->e->now_ns - s->heard_ns > WAITED_NS &&
	       s->j->e->now_ns - s->segs_ns > WAITED_NS && host_is_heard(s->f.fd);
}

void ste_narrow_shrink(struct ste_stream *s)
{
	struct ste_narrow *n = get(s);

	if (s->narrow < n->times || s->narrow + 1 == CC_TCP_SIZES)
		return;
	n->times = s->narrow + 1;
	n->since_ns = s->j->e->now_ns;
	cc_log(CC_LOG_WARNING,
		"no shared state comes from host %s: %s; the next streams have segments of %u "
		"bytes at most",
		s->src->s.name, FLOW_STUCK_TEXT, cc_tcp_sizes[n->times]);
}
