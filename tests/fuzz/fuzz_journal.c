/* SPDX-License-Identifier: MIT
 *
 * A master's journal. The input is decoded as the payload of one record and as a whole file.
 */
#include <string.h>

#include "proto/wire_journal.h"
#include "tests/fuzz/fuzz.h"

static void check_again(const struct wj_record *r)
{
	struct wj_record again;
	const char *why;
	uint8_t *p;
	size_t len, used;

	FUZZ_CHECK(wire_journal_encode(r, &p, &len) == 0);
	FUZZ_CHECK(wire_journal_decode(p, len, &again, &used, &why) == 0);
	FUZZ_CHECK(used == len && again.type == r->type && again.n == r->n);
	FUZZ_CHECK(again.term == r->term && again.view_id == r->view_id);
	FUZZ_CHECK(r->n == 0 || memcmp(again.members, r->members, r->n * sizeof *r->members) == 0);
	FUZZ_CHECK(again.n_revisions == r->n_revisions);
	for (uint32_t i = 0; i < r->n_revisions; i++)
		FUZZ_CHECK(again.revisions[i].group == r->revisions[i].group &&
			   again.revisions[i].revision == r->revisions[i].revision);
	FUZZ_CHECK(again.n_hosts == r->n_hosts && again.n_rates == r->n_rates);
	FUZZ_CHECK(again.written_s == r->written_s);
	FUZZ_CHECK(r->n_rates == 0 ||
		   memcmp(again.rates, r->rates, r->n_rates * sizeof *r->rates) == 0);
	for (uint32_t i = 0; i < r->n_hosts; i++)
		FUZZ_CHECK(cc_addr_eq(&again.hosts[i].addr, &r->hosts[i].addr) &&
			   cc_id_eq(&again.hosts[i].agent, &r->hosts[i].agent));
	wire_journal_clear(&again);
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	const char *why = NULL;
	struct wj_record r;
	size_t at, used;

	if (wire_journal_get(p, len, &r, &why) == 0) {
		check_again(&r);
		wire_journal_clear(&r);
	} else {
		FUZZ_CHECK(why != NULL);
	}
	if (wire_journal_check(p, len) < 0)
		return 0;
	for (at = WJ_HEADER; at < len; at += used) {
		if (wire_journal_decode(p + at, len - at, &r, &used, &why) < 0)
			break;
		FUZZ_CHECK(used >= WJ_RECORD_HDR && used <= len - at);
		check_again(&r);
		wire_journal_clear(&r);
	}
	return 0;
}
