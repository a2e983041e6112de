/* SPDX-License-Identifier: MIT
 *
 * The way into the core: an event is handed to it, and what it answers is carried out. An event
 * that comes up meanwhile waits until that is done, so that nothing is closed by a function that
 * its owner has called. Loop thread.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdint.h>

struct agt;
struct agt_action;
struct agt_event;
struct base;
struct events;

struct ev_ops {
	void (*carry_out)(void *arg, struct agt_action *a);
	/* An event that had to wait is dropped when this has changed for it meanwhile. */
	uint32_t (*stamp)(void *arg, const struct agt_event *ev);
	/* After each event, with all that followed from it. */
	void (*after)(void *arg);
};

/* arg is that of the functions. Ends the process if there is no memory. */
struct events *ev_new(const struct ev_ops *ops, void *arg);
void ev_free(struct events *e);

/* Its text and results are copied if it has to wait; it may then have no request, sub or msg. */
void ev_post(struct base *b, const struct agt_event *ev);
/* Between ev_hold and one of the others all events wait. */
void ev_hold(struct base *b);
void ev_release(struct base *b);
/* ev comes before those that have waited. */
void ev_release_with(struct base *b, const struct agt_event *ev);

#endif
