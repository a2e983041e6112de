/* SPDX-License-Identifier: MIT
 *
 * Events to the core: each event is passed to the core, and then its actions are carried out. An
 * event that arrives while an action is carried out waits until all actions are done. So a function
 * cannot lose its own object through an event that it has posted. Loop thread.
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
	/* Returns a number for an event. The event is dropped if its number changes while it waits.
	 */
	uint32_t (*stamp)(void *arg, const struct agt_event *ev);
	/* Called after each event and all events that followed from it. */
	void (*after)(void *arg);
};

/* arg: the argument of the functions. Ends the process if there is no memory. */
struct events *ev_new(const struct ev_ops *ops, void *arg);
void ev_free(struct events *e);

/* Passes the event to the core. If the event has to wait, its text and results (also those of a
 * measurement) are copied; an event that may wait must not have a request, sub or msg. */
void ev_post(struct base *b, const struct agt_event *ev);
/* From ev_hold to ev_release or ev_release_with all events wait. */
void ev_hold(struct base *b);
void ev_release(struct base *b);
/* Like ev_release, but `ev` comes before the events that have waited. */
void ev_release_with(struct base *b, const struct agt_event *ev);

#endif
