/* SPDX-License-Identifier: MIT
 *
 * Tests of seals, identities and proofs. tests/e2e/seal.py is another implementation of the same
 * protocol.
 */
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_seal.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

static struct cc_seal *agent, *master;

static void setup(void)
{
	agent = cc_seal_new(false);
	master = cc_seal_new(true);
	ck_assert(!cc_seal_agreed(agent));
	ck_assert_int_eq(cc_seal_agree(master, cc_seal_share(agent)), 0);
	ck_assert_int_eq(cc_seal_agree(agent, cc_seal_share(master)), 0);
	ck_assert(cc_seal_agreed(agent) && cc_seal_agreed(master));
}

static void teardown(void)
{
	cc_seal_free(agent);
	cc_seal_free(master);
}

START_TEST(sealed_messages_are_opened_by_the_other_end)
{
	uint8_t text[100], sealed[sizeof text + CC_SEAL_TAG], got[sizeof text];

	ck_assert(cc_key_eq(cc_seal_agent_key(agent), cc_seal_agent_key(master)));
	for (size_t len = 0; len <= sizeof text; len += 25) {
		memset(text, (int)len, sizeof text);
		ck_assert_int_eq(cc_seal_put(agent, text, len, sealed), 0);
		ck_assert_int_eq(cc_seal_get(master, sealed, len + CC_SEAL_TAG, got), 0);
		ck_assert_mem_eq(text, got, len);
		ck_assert_int_eq(cc_seal_put(master, text, len, sealed), 0);
		ck_assert_int_eq(cc_seal_get(agent, sealed, len + CC_SEAL_TAG, got), 0);
		ck_assert_mem_eq(text, got, len);
	}
}
END_TEST

START_TEST(repeated_or_changed_message_is_refused)
{
	uint8_t text[9] = {1}, sealed[sizeof text + CC_SEAL_TAG], got[sizeof text];

	ck_assert_int_eq(cc_seal_put(agent, text, sizeof text, sealed), 0);
	ck_assert_int_eq(cc_seal_get(master, sealed, sizeof sealed, got), 0);
	ck_assert_int_eq(cc_seal_get(master, sealed, sizeof sealed, got), CC_ERR_PROTO);
	ck_assert_int_eq(cc_seal_put(master, text, sizeof text, sealed), 0);
	sealed[_i] ^= 1;
	ck_assert_int_eq(cc_seal_get(agent, sealed, sizeof sealed, got), CC_ERR_PROTO);
	ck_assert_int_eq(cc_seal_get(agent, sealed, CC_SEAL_TAG - 1, got), CC_ERR_PROTO);
}
END_TEST

START_TEST(an_identity_is_proven_on_one_connection)
{
	struct cc_identity *x = cc_identity_new(), *other = cc_identity_new();
	struct cc_seal *a = cc_seal_new(false), *m = cc_seal_new(true);
	struct cc_key proof;
	struct cc_id id, id2;

	cc_seal_id_of(cc_identity_share(x), &id);
	cc_seal_id_of(cc_identity_share(other), &id2);
	ck_assert(!cc_id_eq(&id, &id2));
	ck_assert_int_eq(cc_seal_prove(agent, x, &proof), 0);
	ck_assert(cc_seal_is_proven(master, cc_identity_share(x), &proof));
	ck_assert(!cc_seal_is_proven(master, cc_identity_share(other), &proof));
	ck_assert_int_eq(cc_seal_agree(m, cc_seal_share(a)), 0);
	ck_assert(!cc_seal_is_proven(m, cc_identity_share(x), &proof));
	proof.b[31] ^= 1;
	ck_assert(!cc_seal_is_proven(master, cc_identity_share(x), &proof));
	cc_identity_free(x);
	cc_identity_free(other);
	cc_seal_free(a);
	cc_seal_free(m);
}
END_TEST

/* A share of zeros would lead to the same secret with any key. */
START_TEST(zero_share_and_second_agreement_are_refused)
{
	struct cc_seal *m = cc_seal_new(true);

	ck_assert_int_eq(cc_seal_agree(m, &(struct cc_key){{0}}), CC_ERR_PROTO);
	ck_assert(!cc_seal_agreed(m));
	ck_assert_int_eq(cc_seal_agree(master, cc_seal_share(agent)), CC_ERR_PROTO); /* again */
	cc_seal_free(m);
}
END_TEST

START_TEST(link_keys_depend_on_service_number_and_direction)
{
	const struct cc_key *k = cc_seal_agent_key(agent);
	struct cc_id a = {{1}}, b = {{2}};
	struct cc_key link_key, x;

	cc_link_key(k, 1, 7, &a, &b, &link_key);
	cc_link_key(k, 1, 7, &a, &b, &x);
	ck_assert(cc_key_eq(&link_key, &x));
	cc_link_key(k, 2, 7, &a, &b, &x);
	ck_assert(!cc_key_eq(&link_key, &x));
	cc_link_key(k, 1, 8, &a, &b, &x);
	ck_assert(!cc_key_eq(&link_key, &x));
	cc_link_key(k, 1, 7, &b, &a, &x);
	ck_assert(!cc_key_eq(&link_key, &x));
}
END_TEST

Suite *seal_suite(void)
{
	Suite *s = suite_create("seal");
	TCase *tc = tcase_create("seal");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, sealed_messages_are_opened_by_the_other_end);
	tcase_add_loop_test(tc, repeated_or_changed_message_is_refused, 0, 9 + CC_SEAL_TAG);
	tcase_add_test(tc, an_identity_is_proven_on_one_connection);
	tcase_add_test(tc, zero_share_and_second_agreement_are_refused);
	tcase_add_test(tc, link_keys_depend_on_service_number_and_direction);
	suite_add_tcase(s, tc);
	return s;
}
