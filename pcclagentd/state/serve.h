/* SPDX-License-Identifier: MIT
 *
 * Streams from other agents: serve.c.
 */
#ifndef STATE_SERVE_H
#define STATE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/ste_internal.h"
#include "proto/wire_state.h"

struct ste_job;
struct ste_peer;

#define STE_PIECES 4u
struct ste_piece {
	struct ste_peer *peer;
	int slot;
	uint32_t len;
	bool ready;
};

struct ste_conn {
	struct ste_fd f;
	uint32_t number;
	bool names;   /* answers say whose memory they are of */
	uint64_t seq; /* whose requests are answered */
	uint8_t in[64 * WST_HDR_SIZE];
	uint32_t in_from, in_to;
	bool answering;
	uint8_t hdr[WST_HDR_SIZE];
	uint32_t hdr_done;
	struct ste_job *j; /* whose bytes are being sent; NULL: none */
	struct ste_peer *peer;
	const uint8_t *data; /* NULL: by pieces */
	uint32_t left;       /* payload bytes to be sent */
	bool count;          /* they are a tensor's */
	uint32_t tensor;
	uint64_t read_off;  /* in the tensor: next to be read into a slot */
	uint32_t read_left; /* bytes */
	struct ste_piece pieces[STE_PIECES];
	uint32_t piece_head, n_pieces, piece_sent;
	uint64_t moved_ns;
	struct ste_conn *next;
};

struct ste_conn *ste_conn_new(const struct ste *e, int fd, uint64_t features, uint64_t seq);
void ste_conn_add(struct ste *e, struct ste_conn *c);
void ste_conn_ready(struct ste *e, struct ste_conn *c, uint32_t events);
void ste_conn_step(struct ste *e, struct ste_conn *c); /* goes on if it can */
void ste_conn_acked(struct ste *e, struct ste_conn *c, struct ste_peer *p, int slot);
void ste_conn_close(struct ste *e, struct ste_conn *c);
/* Nothing of the job (and of the member, unless NULL) is sent any more. */
void ste_conns_forget(struct ste *e, struct ste_job *j, const struct ste_peer *p);
void ste_conns_tick(struct ste *e);

#endif
