/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/flow.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/cc_sys.h"

/* If more time than this has passed since the last check, the measurement starts again. Such gaps
 * are normal, because checks are rare while nothing is sent. */
#define LATE_NS 2500000000ull

bool flow_is_stuck(struct flow *f, int fd, uint32_t stuck_ms)
{
	uint64_t now = cc_now_ns();
	bool on_time = now - f->looked_ns < LATE_NS;
	struct tcp_info info = {0};
	socklen_t len = sizeof info;
	uint32_t bound_ms;

	/* Without the kernel's counters the stream never counts as stuck. */
	f->looked_ns = now;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		len < offsetof(struct tcp_info, tcpi_delivered) + sizeof info.tcpi_delivered)
		return false;
	if (info.tcpi_segs_in != f->segs_in)
		f->heard_ns = now;
	if (info.tcpi_unacked == 0 || info.tcpi_delivered != f->delivered || !on_time ||
		now - f->heard_ns >= FLOW_QUIET_MS * 1000000ull) {
		f->since_ns = now;
		f->repeated = info.tcpi_total_retrans;
	}
	f->segs_in = info.tcpi_segs_in;
	f->delivered = info.tcpi_delivered;
	bound_ms = stuck_ms + 2 * cc_tcp_info_path_ms(info.tcpi_rtt, info.tcpi_rttvar);
	return now - f->since_ns >= bound_ms * UINT64_C(1000000) &&
	       info.tcpi_total_retrans - f->repeated >= FLOW_STUCK_TRIES;
}
