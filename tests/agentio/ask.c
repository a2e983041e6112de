/* SPDX-License-Identifier: MIT */
#include "tests/agentio/ask.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_frame.h"

static int connect_admin(const struct fx *f)
{
	const struct timeval bound = {.tv_sec = FX_TIMEOUT_MS / 1000};
	int fd = cc_connect_unix(f->admin, SOCK_STREAM);

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
	return fd;
}

void ask(struct fx *f, enum wa_verb verb, struct wa_reply *ret)
{
	const struct wa_request q = {
		.version_min = WA_VERSION_MIN, .version_max = WA_VERSION_MAX, .verb = verb};
	uint8_t hdr[WIRE_FRAME_HDR], *frame;
	const char *why = "";
	int len, fd = connect_admin(f);
	size_t size;

	ck_assert_int_eq(wire_admin_encode_request(&q, &frame, &size), 0);
	tcp_send(fd, frame, size);
	free(frame);
	ck_assert_uint_eq(tcp_receive(fd, hdr, sizeof hdr), sizeof hdr);
	len = wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN);
	ck_assert_int_gt(len, 0);
	frame = malloc((size_t)len);
	ck_assert_uint_eq(tcp_receive(fd, frame, (size_t)len), (size_t)len);
	ck_assert_msg(wire_admin_decode_reply(frame, (size_t)len, ret, &why) == 0, "%s", why);
	ck_assert_str_eq(ret->error, "");
	free(frame);
	close(fd);
}

const struct wa_table *ask_table(const struct wa_reply *r, const char *table)
{
	for (uint32_t i = 0; i < r->n_tables; i++)
		if (strcmp(r->tables[i].name, table) == 0)
			return &r->tables[i];
	ck_abort_msg("no table %s", table);
}

static const struct wa_cell *cell(
	const struct wa_table *t, uint32_t row, const char *col, bool is_text)
{
	ck_assert_msg(row < t->n_rows, "%s has no row %u", t->name, row);
	for (uint32_t i = 0; i < t->n_cols; i++)
		if (strcmp(t->col[i].name, col) == 0) {
			ck_assert_int_eq(t->col[i].kind == WA_KIND_TEXT, is_text);
			return &t->cells[row * t->n_cols + i];
		}
	ck_abort_msg("%s has no column %s", t->name, col);
}

uint64_t ask_number(const struct wa_table *t, uint32_t row, const char *col)
{
	return cell(t, row, col, false)->number;
}

const char *ask_text(const struct wa_table *t, uint32_t row, const char *col)
{
	const struct wa_cell *c = cell(t, row, col, true);

	return c->text ? c->text : "";
}
