/* SPDX-License-Identifier: MIT
 *
 * The event loop of both daemons: only cc_loop.c and cc_conn.c know libevent. Everything here
 * belongs to the thread that runs the loop. Callbacks may close, free or stop
 * anything, including the object that called them.
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
/* Connections that were closed with output still to be written are dropped; everything else must
 * have been freed. NULL is fine. */
void cc_loop_free(struct cc_loop *l);
/* Runs until cc_loop_stop, also one that came before. 0 or CC_ERR_IO. */
int cc_loop_run(struct cc_loop *l);
void cc_loop_stop(struct cc_loop *l);
/* Something is about to come that somebody waits for: for a moment from now on the loop looks for
 * it again and again, yielding in between, instead of falling asleep. */
void cc_loop_expect(struct cc_loop *l);

/* Calls fn whenever fd is readable, or, with edge, once per new readiness (the fd is not read
 * here). */
struct cc_watch *cc_watch_new(
	struct cc_loop *l, int fd, bool edge, void (*fn)(void *arg), void *arg);
/* Calls fn whenever fd can be written to. */
struct cc_watch *cc_watch_new_room(struct cc_loop *l, int fd, void (*fn)(void *arg), void *arg);
void cc_watch_free(struct cc_watch *w); /* does not close fd; NULL is fine */

/* Calls fn every interval_ms until freed. */
struct cc_timer *cc_timer_new(
	struct cc_loop *l, uint32_t interval_ms, void (*fn)(void *arg), void *arg);
/* So often from now on; the first time after one interval. */
void cc_timer_set(struct cc_timer *t, uint32_t interval_ms);
void cc_timer_free(struct cc_timer *t);

/* Calls fn when the signal arrives, in the loop. For the life of the loop. 0 or CC_ERR_*. */
int cc_loop_signal(struct cc_loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

/* Calls fn once after the callbacks that are due in this iteration: for batching. 0 or
 * CC_ERR_NOMEM. */
int cc_loop_defer(struct cc_loop *l, void (*fn)(void *arg), void *arg);

/* Accepts connections on a listening socket (TCP or AF_UNIX, owned from now on). fn owns fd, which
 * is non-blocking and close-on-exec. Runs out of descriptors: logs which limit it is, at most every
 * ten seconds, and pauses for a second. */
struct cc_listener *cc_listener_new(
	struct cc_loop *l, int fd, void (*fn)(void *arg, int fd), void *arg);
/* Instead, whoever cannot be taken in is told so: fn owns fd, the last descriptor that there is,
 * and closes it before it returns. error: the errno, limit: its cc_limit_text. The loop keeps one
 * descriptor for this, for all listeners; CC_ERR_IO: there is none, errno says why. */
int cc_listener_on_shortage(
	struct cc_listener *x, void (*fn)(void *arg, int fd, int error, const char *limit));
void cc_listener_free(struct cc_listener *x);

/*
 * A buffered byte stream. on_data gets everything that has arrived and not been consumed; it
 * returns how many bytes it consumed, or a negative enum cc_err to have the connection closed with
 * that reason. on_closed is called once, last, unless the owner closed it first.
 */
struct cc_conn_ops {
	void (*on_connected)(void *arg); /* only for cc_conn_connect */
	long (*on_data)(void *arg, const uint8_t *buf, size_t len);
	void (*on_closed)(void *arg, int err, const char *text);
};

/* Takes over a connected socket; tunes it (cc_tcp_tune) if it is TCP. */
struct cc_conn *cc_conn_new(struct cc_loop *l, int fd, const struct cc_conn_ops *ops, void *arg);
/* Starts connecting; on_connected or on_closed follows (never before this returns). Tuned
 * (cc_tcp_tune) once connected. segment_max: bytes of a TCP segment, 0: the kernel's choice. */
struct cc_conn *cc_conn_connect(struct cc_loop *l, const struct cc_addr *to, uint32_t timeout_ms,
	uint16_t segment_max, const struct cc_conn_ops *ops, void *arg);
/* Copies and queues. CC_ERR_LIMIT: more than max_out bytes (default 16 MiB) would be queued,
 * nothing was added; the owner had better close the connection. */
int cc_conn_send(struct cc_conn *c, const void *buf, size_t len);
/* The same for what need not go at once: it is written with what is sent next, or before the loop
 * falls asleep, or after as long as cc_loop_expect keeps it from that. */
int cc_conn_send_later(struct cc_conn *c, const void *buf, size_t len);
/* As cc_conn_send, without a copy, and at once. buf is read until done(buf, len, arg) is called,
 * once and in any case: if this fails before it returns. */
int cc_conn_send_ref(struct cc_conn *c, const void *buf, size_t len,
	void (*done)(const void *buf, size_t len, void *arg), void *arg);
void cc_conn_set_limits(struct cc_conn *c, size_t max_in, size_t max_out);
/* No data within this time after now closes the connection with CC_ERR_TIMEOUT; 0: no limit. */
void cc_conn_set_idle_timeout(struct cc_conn *c, uint32_t ms);
/* Of a TCP connection once it is connected, see cc_tcp_allow_silence. */
void cc_conn_allow_silence(struct cc_conn *c, uint32_t ms);
/* Closes when what is queued has been written and the other side has read it, or after 2 s. No
 * callback follows. */
void cc_conn_close(struct cc_conn *c);
/* No connection that was closed has anything left to say. */
bool cc_loop_is_flushed(const struct cc_loop *l);
/* Nothing more is read from the socket: what comes next is for whoever gets the descriptor. */
void cc_conn_stop_reading(struct cc_conn *c);
/* Stops calls of on_data until cc_conn_go_on: bytes wait in the kernel, and then at the other side.
 */
void cc_conn_pause(struct cc_conn *c);
void cc_conn_go_on(struct cc_conn *c);
/* Gives the descriptor back (what was queued must have been written) and frees the rest. Input that
 * was read and not consumed is lost, see cc_conn_stop_reading. */
int cc_conn_detach(struct cc_conn *c);
bool cc_conn_flushed(const struct cc_conn *c);
/* Bytes that it keeps: input that is not consumed, output that is not sent. */
size_t cc_conn_buffered(const struct cc_conn *c);
/* Peer and local address of a TCP connection; 0 or CC_ERR_*. */
/* See cc_tcp_path_ms, cc_tcp_round_trip_us. */
uint32_t cc_conn_round_trip_us(const struct cc_conn *c);
uint32_t cc_conn_path_ms(const struct cc_conn *c);
int cc_conn_peer_addr(const struct cc_conn *c, struct cc_addr *ret);
int cc_conn_local_addr(const struct cc_conn *c, struct cc_addr *ret);

#endif
