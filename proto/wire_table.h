/* SPDX-License-Identifier: MIT
 *
 * Tables that describe messages, and the functions that encode, decode and free every message by
 * its table. A table has one line for each field of the message in the .proto file, in the order of
 * the field numbers. The line names the field, the member of the plain struct and the limits. The
 * descriptor that protoc-c has generated adds the field number and the offset in the struct of
 * protobuf-c; the table and the descriptor have the same index, so nothing is searched.
 * tests/proto/table.c compares all tables with their descriptors.
 *
 * Rules about several fields are small functions beside the table: `when` and `rule` of a line,
 * `before` and `after` of a table.
 */
#ifndef WIRE_TABLE_H
#define WIRE_TABLE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_err.h"
#include "proto/wire_ballot.h"
#include "proto/wire_limits.h"
#include "proto/wire_writer.h"

/* The kind of a field is the type of its member, and decides which values are valid. */
enum wire_field_kind {
	WIRE_BOOL,
	WIRE_U16, /* numbers from min to max */
	WIRE_U32, /* also enum */
	WIRE_U64,
	WIRE_FIXED64,
	WIRE_BYTES,      /* as many bytes as the member has */
	WIRE_ID,         /* an id or a key: like WIRE_BYTES, and not all bytes are zero */
	WIRE_ID_OR_NONE, /* like WIRE_ID, or an empty field, which stands for zero */
	WIRE_IP,         /* 4 or 16 bytes; the member is the whole struct cc_addr */
	WIRE_TEXT,       /* a string for an array of char; bytes that are not clean become '?' */
	WIRE_NAME,       /* like WIRE_TEXT, but must be clean */
	WIRE_WORD,       /* like WIRE_TEXT, but must be 1 or more of a-z 0-9 _ */
	WIRE_MESSAGE,    /* a nested message; its struct is the member, or the outer struct if there
			    is no member */
	WIRE_CASE, /* one message of a oneof; the member is the type, which is the field number */
	WIRE_LIST, /* a repeated field and its count, from min to max */
	WIRE_NUMBERS, /* a repeated field of uint64 for an array: missing elements are 0, and
			 further ones are ignored */
	WIRE_OTHER,   /* the functions `put` and `get` write and read the field */
};

struct wire_field {
	enum wire_field_kind kind;
	uint16_t at, size; /* offset of the member in the plain struct, and its bytes */
	uint64_t min, max;
	/* If this returns 0 for the plain struct, the field is not written. It is not read, either;
	 * only a nested message that may be missing is still read. */
	int (*when)(const void *plain);
	/* Checks the plain struct after the field and those before it have been read. Returns 0 to
	 * refuse the message, or WIRE_IGNORE_REST to read no other field. */
	int (*rule)(const void *plain);
	const char *text;   /* why a wrong value is refused; a nested message with a text must be
			       there */
	const char *unruly; /* why a message that breaks `rule` is refused */
	const char *each;   /* for a wrong element or nested message that has no text itself */
	const char *name;   /* in the .proto file */
	const struct wire_table *of; /* of messages; WIRE_CASE: its struct is the outer struct */
	/* WIRE_LIST */
	const struct wire_field *item; /* if the elements are not messages; `at`: in the element */
	const char *twice;             /* why two elements with the same key are refused */
	uint16_t count, stride; /* offset of the uint32_t with the count; bytes of an element */
	uint8_t key;   /* the first `key` bytes of all elements must differ; 0: no such rule */
	bool owned;    /* the member is a pointer to memory from malloc; else it is an array of
			* `max` elements */
	bool parallel; /* the elements are those of the list before, and the count is the same */
	/* WIRE_OTHER: p is the struct of protobuf-c of the outer message */
	void (*put)(struct wire_writer *w, uint32_t field, const void *plain);
	int (*get)(const void *p, void *plain, const char **why);
};

struct wire_table {
	const ProtobufCMessageDescriptor *pb;
	const struct wire_field *fields; /* as many as the descriptor has */
	uint32_t n, size;                /* number of fields; bytes of the plain struct */
	bool owns;                       /* the table, or one in it, has a list that is owned */
	/* These check rules before and after the fields are read. They may set members. p is the
	 * struct of protobuf-c. They return 0, or a negative enum cc_err with *why set; `before`
	 * may also return WIRE_IGNORE_REST. */
	int (*before)(const void *p, void *plain, const char **why);
	int (*after)(void *plain, const char **why);
};

#define WIRE_IGNORE_REST 2     /* the message is valid, but its other fields have no meaning */
#define WIRE_UNIQUE_MAX  1024u /* most elements of a list whose keys must differ */

/* ---- the lines of tables ---- */

/* WIRE_FIELD(struct wm_join, "pid", pid, U32): the field `pid` belongs to the member pid. */
#define WIRE_FIELD(s, name_, m, ...)                                                               \
	{                                                                                          \
		.name = (name_), .at = offsetof(s, m), .size = sizeof(((s *)0)->m), __VA_ARGS__    \
	}
#define WIRE_LIST_FIELD(s, name_, m, count_, ...)                                                  \
	{                                                                                          \
		.name = (name_), .at = offsetof(s, m), .stride = sizeof(((s *)0)->m[0]),           \
		.count = offsetof(s, count_), __VA_ARGS__                                          \
	}
