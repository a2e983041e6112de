/* SPDX-License-Identifier: MIT
 *
 * Answers of daemons for people and for programs.
 */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/wire_admin.h"

struct print_style {
	bool daemon; /* print which daemon answers, before the tables */
	bool record; /* the first table describes the daemon itself: print it as lines of "key:
			value" if it has one row */
	bool colour;
};

/* Prints aligned columns, with units after numbers. */
void print_tables(FILE *f, const struct wa_reply *r, const struct print_style *style);
/* Prints one JSON object with plain numbers. Returns 0 or CC_ERR_NOMEM. */
int print_json(FILE *f, const struct wa_reply *r);

#define PRINT_VALUE_SIZE 32
/* Format numbers like "1.5 KiB" and "250 ms". Both return buf. */
const char *print_bytes(uint64_t n, char buf[PRINT_VALUE_SIZE]);
const char *print_duration(uint64_t ns, char buf[PRINT_VALUE_SIZE]);
/* Formats a rate in bit/s, as in "512 Mbit/s". Returns buf. */
const char *print_bits(double rate, char buf[PRINT_VALUE_SIZE]);

#endif
