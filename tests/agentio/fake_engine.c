/* SPDX-License-Identifier: MIT */
#include "tests/agentio/fake_engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cc_err.h"

#define MAX 1024

struct stream {
	uint32_t link;
	int fd;
	bool tx;
};

struct eng {
	int event_fd;
	struct eng_event events[MAX];
	uint32_t head, tail;
	struct stream streams[MAX];
	uint32_t n_streams;
	uint64_t xfers[MAX];
	uint32_t n_xfers;
	int bells[MAX];
	uint32_t n_bells;
	struct eng *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct eng *engines;
static bool auto_done = true, have_spec, exhausted;
static struct eng_xfer_spec last_spec;
static struct eng_member last_members[ENG_MEMBERS_MAX]; /* the members of last_spec */
static uint32_t links_dropped, last_link;
static struct cc_bounds bounds;

static void push(struct eng *e, const struct eng_event *ev)
{
	if (e->tail - e->head == MAX)
		abort();
	e->events[e->tail++ % MAX] = *ev;
	eventfd_write(e->event_fd, 1);
}

struct eng *eng_new(int event_fd)
{
	struct eng *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->event_fd = event_fd;
	pthread_mutex_lock(&lock);
	e->next = engines;
	engines = e;
	pthread_mutex_unlock(&lock);
	return e;
}

void eng_free(struct eng *e)
{
	struct eng **p = &engines;

	pthread_mutex_lock(&lock);
	if (e->n_xfers > 0)
		abort();
	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	for (uint32_t i = 0; i < e->n_streams; i++)
		close(e->streams[i].fd);
	pthread_mutex_unlock(&lock);
	free(e);
}

int eng_bell_add(struct eng *e, int fd)
{
	pthread_mutex_lock(&lock);
	e->bells[e->n_bells++] = fd;
	pthread_mutex_unlock(&lock);
	return 0;
}

void eng_bell_remove(struct eng *e, int fd)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < e->n_bells; i++)
		if (e->bells[i] == fd) {
			e->bells[i] = e->bells[--e->n_bells];
			break;
		}
	pthread_mutex_unlock(&lock);
}

static int add(struct eng *e, uint32_t link, int fd, bool tx)
{
	pthread_mutex_lock(&lock);
	last_link = link;
	e->streams[e->n_streams++] = (struct stream){link, fd, tx};
	pthread_mutex_unlock(&lock);
	return 0;
}

int eng_add_tx_stream(struct eng *e, uint32_t link, int fd, uint32_t set)
{
	(void)set;
	return add(e, link, fd, true);
}

int eng_add_rx_stream(struct eng *e, uint32_t link, const struct cc_id *from, int fd)
{
	(void)from;
	return add(e, link, fd, false);
}

/* Closes the streams of a link. The caller holds the lock. */
static bool close_link(struct eng *e, uint32_t link)
{
	uint32_t kept = 0, before = e->n_streams;

	for (uint32_t i = 0; i < before; i++) {
		if (e->streams[i].link == link)
			close(e->streams[i].fd);
		else
			e->streams[kept++] = e->streams[i];
	}
	e->n_streams = kept;
	return kept < before;
}

void eng_drop_link(struct eng *e, uint32_t link)
{
	pthread_mutex_lock(&lock);
	close_link(e, link);
	links_dropped++;
	pthread_mutex_unlock(&lock);
}

int eng_start(struct eng *e, const struct eng_xfer_spec *spec)
{
	struct eng_event ev = {.type = ENG_XFER_DONE, .seq = spec->seq};

	pthread_mutex_lock(&lock);
	if (exhausted) {
		pthread_mutex_unlock(&lock);
		errno = ENOMEM;
		return CC_ERR_NOMEM;
	}
	e->xfers[e->n_xfers++] = spec->seq;
	last_spec = *spec;
	memcpy(last_members, spec->members, spec->n_members * sizeof *last_members);
	last_spec.members = last_members;
	have_spec = true;
	if (auto_done)
		push(e, &ev);
	pthread_mutex_unlock(&lock);
	return 0;
}

