/* SPDX-License-Identifier: MIT
 *
 * The codes that programs written for PCCL 1.0 get instead of codes that they do not know.
 */
#define PCCL_1_0_CODES
#include "tests/shim/fixture.h"
#include "tests/shim/suites.h"

static void setup(void)
{
	fx_make_dir();
	setenv("PCCL_AGENT_SOCKET", fx_socket, 1); /* no agent listens there */
	setenv("PCCL_AGENT_LEASE_MS", "0", 1);
}

START_TEST(a_program_for_1_0_gets_only_codes_of_1_0)
{
	pcclComm_t *c;
	void *memory;

	fx_assert_succeeds(pcclInit());
	c = fx_new_comm();
	fx_assert_fails(pcclConnect(c), pcclMasterConnectionFailed, fx_socket);
	fx_assert_fails(pcclMemAlloc(1, &memory), pcclMasterConnectionFailed, fx_socket);
	fx_assert_fails(pcclGetAttribute(c, (pcclAttribute_t)9, NULL), pcclInvalidArgument, "NULL");
	fx_assert_succeeds(pcclInitExtended());
	fx_assert_fails(pcclConnect(c), pcclAgentUnavailable, fx_socket);
	fx_assert_succeeds(pcclInit()); /* from now on the program gets all codes */
	fx_assert_fails(pcclConnect(c), pcclAgentUnavailable, fx_socket);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* Codes that come from the agent are replaced in the same way. */
START_TEST(each_new_code_has_a_substitute_in_1_0)
{
	static const struct {
		pcclResult_t ours, theirs;
	} codes[] = {
		{pcclAgentUnavailable, pcclMasterConnectionFailed},
		{pcclVersionMismatch, pcclMasterConnectionFailed},
		{pcclPermissionDenied, pcclMasterConnectionFailed},
		{pcclTimeout, pcclMasterConnectionFailed},
		{pcclOutOfMemory, pcclInternalError},
		{pcclInterrupted, pcclInternalError},
	};

	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclInit());
	fx_comm = fx_new_comm();
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		fake_script(fx_agent, WL_COMM_CONNECT, FAKE_REFUSE, codes[i].ours, "not today");
		fx_assert_fails(pcclConnect(fx_comm), codes[i].theirs, "not today");
	}
	fx_assert_succeeds(pcclInitExtended());
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		fake_script(fx_agent, WL_COMM_CONNECT, FAKE_REFUSE, codes[i].ours, "not today");
		fx_assert_fails(pcclConnect(fx_comm), codes[i].ours, "not today");
	}
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fake_stop(fx_agent);
}
END_TEST

START_TEST(an_interrupt_is_reported_as_a_permanent_error)
{
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclInit());
	fx_comm = fx_new_comm();
	ck_assert_int_eq(pcclInterrupt(fx_comm), pcclSuccess);
	fx_assert_fails(pcclConnect(fx_comm), pcclInternalError, "pcclInterrupt");
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fake_stop(fx_agent);
}
END_TEST

Suite *codes_suite(void)
{
	Suite *s = suite_create("codes");
	TCase *tc = tcase_create("codes");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, setup, fx_remove_dir);
	tcase_add_test(tc, a_program_for_1_0_gets_only_codes_of_1_0);
	tcase_add_test(tc, each_new_code_has_a_substitute_in_1_0);
	tcase_add_test(tc, an_interrupt_is_reported_as_a_permanent_error);
	suite_add_tcase(s, tc);
	return s;
}
