/* SPDX-License-Identifier: MIT */
#include "daemon/cc_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "proto/wire_frame.h"
#include "proto/wire_names.h"

#define MAX_CLIENTS     512u
#define MAX_REQUEST     4096u /* bytes of payload */
#define IDLE_TIMEOUT_MS 30000u

struct client {
	struct cc_admin *a;
	struct cc_conn *conn;
	uint32_t uid;
	struct client *prev, *next;
};

struct cc_admin {
	struct cc_loop *loop;
	struct cc_listener *listener;
	const char *daemon;
	void (*fn)(void *arg, const struct wa_request *q, struct wa_reply *reply);
	void *arg;
	uint32_t caller;
	struct client *clients;
	unsigned n_clients;
};

static void forget(struct client *c)
{
	DL_DELETE(c->a->clients, c);
	c->a->n_clients--;
	free(c);
}

static void start_reply(const struct cc_admin *a, struct wa_reply *r)
{
	*r = (struct wa_reply){.version_min = WA_VERSION_MIN, .version_max = WA_VERSION_MAX};
	snprintf(r->daemon, sizeof r->daemon, "%s", a->daemon);
	snprintf(r->software, sizeof r->software, "%s", PACKAGE_VERSION);
}

static int send_reply(struct client *c, const struct wa_reply *r)
{
	uint8_t *frame;
	size_t len;
	int err = wire_admin_encode_reply(r, &frame, &len);

	if (err < 0)
		return err;
	err = cc_conn_send(c->conn, frame, len);
	free(frame);
	return err;
}

/* Sends the reason why there is no answer. Returns the reason to close the connection, or 0. */
static int send_error(struct client *c, bool refused, const char *text)
{
	struct wa_reply r;

	start_reply(c->a, &r);
	r.version = refused ? 0 : WA_VERSION_MAX;
	snprintf(r.error, sizeof r.error, "%s", text);
	return send_reply(c, &r);
}

static int answer(struct client *c, const struct wa_request *q)
{
	struct wa_reply r;
	char text[WA_TEXT_MAX];
	int err;

	if (q->version_min > WA_VERSION_MAX || q->version_max < WA_VERSION_MIN) {
		snprintf(text, sizeof text,
			"the admin protocol's versions do not overlap: the client speaks %u to %u, "
			"%s %s speaks %u to %u",
			q->version_min, q->version_max, c->a->daemon, PACKAGE_VERSION,
			WA_VERSION_MIN, WA_VERSION_MAX);
		return send_error(c, true, text);
	}
	start_reply(c->a, &r);
	r.version = q->version_max < WA_VERSION_MAX ? q->version_max : WA_VERSION_MAX;
	c->a->caller = c->uid;
	c->a->fn(c->a->arg, q, &r);
	err = send_reply(c, &r);
	wa_reply_clear(&r);
	if (err == CC_ERR_LIMIT)
		err = send_error(c, false, "the answer exceeds the longest message");
	return err;
}

/* Sends the reason to a client that does not speak the protocol, and closes the connection. */
static long reject(struct client *c, const char *why)
{
	cc_log(CC_LOG_INFO, "admin socket: %s", why);
	(void)send_error(c, true, why);
	cc_conn_close(c->conn);
	forget(c);
	return 0;
}

static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	struct client *c = arg;
	size_t at = 0;

	for (;;) {
		int payload = wire_frame_peek(buf + at, len - at, WIRE_KIND_ADMIN);
		const char *why = "";
		struct wa_request q;
		int err;

		if (payload == CC_ERR_AGAIN)
			return (long)at;
		if (payload == CC_ERR_VERSION)
			return reject(c, "unknown version of the framing");
		if (payload < 0 || payload > (int)MAX_REQUEST)
			return reject(c, "malformed frame");
		if (len - at < WIRE_FRAME_HDR + (size_t)payload)
			return (long)at;
		at += WIRE_FRAME_HDR;
		err = wire_admin_decode_request(buf + at, (size_t)payload, &q, &why);
		if (err < 0)
			return reject(c, why);
		at += (size_t)payload;
		err = answer(c, &q);
		if (err < 0)
			return reject(c, cc_err_str(err));
	}
}

static void on_closed(void *arg, int err, const char *text)
{
	(void)err;
	(void)text;
	forget(arg);
}

static const struct cc_conn_ops ops = {.on_data = on_data, .on_closed = on_closed};

static void on_accept(void *arg, int fd)
{
	struct cc_admin *a = arg;
	struct client *c = NULL;
	struct ucred cred;
	socklen_t len = sizeof cred;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		c = a->n_clients < MAX_CLIENTS ? calloc(1, sizeof *c) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	c->a = a;
	c->uid = cred.uid;
	c->conn = cc_conn_new(a->loop, fd, &ops, c);
	if (!c->conn) {
		free(c);
		return;
	}
	cc_conn_set_limits(c->conn, WIRE_FRAME_HDR + MAX_REQUEST, 4 * (size_t)WIRE_FRAME_MAX);
	cc_conn_set_idle_timeout(c->conn, IDLE_TIMEOUT_MS);
	DL_APPEND(a->clients, c);
	a->n_clients++;
}

static void on_shortage(void *arg, int fd, int error, const char *limit)
{
	struct wa_reply r;
	uint8_t *frame;
	size_t len;

	(void)error;
	start_reply(arg, &r);
	r.version = WA_VERSION_MAX;
	snprintf(r.error, sizeof r.error, "%s", limit);
	if (wire_admin_encode_reply(&r, &frame, &len) < 0) {
		close(fd);
		return;
	}
	cc_reject(fd, frame, len);
	free(frame);
}

struct cc_admin *cc_admin_new(struct cc_loop *l, int fd, const char *daemon,
	void (*fn)(void *arg, const struct wa_request *q, struct wa_reply *reply), void *arg)
{
	struct cc_admin *a = calloc(1, sizeof *a);

	if (!a) {
		close(fd);
		return NULL;
	}
	*a = (struct cc_admin){.loop = l, .daemon = daemon, .fn = fn, .arg = arg};
	a->listener = cc_listener_new(l, fd, on_accept, a);
	if (!a->listener || cc_listener_on_shortage(a->listener, on_shortage) < 0) {
		cc_listener_free(a->listener);
		free(a);
		return NULL;
	}
	return a;
}

uint32_t cc_admin_caller(const struct cc_admin *a)
{
	return a->caller;
}

void cc_admin_free(struct cc_admin *a)
{
	struct client *c, *tmp;

	if (!a)
		return;
	cc_listener_free(a->listener);
	DL_FOREACH_SAFE (a->clients, c, tmp) {
		cc_conn_close(c->conn);
		forget(c);
	}
	free(a);
}

/* ---- columns of both daemons ---- */

static void put_digest(struct wa_table *t, uint32_t col, const struct wm_digest *d)
{
	wa_set_text(t, col, "%016" PRIx64 "%016" PRIx64, d->hi, d->lo);
}

uint32_t cc_admin_put_candidate(struct wa_table *t, uint32_t col, const struct wm_sync_vote *v)
{
	wa_set_number(t, col++, v->n_tensors);
	wa_set_number(t, col++, v->bytes);
	wa_set_text(t, col++, "%s", wire_hash_name(v->hash_type));
	put_digest(t, col++, &v->keys);
	put_digest(t, col++, &v->content);
	return col;
}