void eng_skip(struct eng *e, uint64_t seq)
{
	(void)e;
	(void)seq;
}

struct cc_bounds fake_bounds(void)
{
	struct cc_bounds b;

	pthread_mutex_lock(&lock);
	b = bounds;
	pthread_mutex_unlock(&lock);
	return b;
}

void eng_set_bounds(struct eng *e, const struct cc_bounds *b)
{
	(void)e;
	pthread_mutex_lock(&lock);
	bounds = *b;
	pthread_mutex_unlock(&lock);
}

void eng_look(struct eng *e, bool starts)
{
	(void)e;
	(void)starts;
}

void eng_cancel(struct eng *e, uint64_t seq)
{
	struct eng_event ev = {.type = ENG_XFER_CANCELLED, .seq = seq};

	pthread_mutex_lock(&lock);
	push(e, &ev);
	pthread_mutex_unlock(&lock);
}

void eng_release(struct eng *e, uint64_t seq)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < e->n_xfers; i++)
		if (e->xfers[i] == seq) {
			e->xfers[i] = e->xfers[--e->n_xfers];
			break;
		}
	pthread_mutex_unlock(&lock);
}

bool eng_next_event(struct eng *e, struct eng_event *ret)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = e->head != e->tail;
	if (any)
		*ret = e->events[e->head++ % MAX];
	pthread_mutex_unlock(&lock);
	return any;
}

void eng_probe(struct eng *e, uint32_t link)
{
	struct eng_event ev = {.type = ENG_LINK_HEARD, .link = link};

	pthread_mutex_lock(&lock);
	push(e, &ev);
	pthread_mutex_unlock(&lock);
}

bool eng_get_progress(struct eng *e, uint64_t seq, struct eng_progress *ret)
{
	(void)e;
	(void)seq;
	(void)ret;
	return false;
}

struct fake_counts fake_counts(void)
{
	struct fake_counts c = {.links_dropped = 0};

	pthread_mutex_lock(&lock);
	for (const struct eng *e = engines; e; e = e->next) {
		c.engines++;
		c.bells += e->n_bells;
		c.xfers += e->n_xfers;
		for (uint32_t i = 0; i < e->n_streams; i++) {
			c.tx_streams += e->streams[i].tx;
			c.rx_streams += !e->streams[i].tx;
		}
	}
	c.links_dropped = links_dropped;
	pthread_mutex_unlock(&lock);
	return c;
}

void fake_set_exhausted(bool on)
{
	pthread_mutex_lock(&lock);
	exhausted = on;
	pthread_mutex_unlock(&lock);
}

void fake_set_auto_done(bool on)
{
	pthread_mutex_lock(&lock);
	auto_done = on;
	pthread_mutex_unlock(&lock);
}

bool fake_last_spec(struct eng_xfer_spec *ret)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = have_spec;
	if (any)
		*ret = last_spec;
	pthread_mutex_unlock(&lock);
	return any;
}

void fake_break_link(uint32_t link)
{
	struct eng_event ev = {.type = ENG_LINK_BROKEN, .link = link};

	snprintf(ev.text, sizeof ev.text, "broken by the test");
	pthread_mutex_lock(&lock);
	for (struct eng *e = engines; e; e = e->next)
		if (close_link(e, link))
			push(e, &ev);
	pthread_mutex_unlock(&lock);
}

void fake_carry(uint32_t link, uint64_t rate)
{
	struct eng_event ev = {.type = ENG_LINK_RATE, .link = link, .rate = rate, .trip_us = 7};

	pthread_mutex_lock(&lock);
	for (struct eng *e = engines; e; e = e->next)
		push(e, &ev);
	pthread_mutex_unlock(&lock);
}

uint32_t fake_last_link(void)
{
	uint32_t l;

	pthread_mutex_lock(&lock);
	l = last_link;
	pthread_mutex_unlock(&lock);
	return l;
}
