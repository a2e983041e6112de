/* SPDX-License-Identifier: MIT */
#include "pcclctl/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "proto/wire_frame.h"

#define TIMEOUT_MS    5000u
#define BUSY_RETRY_MS 20

struct call {
	const struct ctl_target *target;
	const char *path;
	int fd;
	uint64_t end_ns;
	uint8_t *buf; /* buffer for the frame of the answer */
	char *why;
};

__attribute__((format(printf, 3, 4))) static int fail(
	const struct call *c, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, CTL_WHY_SIZE, fmt, ap);
	va_end(ap);
	return code;
}

/* ---- bytes ---- */

static int ms_left(const struct call *c)
{
	uint64_t now = cc_now_ns();

	return now >= c->end_ns ? 0 : (int)((c->end_ns - now) / 1000000u) + 1;
}

static int no_answer(const struct call *c)
{
	return fail(c, EX_UNAVAILABLE,
		"%s: the %s did not answer within %u s; it may be stopped or overloaded, see its "
		"log",
		c->path, c->target->what, TIMEOUT_MS / 1000u);
}

static int await(const struct call *c, short events)
{
	struct pollfd p = {.fd = c->fd, .events = events};
	int n, left;

	do {
		left = ms_left(c);
		n = poll(&p, 1, left);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : no_answer(c);
}

static int lost(const struct call *c, const char *text)
{
	return fail(c, EX_UNAVAILABLE,
		"%s: the %s closed the connection (%s); it may have been stopped, or have too "
		"many admin connections: try again",
		c->path, c->target->what, text);
}

static int send_all(const struct call *c, const uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);
		int code;

		/* The last message of the daemon may be readable. */
		if (n < 0 && errno == EPIPE)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return lost(c, strerror(errno));
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		code = await(c, POLLOUT);
		if (code)
			return code;
	}
	return 0;
}

static int receive(const struct call *c, uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(c->fd, p, len, 0);
		int code;

		if (n == 0)
			return lost(c, "end of file");
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return lost(c, strerror(errno));
		code = await(c, POLLIN);
		if (code)
			return code;
	}
	return 0;
}

/* ---- one call ---- */

static int refused(const struct call *c, const struct wa_reply *r)
{
	if (r->version_min <= WA_VERSION_MAX && r->version_max >= WA_VERSION_MIN)
		return fail(c, EX_PROTOCOL, "%s: %s %s refuses: %s", c->path, r->daemon,
			r->software, r->error);
	return fail(c, EX_PROTOCOL,
		"%s: %s %s speaks versions %u to %u of the admin protocol, this "
		"pcclctl " PACKAGE_VERSION
		" speaks %u to %u: use the pcclctl of the daemon's version",
		c->path, r->daemon, r->software, r->version_min, r->version_max, WA_VERSION_MIN,
		WA_VERSION_MAX);
}

static int bad_frame(const struct call *c, int err, const uint8_t *hdr)
{
	if (err == CC_ERR_VERSION)
		return fail(c, EX_PROTOCOL,
			"%s: the %s answers in framing version %d, this pcclctl " PACKAGE_VERSION
			" speaks version %u: use the pcclctl of the daemon's version",
			c->path, c->target->what, hdr[4] | hdr[5] << 8, WIRE_FRAME_VERSION);
	return fail(c, EX_PROTOCOL, "%s: this is not the admin socket of a daemon", c->path);
}

static int read_reply(struct call *c, struct wa_reply *ret)
{
	uint8_t hdr[WIRE_FRAME_HDR];
	const char *why = "";
	int len, err, code = receive(c, hdr, sizeof hdr);

	if (code)
		return code;
	len = wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN);
	if (len < 0)
		return bad_frame(c, len, hdr);
	c->buf = malloc((size_t)len + 1);
	if (!c->buf)
		return fail(c, EX_OSERR, "no memory");
	code = receive(c, c->buf, (size_t)len);
	if (code)
		return code;
	err = wire_admin_decode_reply(c->buf, (size_t)len, ret, &why);
	if (err < 0)
		return fail(c, EX_PROTOCOL, "%s: the %s's answer is malformed: %s", c->path,
			c->target->what, why);
	if (ret->version == 0)
		code = refused(c, ret);
	else if (ret->error[0])
		code = fail(c, ret->denied ? EX_NOPERM : EX_UNAVAILABLE, "%s: %s: %s", c->path,
			ret->daemon, ret->error);
	if (code)
		wa_reply_clear(ret);
	return code;
}

static int exchange(struct call *c, const struct wa_request *asked, struct wa_reply *ret)
{
	struct wa_request q = *asked;
	uint8_t *frame;
	size_t len;
	int code;

	q.version_min = WA_VERSION_MIN;
	q.version_max = WA_VERSION_MAX;
	if (wire_admin_encode_request(&q, &frame, &len) < 0)
		return fail(c, EX_OSERR, "no memory");
	code = send_all(c, frame, len);
	free(frame);
	return code ? code : read_reply(c, ret);
}

/* Connects. A full backlog means that the daemon is busy. */
static int connect_to(struct call *c)
{
	do {
		c->fd = cc_connect_unix(c->path, SOCK_STREAM | SOCK_NONBLOCK);
		if (c->fd >= 0 || errno != EAGAIN)
			return c->fd;
		poll(NULL, 0, BUSY_RETRY_MS);
	} while (ms_left(c) > 0);
	errno = ETIMEDOUT;
	return CC_ERR_TIMEOUT;
}

static bool nobody_there(int error)
{
	return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR;
}

static int unreachable(const struct call *c, int error)
{
	const char *what = c->target->what;
	char tried[CTL_PATHS_MAX * CTL_PATH_SIZE] = "";

	if (error == EACCES || error == EPERM)
		return fail(c, EX_NOPERM,
			"%s: this user may not ask the %s: be root, or become a member of the "
			"group "
			"that the socket belongs to",
			c->path, what);
	if (!nobody_there(error))
		return fail(c, EX_UNAVAILABLE, "%s: cannot connect to the %s: %s", c->path, what,
			strerror(error));
	for (unsigned i = 0; i < c->target->n; i++)
		snprintf(tried + strlen(tried), sizeof tried - strlen(tried), "%s%s",
			i > 0 ? ", " : "", c->target->paths[i]);
	return fail(c, EX_UNAVAILABLE,
		"no %s listens at %s: start %s, or name its admin socket with --%s PATH", what,
		tried, strcmp(what, "agent") == 0 ? "pcclagentd" : "ccoip-masterd", what);
}

int ctl_ask(const struct ctl_target *t, const struct wa_request *q, struct wa_reply *ret,
	char why[CTL_WHY_SIZE])
{
	struct call c = {.target = t, .fd = -1, .why = why};
	int code;

	c.end_ns = cc_now_ns() + TIMEOUT_MS * UINT64_C(1000000);
	for (unsigned i = 0; i < t->n; i++) {
		c.path = t->paths[i];
		if (connect_to(&c) >= 0 || !nobody_there(errno))
			break;
	}
	if (c.fd < 0)
		return unreachable(&c, errno);
	code = exchange(&c, q, ret);
	free(c.buf);
	close(c.fd);
	return code;
}
