/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/events.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_sys.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/base/report.h"

/* An event that waits. */
struct waiting {
	struct agt_event ev;
	uint32_t stamp;
	char text[WM_TEXT_MAX];
	struct agt_sync_result *results; /* owned; the texts follow the array in the same memory */
	struct wm_measured_result *measured; /* owned */
	struct waiting *next;
};

struct events {
	const struct ev_ops *ops;
	void *arg;
	struct agt_actions acts;
	struct waiting *waiting;
	bool held;
};

struct events *ev_new(const struct ev_ops *ops, void *arg)
{
	struct events *e = calloc(1, sizeof *e);

	if (!e)
		rep_out_of_memory("the agent");
	e->ops = ops;
	e->arg = arg;
	return e;
}

static void step(struct base *b, const struct agt_event *ev)
{
	struct events *e = b->events;

	agt_step(b->core, ev, cc_now_ns(), &e->acts);
	for (size_t i = 0; i < e->acts.n; i++)
		e->ops->carry_out(e->arg, &e->acts.v[i]);
	agt_actions_clear(&e->acts);
}

/* Copies the results and their texts. */
static struct agt_sync_result *copy_results(const struct agt_event *ev)
{
	size_t texts = (size_t)ev->n_results * WM_TEXT_MAX;
	struct agt_sync_result *v = malloc(ev->n_results * sizeof *v + texts);
	char *text;

	if (!v)
		rep_out_of_memory("events");
	text = (char *)(v + ev->n_results);
	for (uint32_t i = 0; i < ev->n_results; i++, text += WM_TEXT_MAX) {
		v[i] = ev->results[i];
		if (!v[i].text)
			continue;
		rep_copy_text(text, WM_TEXT_MAX, v[i].text);
		v[i].text = text;
	}
	return v;
}

static struct wm_measured_result *copy_measured(const struct agt_event *ev)
{
	size_t size = ev->n_measured * sizeof *ev->measured;
	struct wm_measured_result *v = malloc(size);

	if (!v)
		rep_out_of_memory("events");
	memcpy(v, ev->measured, size);
	return v;
}

static void waiting_free(struct waiting *w)
{
	free(w->results);
	free(w->measured);
	free(w);
}

static void put_off(struct events *e, const struct agt_event *ev)
{
	struct waiting *w = malloc(sizeof *w);

	if (!w)
		rep_out_of_memory("events");
	w->results = NULL;
	w->measured = NULL;
	w->ev = *ev;
	w->stamp = e->ops->stamp(e->arg, ev);
	if (ev->text) {
		rep_copy_text(w->text, sizeof w->text, ev->text);
		w->ev.text = w->text;
	}
	if (ev->n_results > 0)
		w->ev.results = w->results = copy_results(ev);
	if (ev->n_measured > 0)
		w->ev.measured = w->measured = copy_measured(ev);
	LL_APPEND(e->waiting, w);
}

static void step_waiting(struct base *b)
{
	struct events *e = b->events;

	while (e->waiting) {
		struct waiting *w = e->waiting;

		LL_DELETE(e->waiting, w);
		if (w->stamp == e->ops->stamp(e->arg, &w->ev))
			step(b, &w->ev);
		waiting_free(w);
	}
}

void ev_post(struct base *b, const struct agt_event *ev)
{
	struct events *e = b->events;

	if (e->held) {
		put_off(e, ev);
		return;
	}
	e->held = true;
	step(b, ev);
	step_waiting(b);
	e->held = false;
	e->ops->after(e->arg);
}

void ev_hold(struct base *b)
{
	b->events->held = true;
}

void ev_release(struct base *b)
{
	step_waiting(b);
	b->events->held = false;
}

void ev_release_with(struct base *b, const struct agt_event *ev)
{
	b->events->held = false;
	ev_post(b, ev);
}

void ev_free(struct events *e)
{
	while (e->waiting) {
		struct waiting *w = e->waiting;

		LL_DELETE(e->waiting, w);
		waiting_free(w);
	}
	agt_actions_free(&e->acts);
	free(e);
}
