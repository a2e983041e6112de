/* SPDX-License-Identifier: MIT
 *
 * The event loop of both daemons. Only cc_loop.c and cc_conn.c use libevent. Only the thread that
 * runs the loop may call these functions. Callbacks may close, free or stop anything, including the
 * object that called them.
 */
#ifndef CC_LOOP_H
#define CC_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"

struct cc_loop;
struct cc_watch;
struct cc_timer;
struct cc_conn;
struct cc_listener;

struct cc_loop *cc_loop_new(void);
/* Frees the loop, which may be NULL. Drops closed connections that still have output to write.
 * Everything else must have been freed before. */
void cc_loop_free(struct cc_loop *l);
/* Runs until cc_loop_stop is called, or returns at once if it was called before. Returns 0 or
 * CC_ERR_IO. */
int cc_loop_run(struct cc_loop *l);
void cc_loop_stop(struct cc_loop *l);
/* Keeps the loop awake for a short time, because an event that somebody waits for will come soon.
 * During this time the loop polls and yields instead of sleeping. */
void cc_loop_expect(struct cc_loop *l);

/* Calls fn as long as fd is readable. With `edge`, calls fn only once each time fd becomes
 * readable. The loop itself does not read from fd. */
struct cc_watch *cc_watch_new(
	struct cc_loop *l, int fd, bool edge, void (*fn)(void *arg), void *arg);
/* Calls fn whenever fd is writable. */
struct cc_watch *cc_watch_new_room(struct cc_loop *l, int fd, void (*fn)(void *arg), void *arg);
void cc_watch_free(struct cc_watch *w); /* does not close fd; w may be NULL */

/* Calls fn every interval_ms until the timer is freed. */
struct cc_timer *cc_timer_new(
	struct cc_loop *l, uint32_t interval_ms, void (*fn)(void *arg), void *arg);
/* Changes the interval. The next call comes one new interval from now. */
void cc_timer_set(struct cc_timer *t, uint32_t interval_ms);
void cc_timer_free(struct cc_timer *t);

/* Calls fn in the loop whenever the signal arrives, for the life of the loop. Returns 0 or
 * CC_ERR_*. */
int cc_loop_signal(struct cc_loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

/* Calls fn once, after the callbacks that are due in this iteration, so that work can be collected.
 * Returns 0 or CC_ERR_NOMEM. */
int cc_loop_defer(struct cc_loop *l, void (*fn)(void *arg), void *arg);

/* Accepts connections on a listening socket (TCP or AF_UNIX), which the listener owns from now on.
 * fn gets and owns each accepted descriptor, which is non-blocking and close-on-exec. If there is
 * no descriptor left, the listener logs the limit, at most every ten seconds, and pauses for a
 * second. */
struct cc_listener *cc_listener_new(
	struct cc_loop *l, int fd, void (*fn)(void *arg, int fd), void *arg);
/* Refuses connections during a shortage of descriptors instead of pausing. fn sends the refusal. It
 * owns fd, which is the last free descriptor, and must close it before it returns. `error` is the
 * errno, and `limit` its cc_limit_text. The loop reserves one descriptor for refusals, and all
 * listeners share it. Returns 0, or CC_ERR_IO with errno if no descriptor can be reserved. */
int cc_listener_on_shortage(
	struct cc_listener *x, void (*fn)(void *arg, int fd, int error, const char *limit));
void cc_listener_free(struct cc_listener *x);

/*
 * A buffered byte stream. on_data gets all bytes that have arrived and are not consumed. It returns
 * the number of bytes that it consumed, or a negative enum cc_err, with which the connection is
 * closed. on_closed is called once, as the last callback, unless the owner has closed the
 * connection before.
 */
struct cc_conn_ops {
	void (*on_connected)(void *arg); /* only for cc_conn_connect */
	long (*on_data)(void *arg, const uint8_t *buf, size_t len);
	void (*on_closed)(void *arg, int err, const char *text);
};

/* Takes over a connected socket, and tunes a TCP socket (cc_tcp_tune). */
struct cc_conn *cc_conn_new(struct cc_loop *l, int fd, const struct cc_conn_ops *ops, void *arg);
/* Starts to connect. on_connected or on_closed follows after this function has returned. The socket
 * is tuned (cc_tcp_tune) when it is connected. segment_max is the largest TCP segment in bytes;
 * with 0 the kernel chooses. */
struct cc_conn *cc_conn_connect(struct cc_loop *l, const struct cc_addr *to, uint32_t timeout_ms,
	uint16_t segment_max, const struct cc_conn_ops *ops, void *arg);
/* Copies and queues the bytes. Returns CC_ERR_LIMIT and adds nothing if more than max_out bytes
 * (default 16 MiB) would be queued; the owner should then close the connection. */
int cc_conn_send(struct cc_conn *c, const void *buf, size_t len);
/* Does the same as cc_conn_send for bytes that are not urgent. They are written together with the
 * next urgent bytes, or before the loop sleeps, but at the latest after the time for which
 * cc_loop_expect keeps the loop awake. */
int cc_conn_send_later(struct cc_conn *c, const void *buf, size_t len);
/* Does the same as cc_conn_send, but writes at once and does not copy. buf must stay valid until
 * done(buf, len, arg) is called. done is called exactly once, and before this function returns if
 * the function fails. */
int cc_conn_send_ref(struct cc_conn *c, const void *buf, size_t len,
	void (*done)(const void *buf, size_t len, void *arg), void *arg);
void cc_conn_set_limits(struct cc_conn *c, size_t max_in, size_t max_out);
/* Closes the connection with CC_ERR_TIMEOUT when no data arrives for this time. 0 means no limit.
 */
void cc_conn_set_idle_timeout(struct cc_conn *c, uint32_t ms);
/* Calls cc_tcp_allow_silence for a connected TCP connection. */
void cc_conn_allow_silence(struct cc_conn *c, uint32_t ms);
/* Closes the connection when the queued bytes have been written and the other side has read them,
 * or after 2 s. No callback follows. */
void cc_conn_close(struct cc_conn *c);
/* Have all closed connections written their output? */
bool cc_loop_is_flushed(const struct cc_loop *l);
/* Stops reading from the socket. Later bytes stay there for the next owner of the descriptor. */
void cc_conn_stop_reading(struct cc_conn *c);
/* Stops calls of on_data until cc_conn_go_on. Meanwhile bytes wait in the kernel and, when the
 * kernel takes no more, at the other side.
 */
void cc_conn_pause(struct cc_conn *c);
void cc_conn_go_on(struct cc_conn *c);
/* Frees the connection and returns its descriptor. All queued bytes must have been written. Input
 * that was read but not consumed is lost; see cc_conn_stop_reading. */
int cc_conn_detach(struct cc_conn *c);
bool cc_conn_flushed(const struct cc_conn *c);
/* Returns the number of input bytes not consumed yet plus the number of output bytes not sent
 * yet. */
size_t cc_conn_buffered(const struct cc_conn *c);
/* Return cc_tcp_round_trip_us and cc_tcp_path_ms of the socket, or 0 if it is closed. */
uint32_t cc_conn_round_trip_us(const struct cc_conn *c);
uint32_t cc_conn_path_ms(const struct cc_conn *c);
/* Write the address of the other side, and the local address. Return 0 or CC_ERR_*. */
int cc_conn_peer_addr(const struct cc_conn *c, struct cc_addr *ret);
int cc_conn_local_addr(const struct cc_conn *c, struct cc_addr *ret);

#endif