/* One message of a oneof. */
#define WIRE_KIND(s, name_, table)                                                                 \
	.name = (name_), .kind = WIRE_CASE, .at = offsetof(s, type), .of = &(table)
/* The fields of an address. */
#define WIRE_ADDRESS(port_min)                                                                     \
	{.name = "ip", .kind = WIRE_IP, .size = sizeof(struct cc_addr)},                           \
		WIRE_FIELD(struct cc_addr, "port", port, U16_IN((port_min), UINT16_MAX, NULL))
#define WIRE_TABLE(s, descriptor, lines)                                                           \
	.pb = &(descriptor), .size = sizeof(s), .fields = (lines),                                 \
	.n = sizeof(lines) / sizeof((lines)[0])

#define BOOL              .kind = WIRE_BOOL, .max = 1
#define U32               .kind = WIRE_U32, .max = UINT32_MAX
#define U64               .kind = WIRE_U64, .max = UINT64_MAX
#define FIXED64           .kind = WIRE_FIXED64, .max = UINT64_MAX
#define IN(lo, hi, t)     .min = (lo), .max = (hi), .text = (t)
#define U16_IN(lo, hi, t) .kind = WIRE_U16, IN(lo, hi, t)
#define U32_IN(lo, hi, t) .kind = WIRE_U32, IN(lo, hi, t)
#define U64_IN(lo, hi, t) .kind = WIRE_U64, IN(lo, hi, t)
#define U64_FROM_1(path)  U64_IN(1, UINT64_MAX, path ": must be at least 1")
/* The kind of a ballot, `least` or more. */
#define BALLOT_FROM(least, path)  U32_IN(least, WIRE_BALLOT_MAX, BALLOT_LIMIT(least, path))
#define BALLOT_LIMIT(least, path) path ": must be " #least " to " WIRE_STR(WIRE_BALLOT_MAX)
#define CODE(path)                U32_IN(1, WIRE_CODE_MAX, path ": must be 1 to 255")
#define ID(path)                  .kind = WIRE_ID, .text = path ": must be 16 bytes, not all zero"
#define ID_OR_NONE(path)                                                                           \
	.kind = WIRE_ID_OR_NONE, .text = path ": must be empty, or 16 bytes that are not all zero"
#define BYTES(t)       .kind = WIRE_BYTES, .text = (t)
#define NUMBERS        .kind = WIRE_NUMBERS
#define TEXT(t)        .kind = WIRE_TEXT, .text = (t)
#define NAME(t)        .kind = WIRE_NAME, .text = (t)
#define MESSAGE(table) .kind = WIRE_MESSAGE, .of = &(table)
#define LIST_OF(table) .kind = WIRE_LIST, .of = &(table)
#define LIST_OF_ITEMS(...)                                                                         \
	.kind = WIRE_LIST, .item = &(const struct wire_field)                                      \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define UNIQUE(bytes, t) .key = (bytes), .twice = (t)
#define RULE(f, t)       .rule = (f), .unruly = (t)
/* Defines a function for `when` or `rule`. m is the plain struct. */
#define CONDITION(name, s, expression)                                                             \
	static int name(const void *plain)                                                         \
	{                                                                                          \
		const s *m = plain;                                                                \
		return expression;                                                                 \
	}

/* ---- functions for codecs ---- */

/* Encodes a message. *ret is malloc'd, and the caller owns it: `head` bytes for the caller, and
 * then at most `max` bytes of the message. If `field` is not 0, the message becomes the only field
 * of another message, with this number. */
int wire_table_encode(const struct wire_table *t, uint32_t field, const void *plain, size_t head,
	size_t max, uint8_t **ret, size_t *ret_len);
/* Encodes a message into buf. Returns its length or a negative enum cc_err. */
int wire_table_encode_to(const struct wire_table *t, const void *plain, uint8_t *buf, size_t size);
/* Decodes a message. `factor`: see wire_arena_unpack. Returns 0, or a negative enum cc_err with
 * *why (static text). *plain, which may be uninitialised before, then owns memory
 * (wire_table_clear), also after a failure. */
int wire_table_decode(const struct wire_table *t, const uint8_t *p, size_t len, size_t factor,
	void *plain, const char **why);
/* Does the same with the struct of protobuf-c. */
int wire_table_read(const struct wire_table *t, const void *p, void *plain, const char **why);
/* Frees the memory of all lists, which are empty then. */
void wire_table_clear(const struct wire_table *t, void *plain);

/* ---- functions for rules ---- */

/* The rule for a range of versions, which must be within 1 .. 65535. If the receiver knows none of
 * the versions, it only refuses the sender, so the rest of the message is ignored. */
int wire_versions(uint32_t min, uint32_t max, uint32_t known_min, uint32_t known_max);
/* Does a key occur twice? The first `key` bytes of each element are its key. At most 32 elements,
 * or WIRE_UNIQUE_MAX elements with keys of at most 16 bytes. */
bool wire_keys_repeat(const void *v, size_t n, size_t stride, size_t key);

/* ---- all tables, for the tests ---- */

extern const struct wire_table *const wire_master_tables[]; /* by enum wm_type; gaps are NULL */
extern const size_t wire_master_n_tables;
extern const struct wire_table wire_local_request, wire_local_reply;
extern const struct wire_table wire_journal_record;
extern const struct wire_table wire_admin_request, wire_admin_reply;

#endif
