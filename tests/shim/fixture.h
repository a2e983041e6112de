/* SPDX-License-Identifier: MIT
 *
 * The common parts of the shim's tests: a folder, a fake agent in it, and a connected communicator.
 * libcheck runs each test in its own process, so each test has new ones.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libpccl-shim/include/pccl.h"
#include "tests/common/testlib.h"
#include "tests/shim/fake_agent.h"

static char fx_base[32] = "/tmp"; /* the parent of the tests removes it, however they end */
static char fx_dir[64];
static char fx_socket[96];
static struct fake *fx_agent;
static pcclComm_t *fx_comm;

static inline void fx_make_base(void)
{
	snprintf(fx_base, sizeof fx_base, "/tmp/pccl-shim-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fx_base));
}

static inline void fx_remove_base(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf '%s'", fx_base);
	ck_assert_int_eq(system(command), 0);
}

static inline void fx_make_dir(void)
{
	snprintf(fx_dir, sizeof fx_dir, "%s/XXXXXX", fx_base);
	ck_assert_ptr_nonnull(mkdtemp(fx_dir));
	snprintf(fx_socket, sizeof fx_socket, "%s/agent.sock", fx_dir);
}

static inline void fx_remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf '%s'", fx_dir);
	ck_assert_int_eq(system(command), 0);
}

static inline pcclCommCreateParams_t fx_params(void)
{
	return (pcclCommCreateParams_t){
		.master_address = {
			.inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}}, .port = 48148}};
}

static inline pcclComm_t *fx_new_comm(void)
{
	pcclCommCreateParams_t params = fx_params();
	pcclComm_t *c = NULL;

	ck_assert_int_eq(pcclCreateCommunicator(&params, &c), pcclSuccess);
	return c;
}

/* Starts an agent that is found by PCCL_AGENT_SOCKET, and initializes the library. */
static inline void fx_setup_agent(void)
{
	fx_make_dir();
	fx_agent = fake_start(fx_socket);
	ck_assert_int_eq(setenv("PCCL_AGENT_SOCKET", fx_socket, 1), 0);
	ck_assert_int_eq(pcclInit(), pcclSuccess);
}

static inline void fx_teardown_agent(void)
{
	fake_stop(fx_agent);
	fx_remove_dir();
}

/* Does the same as fx_setup_agent, and connects a communicator. */
static inline void fx_setup_comm(void)
{
	fx_setup_agent();
	fx_comm = fx_new_comm();
	ck_assert_int_eq(pcclConnect(fx_comm), pcclSuccess);
}

static inline void fx_teardown_comm(void)
{
	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
	fx_teardown_agent();
}

/* Checks that the call returns this code, and that its sentence contains the words. */
#define fx_assert_fails(call, code, words)                                                         \
	do {                                                                                       \
		ck_assert_int_eq(call, code);                                                      \
		ck_assert_msg(strstr(pcclGetLastError(), words) != NULL,                           \
			"\"%s\" does not contain \"%s\"", pcclGetLastError(), words);              \
	} while (0)

#define fx_assert_succeeds(call)                                                                   \
	do {                                                                                       \
		pcclResult_t fx_result_ = (call);                                                  \
                                                                                                   \
		ck_assert_msg(fx_result_ == pcclSuccess, "%s: %d: %s", #call, (int)fx_result_,     \
			pcclGetLastError());                                                       \
		ck_assert_str_eq(pcclGetLastError(), "");                                          \
	} while (0)

#endif
