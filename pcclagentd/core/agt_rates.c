/* SPDX-License-Identifier: MIT */
#include "pcclagentd/core/agt_rates.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_must.h"

#define NS_PER_S UINT64_C(1000000000)

static void drop(struct agt_rates *t, size_t i)
{
	t->n--;
	memmove(t->v + i, t->v + i + 1, (t->n - i) * sizeof *t->v);
}

void agt_rates_put(struct agt_rates *t, const struct agt_rate *x)
{
	size_t i = 0;

	while (i < t->n && !cc_id_eq(&t->v[i].v.agent, &x->v.agent))
		i++;
	if (i < t->n)
		drop(t, i);
	else if (t->n == WM_RATES_MAX)
		drop(t, 0);
	if (t->n == t->cap)
		t->v = cc_must_grow(t->v, &t->cap, 16, sizeof *t->v);
	t->v[t->n++] = *x;
}

static uint32_t age_s(uint64_t when_ns, uint64_t now_ns)
{
	uint64_t s = now_ns > when_ns ? (now_ns - when_ns) / NS_PER_S : 0;

	return s < UINT32_MAX ? (uint32_t)s : UINT32_MAX;
}

void agt_rates_set_caps(struct agt_rates *t, const struct wm_rates *m, uint64_t now_ns)
{
	t->out = m->out;
	t->in = m->in;
	t->caps_ns = now_ns;
}

void agt_rates_fill(const struct agt_rates *t, uint64_t now_ns, struct wm_rates *ret)
{
	ret->out = t->out;
	ret->in = t->in;
	ret->caps_age_s = t->caps_ns ? age_s(t->caps_ns, now_ns) : 0;
	ret->n = (uint32_t)t->n;
	ret->rates = cc_must_zalloc(t->n, sizeof *ret->rates);
	for (size_t i = 0; i < t->n; i++) {
		ret->rates[i] = t->v[i].v;
		ret->rates[i].age_s = age_s(t->v[i].when_ns, now_ns);
	}
}

void agt_rates_free(struct agt_rates *t)
{
	free(t->v);
	*t = (struct agt_rates){.v = NULL};
}
