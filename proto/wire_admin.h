/* SPDX-License-Identifier: MIT
 *
 * Requests of pcclctl to an agent or a master, and replies with tables. The messages are protobuf
 * (proto/admin.proto) in the framing of wire_frame.h over an AF_UNIX stream. The daemon chooses
 * tables and columns, and pcclctl prints all that it receives, so a new column needs no change
 * here. Pure.
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
	WA_RESET = 6,
	WA_TOPOLOGY = 7,
	WA_BANDWIDTH = 8,
	WA_MEASURE = 9,
	WA_PROGRESS = 10
};

struct wa_request {
	uint32_t version_min, version_max;
	enum wa_verb verb;
	/* WA_SET_MASTER: the master at `from` is also reachable at `to`. Both are ADDRESS:PORT,
	 * clean but not parsed. */
	char from[WA_ADDR_MAX]; /* "" is allowed only with run */
	char to[WA_ADDR_MAX];   /* "": remove the additional address */
	bool now;               /* leave the present master even if it answers */
	bool force;             /* WA_RESET: even if the run has members */
	uint32_t run; /* number of the run in the agent's tables; 0: all runs, also later ones */
};

/* The form in which a value is printed for people. JSON contains the plain number under the name of
 * the column. */
enum wa_kind {
	WA_KIND_TEXT = 1,
	WA_KIND_COUNT = 2,
	WA_KIND_BYTES = 3,
	WA_KIND_NS = 4, /* duration, nanoseconds, or WA_UNKNOWN */
	WA_KIND_BOOL = 5,
	WA_KIND_RATE = 6, /* bytes per second, or WA_UNKNOWN */
	WA_KIND_BITS = 7, /* bits per second of a network, or WA_UNKNOWN */
};
#define WA_UNKNOWN UINT64_MAX

struct wa_cell {
	uint64_t number;
	char *text; /* only for WA_KIND_TEXT, owned */
};

struct wa_col {
	char name[32]; /* lower_case, the JSON key */
	enum wa_kind kind;
};

struct wa_table {
	char name[32]; /* "peers": the JSON key */
	uint32_t n_cols;
	struct wa_col col[WA_COLS_MAX];
	uint32_t n_rows;
	struct wa_cell *cells; /* n_rows * n_cols, row after row, owned */
	uint32_t cap_rows;
	int err; /* the first error while it was built */
};

struct wa_reply {
	uint32_t version_min, version_max; /* versions of the answering side */
	uint32_t version;        /* the chosen version; 0: refused, and error gives the reason */
	char daemon[32];         /* "pcclagentd" or "ccoip-masterd" */
	char software[32];       /* its version */
	char error[WA_TEXT_MAX]; /* reason why there are no tables, or "" */
	bool denied;             /* the error concerns the permission of the caller */
	uint32_t n_tables;
	struct wa_table *tables; /* owned */
	int err;                 /* the first error while it was built */
};

/* These functions build a reply: tables, their columns, and then rows, cell by cell. The address of
 * a table stays valid until wa_reply_clear. Errors are remembered, and wire_admin_encode_reply
 * returns them. On an error wa_table_add returns NULL, which the other functions accept. A text
 * that is too long is cut. A decoded reply gets no more tables. */
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
void wa_set_number(struct wa_table *t, uint32_t col, uint64_t v); /* sets a cell of the last row */
__attribute__((format(printf, 3, 4))) void wa_set_text(
	struct wa_table *t, uint32_t col, const char *fmt, ...);
void wa_reply_clear(struct wa_reply *r);

/* Encode a message as one whole frame. *ret is malloc'd, and the caller owns it. */
int wire_admin_encode_request(const struct wa_request *q, uint8_t **ret, size_t *ret_len);
int wire_admin_encode_reply(const struct wa_reply *r, uint8_t **ret, size_t *ret_len);
/* Decode the payload of one frame. */
int wire_admin_decode_request(
	const uint8_t *p, size_t len, struct wa_request *ret, const char **why);
int wire_admin_decode_reply(const uint8_t *p, size_t len, struct wa_reply *ret, const char **why);

#endif
