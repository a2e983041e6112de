/* SPDX-License-Identifier: MIT
 *
 * Fields of JSON objects. Each function returns whether it succeeded. Pure.
 */
#ifndef BCH_FIELDS_H
#define BCH_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/* Adds `v` to the object, which takes `v` over. */
bool bch_add(struct json_object *o, const char *key, struct json_object *v);
bool bch_add_number(struct json_object *o, const char *key, uint64_t v);
bool bch_add_text(struct json_object *o, const char *key, const char *v);
bool bch_add_flag(struct json_object *o, const char *key, bool v);
/* Add a number, or null if it is not known. */
bool bch_add_known(struct json_object *o, const char *key, bool known, uint64_t v);
bool bch_add_rate(struct json_object *o, const char *key, bool known, double v);

/* Prints the object if `ok` is set, and frees it. Returns 0, or CC_ERR_NOMEM if nothing was
 * printed. */
int bch_print_object(FILE *f, struct json_object *o, bool ok);

#endif
