/* SPDX-License-Identifier: MIT
 *
 * Declares every public function with the type that programs were compiled against. A changed
 * prototype does not compile here, and a missing symbol does not link. When run, this program
 * checks the functions that need neither an agent nor pcclInit.
 */
#include <stdio.h>
#include <string.h>

#define PCCL_1_0_CODES
#include "pccl.h"

static const struct {
	pcclResult_t (*init)(void);
	pcclResult_t (*init_extended)(void);
	pcclResult_t (*get_build_info)(pcclBuildInfo_t *);
	const char *(*get_version)(void);
	const char *(*get_error_string)(pcclResult_t);
	const char *(*get_last_error)(void);
	pcclResult_t (*mem_alloc)(size_t, void **);
	pcclResult_t (*mem_free)(void *);
	pcclResult_t (*create_communicator)(const pcclCommCreateParams_t *, pcclComm_t **);
	pcclResult_t (*destroy_communicator)(pcclComm_t *);
	pcclResult_t (*connect)(pcclComm_t *);
	pcclResult_t (*set_output_policy)(pcclComm_t *, pcclOutputPolicy_t);
	pcclResult_t (*set_stream)(pcclComm_t *, void *);
	pcclResult_t (*set_error_feedback)(pcclComm_t *, uint64_t, bool);
	pcclResult_t (*get_attribute)(const pcclComm_t *, pcclAttribute_t, int *);
	pcclResult_t (*update_topology)(pcclComm_t *);
	pcclResult_t (*are_peers_pending)(const pcclComm_t *, bool *);
	pcclResult_t (*are_new_peers_pending)(const pcclComm_t *, bool *);
	pcclResult_t (*optimize_topology)(const pcclComm_t *);
	pcclResult_t (*all_reduce)(const void *, void *, const pcclReduceDescriptor_t *,
		const pcclComm_t *, pcclReduceInfo_t *);
	pcclResult_t (*all_reduce_async)(const void *, void *, const pcclReduceDescriptor_t *,
		const pcclComm_t *, pcclAsyncReduceOp_t *);
	pcclResult_t (*await_async_reduce)(const pcclAsyncReduceOp_t *, pcclReduceInfo_t *);
	pcclResult_t (*all_reduce_multiple)(const pcclReduceOpDescriptor_t *, size_t,
		const pcclComm_t *, pcclReduceInfo_t *, int);
	pcclResult_t (*synchronize_shared_state)(const pcclComm_t *, pcclSharedState_t *,
		pcclSharedStateSyncStrategy_t, pcclSharedStateSyncInfo_t *);
	pcclResult_t (*create_master)(ccoip_socket_address_t, pcclMasterInstance_t **);
	pcclResult_t (*run_master)(pcclMasterInstance_t *);
	pcclResult_t (*interrupt)(pcclComm_t *);
	pcclResult_t (*interrupt_master)(pcclMasterInstance_t *);
	pcclResult_t (*master_await_termination)(pcclMasterInstance_t *);
	pcclResult_t (*destroy_master)(pcclMasterInstance_t *);
} api = {
	pcclInit,
	pcclInitExtended,
	pcclGetBuildInfo,
	pcclGetVersion,
	pcclGetErrorString,
	pcclGetLastError,
	pcclMemAlloc,
	pcclMemFree,
	pcclCreateCommunicator,
	pcclDestroyCommunicator,
	pcclConnect,
	pcclSetOutputPolicy,
	pcclSetStream,
	pcclSetErrorFeedback,
	pcclGetAttribute,
	pcclUpdateTopology,
	pcclArePeersPending,
	pcclAreNewPeersPending,
	pcclOptimizeTopology,
	pcclAllReduce,
	pcclAllReduceAsync,
	pcclAwaitAsyncReduce,
	pcclAllReduceMultipleWithRetry,
	pcclSynchronizeSharedState,
	pcclCreateMaster,
	pcclRunMaster,
	pcclInterrupt,
	pcclInterruptMaster,
	pcclMasterAwaitTermination,
	pcclDestroyMaster,
};

static int failures;

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "FAILED: %s\n", what);
		failures++;
	}
}

