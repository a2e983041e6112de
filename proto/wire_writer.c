/* SPDX-License-Identifier: MIT */
#include "proto/wire_writer.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_bytes.h"
#include "proto/wire_text.h"

void wire_writer_init(struct wire_writer *w, uint8_t *buf, size_t size, size_t max)
{
	*w = (struct wire_writer){.start = buf, .at = buf + size, .end = buf + size, .max = max};
}

void wire_writer_free(struct wire_writer *w)
{
	free(w->owned);
}

static int fail(struct wire_writer *w, int err)
{
	w->err = err;
	/* Each later byte needs room, too, and so fails. */
	w->start = w->at = w->end;
	return err;
}

int wire_writer_grow(struct wire_writer *w, size_t n)
{
	size_t used = wire_written(w), size = 2 * (size_t)(w->end - w->start);
	uint8_t *buf;

	if (w->err != 0)
		return w->err;
	if (used > w->max || n > w->max - used)
		return fail(w, CC_ERR_LIMIT);
	if (size < used + n)
		size = used + n;
	buf = malloc(size);
	if (buf == NULL)
		return fail(w, CC_ERR_NOMEM);
	memcpy(buf + size - used, w->at, used);
	free(w->owned);
	w->owned = w->start = buf;
	w->end = buf + size;
	w->at = w->end - used;
	return 0;
}

void wire_write_bytes(struct wire_writer *w, const void *p, size_t n)
{
	uint8_t *to = wire_room(w, n);

	if (to != NULL && n > 0)
		memcpy(to, p, n);
}

void wire_write_text(struct wire_writer *w, const char *s, size_t n)
{
	char *to = (char *)wire_room(w, n);

	if (to != NULL)
		wire_text_copy(to, s, n);
}

void wire_write_fixed64(struct wire_writer *w, uint64_t v)
{
	uint8_t *to = wire_room(w, sizeof v);

	if (to != NULL)
		wire_put64(to, v);
}
