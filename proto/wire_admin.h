/* SPDX-License-Identifier: MIT
 *
 * What pcclctl asks of an agent or a master, and tables as the answer. protobuf (proto/admin.proto)
 * inside the framing of wire_frame.h over an AF_UNIX stream. The daemon decides on names and
 * columns, pcclctl prints what comes: a new column needs no change here. Pure.
 */
#ifndef WIRE_ADMIN_H
#define WIRE_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WA_VERSION_MIN 1u
#define WA_VERSION_MAX 1u
#define WA_TABLES_MAX  16u
#define WA_COLS_MAX    24u
#define WA_ROWS_MAX    100000u
#define WA_TEXT_MAX    512u
#define WA_ADDR_MAX    64u /* with NUL */

enum wa_verb {
	WA_STATUS = 1,
	WA_PEERS = 2,
	WA_OPS = 3,
	WA_SET_MASTER = 4,
	WA_STATE = 5,
	WA_RESET = 6
};

struct wa_request {
	uint32_t version_min, version_max;
	enum wa_verb verb;
	/* WA_SET_MASTER: the master at from is to be found at to, too. ADDRESS:PORT each, clean but
	 * not parsed. */
	char from[WA_ADDR_MAX]; /* "" only with run */
	char to[WA_ADDR_MAX];   /* "": nowhere else any more */
	bool now;               /* leave a master that answers */
	bool force;             /* WA_RESET: also while the run has members */
	uint32_t run;           /* as the agent numbers it; 0: all of them, later ones too */
};

/* How a number is printed for people; JSON carries the plain number under the column's name. */
enum wa_kind {
	WA_KIND_TEXT = 1,
	WA_KIND_COUNT = 2,
	WA_KIND_BYTES = 3,
	WA_KIND_NS = 4, /* duration, nanoseconds, or WA_UNKNOWN */
	WA_KIND_BOOL = 5,
	WA_KIND_RATE = 6, /* bytes per second, or WA_UNKNOWN */
};
#define WA_UNKNOWN UINT64_MAX

struct wa_cell {
	uint64_t number;
	char *text; /* only for WA_KIND_TEXT, owned */
};

struct wa_table {
	char name[32]; /* "peers": the JSON key */
	uint32_t n_cols;
	struct {
		char name[32]; /* lower_case, the JSON key */
		enum wa_kind kind;
	} col[WA_COLS_MAX];
	uint32_t n_rows;
	struct wa_cell *cells; /* n_rows * n_cols, row after row, owned */
	uint32_t cap_rows;
	int err; /* what went wrong while it was built */
};

struct wa_reply {
	uint32_t version_min, version_max; /* of the answering side */
	uint32_t version;                  /* chosen; 0: refused, error says why */
	char daemon[32];                   /* "pcclagentd" or "ccoip-masterd" */
	char software[32];                 /* its version */
	char error[WA_TEXT_MAX];           /* "" or why there is no answer */
	bool denied;                       /* error is about who asks */
	uint32_t n_tables;
	struct wa_table *tables; /* owned */
	int err;                 /* what went wrong while it was built */
};

/* Builds a reply: tables, their columns, then rows cell by cell. A table stays where it is until
 * wa_reply_clear. Errors are remembered and returned by wire_admin_encode_reply; wa_table_add
 * returns NULL for one, which the other functions take. A text that is too long is cut. */
struct wa_table *wa_table_add(struct wa_reply *r, const char *name);
void wa_col_add(struct wa_table *t, const char *name, enum wa_kind kind);
struct wa_column {
	const char *name;
	enum wa_kind kind;
};
struct wa_table *wa_table_with(
	struct wa_reply *r, const char *name, const struct wa_column *cols, size_t n);
#define WA_TABLE(r, name, cols) wa_table_with(r, name, cols, sizeof(cols) / sizeof((cols)[0]))
void wa_row_add(struct wa_table *t);
void wa_set_number(struct wa_table *t, uint32_t col, uint64_t v); /* in the last row */
__attribute__((format(printf, 3, 4))) void wa_set_text(
	struct wa_table *t, uint32_t col, const char *fmt, ...);
void wa_reply_clear(struct wa_reply *r);

/* One whole frame each, malloc'd, owned by the caller. */
int wire_admin_encode_request(const struct wa_request *q, uint8_t **ret, size_t *ret_len);
int wire_admin_encode_reply(const struct wa_reply *r, uint8_t **ret, size_t *ret_len);
/* One frame's payload each. */
int wire_admin_decode_request(
	const uint8_t *p, size_t len, struct wa_request *ret, const char **why);
int wire_admin_decode_reply(const uint8_t *p, size_t len, struct wa_reply *ret, const char **why);

#endif