/* Checks that every code has its own text, and that a number that is no code has a text, too. */
static void check_error_strings(void)
{
	static const pcclResult_t codes[] = {
		pcclSuccess,
		pcclNotInitialized,
		pcclInternalError,
		pcclInvalidArgument,
		pcclInvalidUsage,
		pcclTooFewPeers,
		pcclMasterConnectionFailed,
		pcclRankConnectionFailed,
		pcclRankConnectionLost,
		pcclNoSharedStateAvailable,
		pcclPendingAsyncOps,
		pcclUpdateTopologyFailed,
		pcclTopologyOptimizationFailed,
		pcclAgentUnavailable,
		pcclVersionMismatch,
		pcclPermissionDenied,
		pcclTimeout,
		pcclOutOfMemory,
		pcclInterrupted,
		(pcclResult_t)63,
	};
	const size_t n = sizeof codes / sizeof codes[0];

	for (size_t i = 0; i < n; i++) {
		const char *text = api.get_error_string(codes[i]);

		if (text == NULL || text[0] == '\0') {
			check(false, "a result code has no text");
			continue;
		}
		for (size_t j = 0; j < i; j++)
			check(strcmp(text, api.get_error_string(codes[j])) != 0,
				"two result codes have the same text");
	}
}

/* Checks that NULL is refused where an argument is required. */
static void check_null(void)
{
	static const ccoip_socket_address_t nowhere;
	const pcclResult_t refused[] = {
		api.get_build_info(NULL),
		api.mem_alloc(1, NULL),
		api.create_communicator(NULL, NULL),
		api.destroy_communicator(NULL),
		api.connect(NULL),
		api.set_output_policy(NULL, pcclOutputKept),
		api.set_error_feedback(NULL, 1, true),
		api.get_attribute(NULL, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, NULL),
		api.update_topology(NULL),
		api.are_peers_pending(NULL, NULL),
		api.are_new_peers_pending(NULL, NULL),
		api.all_reduce(NULL, NULL, NULL, NULL, NULL),
		api.all_reduce_async(NULL, NULL, NULL, NULL, NULL),
		api.await_async_reduce(NULL, NULL),
		api.create_master(nowhere, NULL),
		api.run_master(NULL),
		api.interrupt(NULL),
		api.interrupt_master(NULL),
		api.master_await_termination(NULL),
		api.destroy_master(NULL),
	};

	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		check(refused[i] == pcclInvalidArgument, "a function accepts NULL");
	check(api.mem_free(NULL) == pcclSuccess, "pcclMemFree refuses NULL");
}

/* Checks that functions return an error and leave a sentence if they get no communicator. */
static void check_missing(void)
{
	check(api.optimize_topology(NULL) != pcclSuccess, "pcclOptimizeTopology succeeds");
	check(api.get_last_error()[0] != '\0', "pcclOptimizeTopology has no sentence");
	check(api.all_reduce_multiple(NULL, 0, NULL, NULL, 1) != pcclSuccess,
		"pcclAllReduceMultipleWithRetry succeeds");
	check(api.get_last_error()[0] != '\0', "pcclAllReduceMultipleWithRetry has no sentence");
	check(api.synchronize_shared_state(NULL, NULL,
		      PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL) != pcclSuccess,
		"pcclSynchronizeSharedState succeeds");
	check(api.get_last_error()[0] != '\0', "pcclSynchronizeSharedState has no sentence");
}

int main(void)
{
	pcclBuildInfo_t info;
	void *memory;

	check(api.get_version()[0] != '\0', "pcclGetVersion is empty");
	check(api.get_last_error()[0] == '\0', "pcclGetLastError is not empty at the start");
	check(api.get_build_info(&info) == pcclSuccess, "pcclGetBuildInfo fails before pcclInit");
	check(api.get_build_info(NULL) == pcclInvalidArgument, "pcclGetBuildInfo accepts NULL");
	check(api.get_last_error()[0] != '\0', "pcclGetLastError is empty after a failure");
	check(api.mem_alloc(1, &memory) == pcclNotInitialized, "pcclMemAlloc needs no pcclInit");
	check(api.init() == pcclSuccess, "pcclInit fails");
	check(api.get_last_error()[0] == '\0', "pcclGetLastError is not empty after success");
	check(api.init() == pcclSuccess, "a second pcclInit fails");
	check_error_strings();
	check_null();
	check_missing();
	return failures != 0;
}
