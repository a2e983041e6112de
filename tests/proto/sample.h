/* SPDX-License-Identifier: MIT
 *
 * Generates random valid messages of every kind, and compares two messages field by field. The
 * codec tests, the fuzz targets and the generator of their corpora use these functions.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/shm_state.h"
#include "proto/shm_submit.h"
#include "proto/wire_admin.h"
#include "proto/wire_link.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"
#include "proto/wire_state.h"
#include "tests/common/testlib.h"

extern const enum wm_type sample_master_types[];
extern const size_t sample_master_n_types;

struct cc_id sample_id(struct tl_rng *r);   /* never zero */
struct cc_key sample_key(struct tl_rng *r); /* never zero */
/* Writes clean UTF-8 of at most `size` bytes with its NUL. The text is sometimes empty and
 * sometimes as long as possible. */
void sample_text(struct tl_rng *r, char *ret, size_t size);
/* Returns an address with a port >= port_min. */
struct cc_addr sample_addr(struct tl_rng *r, uint16_t port_min);

/* Fills *ret, which wire_master_clear frees. */
void sample_master(struct tl_rng *r, enum wm_type type, struct wm_msg *ret);
bool same_master(const struct wm_msg *a, const struct wm_msg *b);
bool same_sync_vote(const struct wm_sync_vote *a, const struct wm_sync_vote *b);

void sample_request(struct tl_rng *r, enum wl_type type, struct wl_request *ret);
bool same_request(const struct wl_request *a, const struct wl_request *b);
void sample_reply(struct tl_rng *r, struct wl_reply *ret);
bool same_reply(const struct wl_reply *a, const struct wl_reply *b);

void sample_admin_request(struct tl_rng *r, enum wa_verb verb, struct wa_request *ret);
bool same_admin_request(const struct wa_request *a, const struct wa_request *b);
/* Fills *ret, which wa_reply_clear frees. */
void sample_admin_reply(struct tl_rng *r, struct wa_reply *ret);
bool same_admin_reply(const struct wa_reply *a, const struct wa_reply *b);

struct wlk_hello sample_link_hello(struct tl_rng *r);
bool same_link_hello(const struct wlk_hello *a, const struct wlk_hello *b);
struct wlk_ack sample_link_ack(struct tl_rng *r);
bool same_link_ack(const struct wlk_ack *a, const struct wlk_ack *b);
struct wlk_data sample_link_data(struct tl_rng *r);
bool same_link_data(const struct wlk_data *a, const struct wlk_data *b);

/* Returns the element size of a pcclDataType_t, or 1 for another number. */
uint64_t sample_dtype_size(uint32_t dtype);
/* Return submission entries of an all-reduce and of a synchronization of shared state. */
struct shm_sqe sample_entry(struct tl_rng *r, struct shm_submit_limits *ret_lim);
struct shm_sqe sample_sync_entry(struct tl_rng *r, struct shm_submit_limits *ret_lim);
bool same_submission(const struct shm_submission *a, const struct shm_submission *b);

struct wst_request sample_state_request(struct tl_rng *r);
bool same_state_request(const struct wst_request *a, const struct wst_request *b);
struct wst_answer sample_state_answer(struct tl_rng *r);

/* A manifest and the limits against which it is checked. */
struct sample_manifest {
	unsigned char *map; /* aligned to a page */
	struct shm_state_header *h;
	struct shm_state_entry *e;
	char *names;
	struct wm_sync_vote vote;
	struct shm_state_limits lim;
};

/* Returns the size of a registered region. Regions 1 to 8 exist, and region i has i MiB. */
uint64_t sample_region_size(void *arg, uint64_t region);
/* Makes a manifest of n tensors, which sample_manifest_free frees. */
void sample_manifest(struct tl_rng *r, uint32_t n, struct sample_manifest *ret);
void sample_manifest_free(struct sample_manifest *m);

#endif
