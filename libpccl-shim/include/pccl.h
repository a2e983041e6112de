/* SPDX-License-Identifier: MIT
 *
 * Collective communication over TCP for training jobs whose members come and go.
 *
 * A *peer* is a connected communicator. All peers that connected to one master form a *run*; those
 * with the same peer group number reduce and synchronize among themselves. Peers may join, leave
 * and die at any time: the others are told by a result code and repeat the call that failed.
 *
 *	pcclResult_t result;
 *
 *	pcclInit();
 *	pcclCreateCommunicator(&params, &comm);
 *	if (pcclConnect(comm) != pcclSuccess)         // waits until the run lets this peer in
 *		errx(1, "%s", pcclGetLastError());
 *	while (training) {
 *		pcclUpdateTopology(comm);             // lets newcomers in
 *		compute(gradients);
 *		do                                    // a peer was lost: buffers are as before
 *			result = pcclAllReduce(gradients, gradients, &desc, comm, NULL);
 *		while (result == pcclRankConnectionLost);
 *		if (result != pcclSuccess && result != pcclTooFewPeers)
 *			errx(1, "%s", pcclGetLastError());
 *		apply(gradients);                     // alone: pcclTooFewPeers, as they were
 *	}
 *	pcclDestroyCommunicator(comm);
 *
 * Network traffic is the business of the host's agent, pcclagentd. The library talks to it over a
 * local socket and shared memory. Environment: PCCL_AGENT_SOCKET names the agent's socket when it
 * is not the system's; without an agent a private one is started for this user, unless
 * PCCL_AGENT_AUTOSPAWN is 0. Of the environment of the process that started it, the private agent
 * reads PCCL_ADVERTISE, the addresses at which other hosts reach it, and PCCL_INTERFACES, the
 * interfaces to use. PCCL_AGENTD and PCCL_MASTERD name the programs to start when they are not
 * where they were installed. PCCL_HASH_TYPE is read by pcclSynchronizeSharedState, PCCL_LOG_LEVEL
 * by pcclRunMaster and for a private agent.
 *
 * An agent may die, or be restarted, without costing the run. A thread of the library notices it,
 * waits for the next one, and presents the process's communicators and memory there; connected
 * communicators stay the peers that they were. Operations in flight at that moment return
 * pcclRankConnectionLost, unless the whole result was there and all others have it; every other
 * call waits and goes on. If no agent comes back within PCCL_AGENT_GRACE_MS milliseconds (30000;
 * 0: do not wait), or one does not answer for as long, calls return pcclAgentUnavailable until
 * pcclConnect has joined the run anew. The variable is read by pcclConnect and pcclMemAlloc. The
 * thread has all signals blocked but those of faults. Without a connected communicator these two
 * wait themselves, for as long, if the process has had an agent; if it has had none, or has waited
 * for it in vain, they do not wait. Giving memory or a communicator back does not wait for an agent
 * that is away.
 *
 * A communicator that is a peer no more, because it was removed from the run or lost the master for
 * good, says so to the calls that are under way, or else to the next one, whichever function that
 * is: pcclRankConnectionLost, or the code that names the reason. Later calls on it return
 * pcclInvalidUsage with the same sentence, so that programs which repeat what is lost come to an
 * end; pcclMasterConnectionFailed and pcclAgentUnavailable, which nobody repeats a call for, stay
 * what they are. pcclConnect joins the run anew.
 *
 * Results. Every function that can fail returns a pcclResult_t. Outputs are written on success
 * only, unless a function says otherwise. pcclGetLastError tells in a sentence what went wrong and
 * what to do about it. These codes may come from any function and are not repeated below:
 *	pcclNotInitialized     pcclInit has not succeeded in this process
 *	pcclInvalidArgument    a pointer that must not be NULL is NULL, or a value is out of range
 *	pcclInternalError      neither the caller nor the network is at fault; please report it
 *	pcclOutOfMemory        memory is exhausted, or the agent's limit for this user is reached
 *	pcclAgentUnavailable   the agent cannot be reached (see the code's description)
 *	pcclInterrupted        pcclInterrupt has ended the call while it waited
 *
 * Threads. A communicator belongs to the thread that connected it, its main thread; until then to
 * the thread that created it. Any thread may connect or destroy it. One other thread at a time may
 * launch and await operations on it (pcclAllReduceAsync, pcclAwaitAsyncReduce, and pcclAllReduce
 * and pcclAllReduceMultipleWithRetry, which do both); until it has awaited them all, the main
 * thread makes no call on the communicator but pcclArePeersPending and pcclGetAttribute. An
 * operation is awaited by the thread that started it. Each function below says which threads may
 * call it; a call that breaks these rules returns pcclInvalidUsage, changes nothing, and
 * pcclGetLastError names the rule. Different communicators of one process are independent of each
 * other and may be used by different threads, each of which connects its own. Functions that take
 * no communicator may be called by any thread. A process made by fork() must not use its parent's
 * communicators or memory of pcclMemAlloc; its calls are refused with pcclInvalidUsage until it has
 * called pcclInit, after which it can have its own.
 *
 * Waiting. Calls that need others wait until these make the same call: pcclUpdateTopology and
 * pcclArePeersPending for all accepted peers of the run, all-reduces and synchronizations for those
 * of the group. When peers wait in different calls, so that none of these can ever be complete, the
 * master answers: pcclUpdateTopology returns pcclSuccess with the topology as it is,
 * pcclArePeersPending says that nobody is pending, and the caller goes on to meet the others. So a
 * newcomer may begin with pcclUpdateTopology while the others reduce. When all peers of a group
 * wait in all-reduces and synchronizations that can never meet, all of these calls return
 * pcclInvalidUsage, and pcclGetLastError names who waits where. Buffers are as before. Operations
 * that are in flight and not awaited do not count as waiting.
 *
 * Values, names and layouts are those of the PCCL 1.0 binary interface, extended but never changed.
 */
#ifndef PCCL_H
#define PCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccoip.h"
#include "ccoip_inet.h"

/* Marks the functions that the shared library exports. */
#ifndef PCCL_EXPORT
#define PCCL_EXPORT __attribute__((visibility("default")))
#endif

/* Marks pointers that may be NULL. All others must not be. For readers; it has no effect. */
#ifndef PCCL_NULLABLE
#define PCCL_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------- results */

/* What became of a call, and what to do about it. */
typedef enum pcclResult_t {
	pcclSuccess = 0,
	/* Call pcclInit first. */
	pcclNotInitialized = 1,
	/* A fault that the caller cannot mend, or a function that this release does not have yet.
	 * pcclGetLastError says which. Nothing was changed. */
	pcclInternalError = 2,
	/* An argument is wrong; or the peers of a group called one operation (one tag) with
	 * different counts, types or operators. Correct the program. */
	pcclInvalidArgument = 3,
	/* The call is not allowed now: not connected, removed from the run, connected already,
	 * wrong thread, memory in use, refused by the master; or the peers wait for each other in
	 * calls that can never meet. Correct the program, or do as
	 * pcclGetLastError says; a peer that was removed may call pcclConnect. */
	pcclInvalidUsage = 4,
	/* The peer group has fewer than two peers. Call pcclUpdateTopology until others have
	 * joined, then repeat the step. */
	pcclTooFewPeers = 5,
	/* The master cannot be reached, or was lost for longer than the grace time; then calls
	 * return this until pcclConnect. Call that, later or with another communicator for another
	 * address. */
	pcclMasterConnectionFailed = 6,
	/* This host could not be connected with another peer's host. Check addresses and
	 * firewalls, call pcclConnect again. */
	pcclRankConnectionFailed = 7,
	/* A peer of the group died or left during the call, the agent of a peer's host was
	 * restarted in the middle of it, or this peer was removed from the run. Buffers are as
	 * before the call. Repeat the call. If it was this peer that was removed, the repeated call
	 * returns pcclInvalidUsage and pcclGetLastError gives the reason. */
	pcclRankConnectionLost = 8,
	/* No peer of the group has shared state to offer. Not returned by this release: a group in
	 * which nobody's contents may be elected is told so with pcclInvalidUsage. */
	pcclNoSharedStateAvailable = 9,
	/* Operations started with pcclAllReduceAsync are outstanding; nothing was changed. Await
	 * them and call again. */
	pcclPendingAsyncOps = 10,
	/* This peer was removed from the run. pcclConnect makes it a new one. */
	pcclUpdateTopologyFailed = 11,
	/* The same, of pcclOptimizeTopology. */
	pcclTopologyOptimizationFailed = 12,

	/* The codes below are extensions of the 1.0 set. */

	/* No agent answers at PCCL_AGENT_SOCKET (or the system's socket) and none could be started,
	 * or the agent went away and did not come back in time, or stands still. Start pcclagentd,
	 * or correct the variable. Communicators and memory stay valid; pcclMemAlloc and
	 * pcclConnect may be repeated, other calls after pcclConnect. */
	pcclAgentUnavailable = 64,
	/* Library, agent and master do not share a protocol version; pcclGetLastError names both.
	 * Install matching releases. */
	pcclVersionMismatch = 65,
	/* The agent's socket does not let this user in. Have the user admitted to its group, or
	 * name another agent's socket in PCCL_AGENT_SOCKET. */
	pcclPermissionDenied = 66,
	/* This process stood still while its session with the agent began, for longer than the
	 * agent waits for a greeting. The call may be repeated. Nothing that waits for other peers
	 * ends with it. */
	pcclTimeout = 67,
	/* Memory is exhausted, or the agent's limit for this user is reached. Free some, use
	 * smaller operations, or raise the limit. */
	pcclOutOfMemory = 68,
	/* pcclInterrupt ended the call. Buffers are as before, and this peer has left the run; end
	 * the program, or join again with pcclConnect. */
	pcclInterrupted = 69,

	pcclSystemError = pcclInternalError /* an older name */
} pcclResult_t;

/* --------------------------------------------------------------------------- types */

/*
 * Element types. These are the values of the released 1.0 library, which programs, bindings and
 * wheels are built with. An older listing without the half types had pcclFloat = 8 and
 * pcclDouble = 9; it must not be used.
 */
typedef enum pcclDataType_t {
	pcclUint8 = 0,
	pcclInt8 = 1,
	pcclInt16 = 2,
	pcclUint16 = 3,
	pcclUint32 = 4,
	pcclInt32 = 5,
	pcclUint64 = 6,
	pcclInt64 = 7,
	pcclFloat16 = 8,  /* IEEE 754 binary16 */
	pcclBFloat16 = 9, /* the upper half of a binary32 */
	pcclFloat = 10,   /* IEEE 754 binary32 */
	pcclDouble = 11   /* IEEE 754 binary64 */
} pcclDataType_t;

/* Where a tensor lies. */
typedef enum pcclDeviceType_t {
	pcclDeviceCpu = 0,
	pcclDeviceCuda = 1 /* refused when pcclBuildInfo_t says that there is no support */
} pcclDeviceType_t;

/* How elements are combined. All peers get the same bits, whatever the number of peers. pccl(7),
 * ARITHMETIC, has the rules. A NaN in any operand makes that element of the result NaN, with Max
 * and Min as well. */
typedef enum pcclRedOp_t {
	/* Integers wrap around. Half types are summed in binary32 and rounded at every host; a sum
	 * of pcclFloat16 above 65504 is infinite. The order of floating point sums is that of the
	 * ring, which depends on the order of joining: two runs can differ in the last bits. */
	pcclSum = 0,
	/* The sum, divided once by the number of peers whose data is in it. A sum that has wrapped
	 * or become infinite gives a wrong average. */
	pcclAvg = 1,
	pcclProd = 2,
	pcclMax = 3,
	pcclMin = 4
} pcclRedOp_t;

/* What an operation that fails leaves in a receive buffer. Send buffers, and buffers that are both,
 * are always as they were before it. Of ours. */
typedef enum pcclOutputPolicy_t {
	pcclOutputKept = 0,      /* what it held before */
	pcclOutputDisposable = 1 /* anything, if it is not the send buffer */
} pcclOutputPolicy_t;

/* What pcclGetAttribute can be asked. */
typedef enum pcclAttribute_t {
	PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE = 1,        /* accepted peers of the run */
	PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE = 2,    /* accepted peers of this one's group */
	PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS = 3, /* groups with at least one accepted peer */
	PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE = 4 /* accepted peers of the largest group */
} pcclAttribute_t;

/* The part that a peer takes in a synchronization of shared state. */
typedef enum pcclSharedStateSyncStrategy_t {
	/* Whatever most peers have is given to all. If one peer says this, all must: those that do
	 * not are removed from the run. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR = 0,
	/* This peer's contents are known to be wrong: they are never sent, never elected. Nor is
	 * what it has received sent on from here. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY = 1,
	/* This peer's contents are right: they are never overwritten. Peers that say so must agree
	 * with each other, or all of them are removed from the run; so is one that would have to
	 * receive because it is outdated. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY = 2
} pcclSharedStateSyncStrategy_t;

/* What the sender knows about the distribution of its values; a hint for quantization. */
typedef enum pcclDistributionHint_t {
	pcclDistributionNone = 0,
	pcclDistributionNormal = 1,
	pcclDistributionUniform = 2,

	PCCL_DISTRIBUTION_HINT_NONE = pcclDistributionNone, /* the same, by their older names */
	PCCL_NORMAL_DISTRIBUTION_HINT = pcclDistributionNormal,
	PCCL_UNIFORM_DISTRIBUTION_HINT = pcclDistributionUniform
} pcclDistributionHint_t;

/*
 * How values are compressed on the network. This release carries out pcclQuantNone; the others are
 * refused with pcclInternalError. Values from 64 are reserved for extensions of this library.
 */
typedef enum pcclQuantizationAlgorithm_t {
	pcclQuantNone = 0,
	pcclQuantMinMax = 1,
	pcclQuantZeroPointScale = 2
} pcclQuantizationAlgorithm_t;

/* A communicator: one peer's place in a run. Made by pcclCreateCommunicator. */
typedef struct pcclComm_t pcclComm_t;

/* Reserved; no function of this release uses it. */
typedef struct pcclRankInfo_t pcclRankInfo_t;

/* A master that this process runs. Made by pcclCreateMaster. */
typedef struct pcclMasterInstanceState_t pcclMasterInstance_t;

/* The identifier that the master gave to a peer. */
typedef struct pcclRankUuid_t {
	uint8_t data[16];
} pcclRankUuid_t;

/* What the library was built with. */
typedef struct pcclBuildInfo_t {
	bool has_cuda_support; /* tensors may lie in the memory of a CUDA device */
} pcclBuildInfo_t;

/* How a communicator is to be made. */
typedef struct pcclCommCreateParams_t {
	/* Where the master listens. */
	ccoip_socket_address_t master_address;
	/* Peers with equal numbers reduce and synchronize among themselves. 0 if there is only one
	 * group. */
	uint32_t peer_group;
	/* TCP streams per link to another host. One operation uses all of them. 0 means 1. Where a
	 * round trip takes 5 ms or more a link has at least four. Each link has one more, for small
	 * operations. */
	uint32_t p2p_connection_pool_size;
} pcclCommCreateParams_t;

/* What an all-reduce did. */
typedef struct pcclReduceInfo_t {
	uint32_t local_world_size; /* peers of the group whose data is in the result */
	uint64_t tx_bytes;         /* bytes that this host sent for the operation, with the
				    * library's own headers, without those of TCP */
	uint64_t rx_bytes;         /* bytes that it received for it, likewise; both are 0 when
				    * all peers of the group run on one host, and when the agent died
				    * at the end of the operation: only it knew */
} pcclReduceInfo_t;

/* What the operand is. */
typedef struct pcclReduceOperandDescriptor_t {
	pcclDataType_t datatype; /* of the elements of both buffers */
	pcclDistributionHint_t distribution_hint;
} pcclReduceOperandDescriptor_t;

/* How the operand is compressed on its way. {0} for not at all. */
typedef struct pcclQuantizationOptions_t {
	pcclDataType_t quantized_datatype; /* type on the network; ignored with pcclQuantNone */
	pcclQuantizationAlgorithm_t algorithm;
} pcclQuantizationOptions_t;

/* One all-reduce. All peers of the group must give the same values, the hint excepted. */
typedef struct pcclReduceDescriptor_t {
	size_t count; /* elements in each of the two buffers; 0: done at once, which no
		       * other peer hears of */
	pcclRedOp_t op;
	uint64_t tag; /* names the operation; peers meet by it, and it must differ from the tags of
		       * all operations in flight on this communicator */
	pcclReduceOperandDescriptor_t src_descriptor;
	pcclQuantizationOptions_t quantization_options;
} pcclReduceDescriptor_t;

/* One of several all-reduces. */
typedef struct pcclReduceSingleDescriptor_t {
	void *sendbuf; /* as the arguments of pcclAllReduce */
	void *recvbuf;
	pcclReduceDescriptor_t descriptor;
} pcclReduceSingleDescriptor_t;

typedef pcclReduceSingleDescriptor_t pcclReduceOpDescriptor_t; /* an older name */

/* An operation in flight. A plain value: it may be copied, and there is nothing to free. */
typedef struct pcclAsyncReduceOp_t {
	pcclComm_t *comm; /* the communicator that it was started on */
	uint64_t tag;     /* the tag that it was started with */
} pcclAsyncReduceOp_t;

/* One tensor of the shared state. Everything it points to stays the caller's. */
typedef struct pcclTensorInfo_t {
	const char *name; /* key, NUL-terminated, unique within the state, at most 1,024 bytes */
	void *data;       /* count elements */
	size_t count;     /* elements */
	pcclDataType_t datatype;
	pcclDeviceType_t device_type;
	bool allow_content_inequality; /* the contents need not be equal on all peers */
} pcclTensorInfo_t;

/* The shared state of one peer. */
typedef struct pcclSharedState_t {
	uint64_t revision; /* one more than at the last synchronization of the group */
	size_t count;      /* tensors in infos */
	pcclTensorInfo_t *infos;
} pcclSharedState_t;

/* What a synchronization moved: bytes of tensor contents alone, whether they crossed the network or
 * not. Both are 0 when the agent died at the end of it: only it knew. */
typedef struct pcclSharedStateSyncInfo_t {
	uint64_t tx_bytes; /* of this peer's tensors that others got; what several peers of another
			    * host lack is sent to it, and counts, once */
	uint64_t rx_bytes; /* written into this peer's tensors */
} pcclSharedStateSyncInfo_t;

/* ------------------------------------------------------------------ library, errors */

/*
 * Makes the library ready. Must be called once per process before anything else; more calls do
 * nothing. Opens no connection. Any thread.
 * Returns pcclSuccess or pcclInternalError (the operating system refused something basic).
 */
PCCL_EXPORT pcclResult_t pcclInit(void);

/*
 * The same, and from then on functions return the codes from 64 on in this process. Without it, as
 * in programs and bindings made for PCCL 1.0, which do not know them, the nearest code of 1.0 is
 * returned instead: pcclInternalError for pcclOutOfMemory, pcclMasterConnectionFailed for the
 * others; pcclGetLastError says the same in both cases. This header makes pcclInit a name of it,
 * unless PCCL_1_0_CODES is defined before.
 */
PCCL_EXPORT pcclResult_t pcclInitExtended(void);
#ifndef PCCL_1_0_CODES
#define pcclInit pcclInitExtended
#endif

/* Tells what the library was built with. Works before pcclInit. Any thread. */
PCCL_EXPORT pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info);

/* The release of the library in use, such as "0.1.0". Static storage. Any thread, any time. */
PCCL_EXPORT const char *pcclGetVersion(void);

/*
 * A short description of a result code. Static storage, never NULL: a number that is no code gives
 * a text that says so. Any thread, any time.
 */
PCCL_EXPORT const char *pcclGetErrorString(pcclResult_t result);

/*
 * A sentence about this thread's last call of a pccl function: what failed and what to do about
 * it; the empty string if it succeeded. Never NULL. The text is the library's and is valid until
 * this thread's next call of a function that returns pcclResult_t. Any thread, any time.
 */
PCCL_EXPORT const char *pcclGetLastError(void);

/* --------------------------------------------------------------------------- memory */

/*
 * Allocates memory that is shared with the agent. An all-reduce whose buffers lie in such memory,
 * anywhere in it, is carried out without copying between the process and the agent, and so is a
 * synchronization of tensors there; any other memory works too and is copied.
 *
 * size: bytes, at least 1.
 * ptr_out: receives the address, aligned to a page; the memory is zero-filled. It is the caller's
 * until pcclMemFree. It counts against the agent's limit for this user.
 *
 * Any thread.
 *
 * pcclInvalidUsage  PCCL_AGENT_GRACE_MS is no number of milliseconds
 * pcclVersionMismatch, pcclPermissionDenied, pcclTimeout
 */
PCCL_EXPORT pcclResult_t pcclMemAlloc(size_t size, void **ptr_out);

/*
 * Frees memory of pcclMemAlloc; NULL is allowed and does nothing. Any thread.
 *
 * pcclInvalidArgument  ptr did not come from pcclMemAlloc, or was freed before
 * pcclInvalidUsage     an operation in flight uses the memory: await it first
 */
PCCL_EXPORT pcclResult_t pcclMemFree(void *PCCL_NULLABLE ptr);

/* --------------------------------------------------------------------- communicators */

/*
 * Makes a communicator. Does not connect it: no network, no waiting. Any thread.
 *
 * params: read during the call only.
 * comm_out: receives the communicator, to be destroyed with pcclDestroyCommunicator.
 */
PCCL_EXPORT pcclResult_t pcclCreateCommunicator(
	const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/*
 * Leaves the run, if connected, and frees the communicator. Blocks until everything that belongs to
 * it has ended; operations in flight are given up and their buffers are the caller's again, with
 * the contents they had before. Other peers see pcclRankConnectionLost where they were waiting for
 * this one. The pointer is invalid after success. Any thread.
 *
 * pcclInvalidUsage  another thread is in a call on the communicator: nothing was changed
 */
PCCL_EXPORT pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator);

/*
 * Joins the run of the master named at creation. The first peer of a fresh run is accepted at once;
 * a later one waits, for as long as that takes, until the accepted peers call pcclUpdateTopology.
 * What is bounded is the time in which nobody is there: connect_timeout_ms of the agent to reach a
 * master, master_grace_ms of the agent and PCCL_AGENT_GRACE_MS when master or agent die meanwhile.
 * Any thread, which is the main thread from then on.
 *
 * pcclMasterConnectionFailed  no master answers at the address, or none took over in time
 * pcclRankConnectionFailed    the peers of the run and this one could not be connected
 * pcclOutOfMemory             a process has reached a limit of its system: the text says which
 * pcclInvalidUsage            connected already, the master refused this peer, operations of an
 *                             earlier connection have not been awaited, or another communicator
 *                             of this thread is a peer of the run, which would have to vote: use a
 *                             thread for each
 * pcclVersionMismatch, pcclPermissionDenied, pcclTimeout
 * After a failure the communicator is as before and pcclConnect may be called again.
 */
PCCL_EXPORT pcclResult_t pcclConnect(pcclComm_t *communicator);

/*
 * Ends the call that is blocked on the communicator, within a tenth of a second, or half a second
 * if the agent stands still: it returns pcclInterrupted, its buffers are as before, and this peer
 * has left the run as with pcclDestroyCommunicator. An operation that is under way with memory of
 * pcclMemAlloc waits for an agent that stands still, which may use that memory, as long as any
 * call: PCCL_AGENT_GRACE_MS. Operations in flight end with it and are still to be awaited; then
 * pcclConnect joins again. A call whose result came first returns that. If no call is blocked, the
 * next one that has to wait is ended. A call that fails while it is interrupted has ended for the
 * interrupt. Returns at once. May be called from a signal handler and from any thread, and leaves
 * the text of pcclGetLastError alone.
 *
 * pcclInvalidArgument  the pointer is NULL, or not a communicator
 * pcclInvalidUsage     the communicator belongs to the process that this one was forked from
 */
PCCL_EXPORT pcclResult_t pcclInterrupt(pcclComm_t *communicator);

/*
 * Chooses what operations that are started on this communicator from now on may leave in their
 * receive buffers when they fail. Without this call that is pcclOutputKept: old contents are kept
 * until the end, which takes as much memory as the buffer has. With pcclOutputDisposable, where the
 * receive buffers of all peers of a host lie in memory of pcclMemAlloc, are not the send buffers
 * and may be disposed of, results are written there at once and nothing is kept. Peers of a group
 * may choose differently. Any thread.
 *
 * pcclInvalidArgument  also: there is no such policy
 * pcclInvalidUsage     the communicator belongs to the process that this one was forked from
 */
PCCL_EXPORT pcclResult_t pcclSetOutputPolicy(pcclComm_t *communicator, pcclOutputPolicy_t policy);

/*
 * Reads an attribute as of the end of the last call on this communicator. Every call that involves
 * other peers may change the values, nothing does in between, and all who have made the same call
 * see the same after it. Does not block. A thread that awaits operations sees values as of its
 * last await, or of a later end that it was told of before; what another thread sees may be older.
 * Any thread.
 *
 * pcclInvalidUsage  not connected, or not part of the run any more, as an earlier call has said
 * pcclMasterConnectionFailed, pcclAgentUnavailable: as an earlier call has said
 */
PCCL_EXPORT pcclResult_t pcclGetAttribute(
	const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out);

/* -------------------------------------------------------------------------- topology */

/*
 * Votes to let waiting newcomers in, and has peers that are gone removed from the ring. Blocks
 * until all accepted peers of the run, of every group, have called it; then all return together.
 * While another peer waits in a call that needs this one, it returns at once, and nothing has
 * changed. Typically called once per training step, at a place that all peers come to. Main thread.
 *
 * pcclPendingAsyncOps       await outstanding operations first; no vote was given
 * pcclUpdateTopologyFailed  this peer was removed from the run: pcclConnect makes it a new one.
 *                           The first topology call after the removal says so
 * pcclInvalidUsage          not connected, not the main thread, or removed, as said before
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclUpdateTopology(pcclComm_t *communicator);

/*
 * Asks whether newcomers are waiting, in which case pcclUpdateTopology should be called soon; all
 * peers get the same answer. Blocks until all accepted peers have called it. While another one
 * waits in an operation that needs this one, the answer is false: nobody can be let in before that
 * operation. While the others wait in pcclUpdateTopology, it says what is true. A peer that begins
 * to wait just after the answer is seen by the next call, and one that cannot be reached is never
 * pending: agents find that out beforehand, beside everything else. Main thread; also while
 * operations of this or of another thread are in flight.
 *
 * peers_pending_out: receives the answer.
 *
 * pcclInvalidUsage  not connected, or not the main thread
 * pcclRankConnectionLost    this peer was removed from the run
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclArePeersPending(
	const pcclComm_t *communicator, bool *peers_pending_out);

/* The same function by its older name. */
PCCL_EXPORT pcclResult_t pcclAreNewPeersPending(
	const pcclComm_t *communicator, bool *new_peers_pending_out);

/*
 * Has the links between peers measured where that is missing, and the ring put in a better order.
 * Blocks until all accepted peers have called it and adopted the order. Main thread.
 *
 * In this release nothing is measured, and the ring stays as it is. The vote is that of
 * pcclUpdateTopology: peers may call either, and newcomers that wait are let in.
 *
 * pcclInvalidUsage                fewer than two peers in the run, not connected, or not the main
 *                                 thread
 * pcclPendingAsyncOps             await outstanding operations first
 * pcclTopologyOptimizationFailed  this peer was removed from the run
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator);

/* ----------------------------------------------------------------- collective operations */

/*
 * Combines the buffers of all peers of the group, element by element, and gives the same result,
 * bit for bit, to all. Blocks until all have the result, or the operation has failed for all. It is
 * pcclAllReduceAsync and pcclAwaitAsyncReduce in one, and may be called by the same threads.
 *
 * sendbuff: descriptor->count elements of this peer, naturally aligned. Never written, unless it is
 * also recvbuff.
 * recvbuff: receives the result, as many elements. Equal to sendbuff to reduce in place, otherwise
 * the two must not overlap.
 * descriptor: read during the call only.
 * reduce_info_out: NULL, or receives what was done. Written on success only.
 *
 * If the call fails, both buffers have the contents they had before it, if pcclSetOutputPolicy has
 * not said otherwise of recvbuff.
 *
 * pcclTooFewPeers         alone in the group: pcclUpdateTopology until others have joined
 * pcclRankConnectionLost  a peer was lost: call again, with the same arguments; the ring is smaller
 *                         then
 * pcclInvalidArgument     also: an operation with this tag is in flight, or the peers gave
 *                         different counts, types or operators for it (all of them get this code).
 *                         Wrong arguments are a call all the same, unless the descriptor is NULL or
 *                         its count 0: it waits for the others and ends so for all
 * pcclInvalidUsage        not connected, this peer is not part of the run any more, as an earlier
 *                         call has said, or a thread made the call that may not (see
 *                         pcclAllReduceAsync)
 * pcclOutOfMemory         one of the peers, or its agent, has no memory for the operation: the call
 *                         ends so for all peers, and pcclGetLastError names the host and the limit.
 *                         Nobody is lost; to call again helps when there is more memory
 * pcclInternalError       also: quantization is not in this release; or the agent of one of the
 *                         peers has died twice in a row while it carried this out
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/*
 * Starts an all-reduce and returns at once. Arguments are those of pcclAllReduce. The buffers must
 * neither be written nor freed, and recvbuff not read, until pcclAwaitAsyncReduce has returned for
 * the operation: a thread of the library copies a large sendbuff meanwhile. Peers may start their
 * operations in different orders.
 *
 * reduce_handle_out: receives the handle to await. Each operation that was started must be awaited,
 * once.
 *
 * 60 operations of a communicator are carried out at the same time. What is started beyond them
 * waits and follows in the order of the calls, while the thread that started it starts or awaits
 * operations. A call that waits for room waits for any of the 60, and ends like other calls that
 * can never meet when none of these can end.
 *
 * Threads: the main thread, or another one while the main thread makes no call on the communicator
 * but pcclArePeersPending and pcclGetAttribute. The thread that starts operations awaits them, and
 * until it has, no other one starts any.
 *
 * Errors are those of pcclAllReduce, here or when awaiting; a lost peer is seen there.
 * pcclInvalidUsage  also: operations of another thread are in flight; or the main thread is in a
 *                   call that bears none
 */
PCCL_EXPORT pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out);

/*
 * Waits until an operation has ended. Must be called by the thread that started it. The handle is
 * used up, whatever is returned, except where noted. Outputs and errors are those of pcclAllReduce;
 * when one of several operations is lost, await all of them before repeating any.
 *
 * pcclInvalidArgument  also: no such operation is in flight
 * pcclInvalidUsage     also: another thread started it; it is in flight still
 */
PCCL_EXPORT pcclResult_t pcclAwaitAsyncReduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/*
 * Carries out several all-reduces, up to max_in_flight at the same time, begun in the order of
 * their descriptors. When one is lost (pcclRankConnectionLost), those under way are awaited, and
 * what failed is repeated, in order again, until all have succeeded. All peers of the group must
 * call it with the same descriptors in the same order; they cannot get stuck over a loss that they
 * see at different moments. Operations may have been done with different numbers of peers if some
 * were lost on the way. May be called by the threads that may call pcclAllReduceAsync.
 *
 * descriptors: count of them, with distinct tags; read during the call only. A sentence about one
 * of them begins with its index. reduce_info_out: NULL, or receives the bytes of all operations
 * together, and the number of peers in the one that was awaited last, which is only a hint. Written
 * on success only. max_in_flight: at least 1; more than 64 (or what the caller's own operations in
 * flight leave of that) means as many.
 *
 * Any other error ends it, after everything under way was awaited; but what the peers disagree on
 * (pcclInvalidArgument), or one of them cannot take part in (pcclOutOfMemory, pcclInternalError),
 * only fails itself, and the rest is carried out. The first error in the
 * order of awaiting is returned. Then some operations may have been completed, and these have their
 * results; the buffers of all others are as before.
 *
 * A table that is wrong as a whole (a tag twice, max_in_flight below 1, no memory for it) is an
 * error for all: this peer takes part in each of its operations without carrying it out, so that it
 * ends for all of them with the code and sentence that this call returns, and waits for them. The
 * others' sentence names this process. The exception is descriptors that are NULL, which nobody
 * else hears of. An operation whose tag another one of this peer has in flight is left out.
 *
 * pcclTooFewPeers      this peer is alone in its group
 * pcclInvalidUsage     also: this peer was removed from the run; pcclGetLastError gives the reason
 * pcclInvalidArgument  also: two descriptors have the same tag, max_in_flight is below 1; then no
 *                      operation was carried out
 * pcclOutOfMemory      also: none for count operations; likewise
 * and otherwise those of pcclAllReduce, apart from pcclRankConnectionLost
 */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out, int max_in_flight);

/* ---------------------------------------------------------------------- shared state */

/*
 * Makes the shared state equal on all peers of the group: compares it by hashes, elects whose
 * contents count, and has those that differ sent to whoever lacks them, straight into the tensors,
 * every 65,536 bytes verified. Only what differs is sent. Blocks until all peers of the group have
 * called it and are equal. Main thread; no operation in flight. A peer may be alone in its group.
 *
 * shared_state: revision and tensors of this peer, in any order of names, which with types, counts
 * and flags must be the same on all peers. At most 1,048,576 tensors and 2^48 bytes in all; a
 * tensor may be empty (count 0, data may be NULL then). Tensors are the caller's, must not be
 * touched during the call, and may lie in memory of pcclMemAlloc, which saves copying. Those that
 * allow_content_inequality are compared by name, type, count and flag alone and never sent.
 * revision must be the one that the group expects: one more than that of its last synchronization,
 * and any number (but 2^64 - 1) at the first one. A peer that offers less is outdated: it gets the
 * contents of those that are not, and revision is set to the group's. One that offers more is
 * removed from the run.
 * strategy: the part that this peer takes, see pcclSharedStateSyncStrategy_t. Among peers that
 * enforce what is popular the contents that most of them have are elected; peers that are outdated
 * or receive only are not counted. Peers that send only must offer equal contents, which are
 * elected.
 * sync_info_out: NULL, or receives the bytes that were moved, 0 when the peers were equal. Written
 * on success only.
 *
 * On success revision is what the group has agreed on, and every tensor that is compared was
 * verified. If the call fails, revision is as before; tensors of a peer that did not say send-only
 * may have been overwritten in part, in which case pcclGetLastError says so. The call may then be
 * made again with the same arguments: what was received already is not sent again.
 *
 * Tensors written in part are a mixture of two states, and not elected: the peer is treated as
 * outdated, whatever its strategy. Neither another revision nor a new connection, a new
 * communicator, other memory or a run that begins anew makes a state of it, as long as the contents
 * are those that the failed call has left: this process remembers their hash. A mixture ends with a
 * call that succeeds. An application that has replaced all tensors itself, by a checkpoint's, says
 * so by another revision (higher or lower) or by a new communicator: then the mark goes.
 *
 * Tensors are hashed by all CPUs that the calling thread may use, in threads that exist during the
 * call only. Environment: PCCL_HASH_TYPE may be simple or crc32c, which needs the library ISA-L; it
 * must be the same for all peers. Without it the agent's setting hash_type counts, which is simple
 * unless it was changed.
 *
 * pcclInvalidArgument     also: a name is NULL, empty, longer than 1,024 bytes or there twice, a
 *                         type or count is out of range; the sentence names the tensor. Nothing was
 *                         changed, and the call ends so for all peers of the group
 * pcclInvalidUsage        the peer was removed from the run: its revision is ahead of the group's
 *                         (REVISION_INCREMENT_VIOLATION); its tensors differ in name, type, count
 *                         or flag from the elected ones, or its hash type does; peers enforce what
 *                         is popular, and this one says otherwise; it sends only and would have to
 *                         receive; what it needs could not be had, or not verified; or nobody's
 *                         contents may be elected, because all are outdated, mixtures or receive
 *                         only, which removes all of the group. Also: not connected, not the main
 *                         thread, PCCL_HASH_TYPE is wrong
 * pcclPendingAsyncOps     await outstanding operations first; nothing was changed
 * pcclRankConnectionLost  all who had what was elected were lost, or the agent of a peer's host was
 *                         restarted: call again. Any other loss ends nothing: the election is among
 *                         those who are left, or the others go on, and the next call of each tells
 *                         of a loss that came after the election
 * pcclInternalError       also: tensors on CUDA devices are not in this release
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator,
	pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
	pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out);

/* ---------------------------------------------------------------------------- master */

/*
 * A master of one's own, for tests and small runs; ccoip-masterd is the same as a program. It runs
 * as a child process on a socket that this process opened. The order of calls is create, run,
 * interrupt, await termination, destroy. Any thread; pcclInit is not needed.
 * A handle belongs to the process that made it: in one that was forked from it, all these calls
 * return pcclInvalidUsage.
 */

/*
 * Opens the listening socket. If an outgoing connection of this host has the port, it waits for up
 * to 10 s.
 *
 * listen_address: the local address and port; 0.0.0.0 or :: for all of the host.
 * p_master_handle_out: receives the handle, to be freed with pcclDestroyMaster.
 *
 * pcclInvalidUsage  the address is in use, or not one of this host, or this user may not open its
 *                   port
 * pcclOutOfMemory   this process may open no more files, or the like: the text names the limit
 */
PCCL_EXPORT pcclResult_t pcclCreateMaster(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out);

/*
 * Starts the master and returns; peers can connect from now on. A master that was interrupted
 * before is not started, and has ended.
 *
 * pcclInvalidArgument  it is running already, or has been
 * pcclInternalError    the program ccoip-masterd cannot be started
 * pcclOutOfMemory      this process may have no more processes, open files, or the like: the text
 *                      names the limit; call again when it is raised
 */
PCCL_EXPORT pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance);

/*
 * Ends the master and its run: within a second its peers' calls return pcclMasterConnectionFailed,
 * "the master was told to end". A host that has no connection just then is told when it comes back
 * within two seconds; otherwise its peers wait for another master, as after the master's death.
 * Returns at once; pcclMasterAwaitTermination waits for the end. May be called from a signal
 * handler, also before and during pcclRunMaster, and leaves the text of pcclGetLastError alone.
 *
 * pcclInvalidArgument  no master, or one that has ended
 */
PCCL_EXPORT pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance);

/*
 * Blocks until the master has ended: it was interrupted, or died by itself.
 *
 * pcclInternalError    it has ended, but with an error
 * pcclInvalidArgument  it was never started
 */
PCCL_EXPORT pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance);

/*
 * Frees the handle, which is invalid afterwards.
 *
 * pcclInvalidUsage  the master has been started and pcclMasterAwaitTermination has not returned;
 *                   the handle stays valid
 */
PCCL_EXPORT pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance);

#ifdef __cplusplus
}
#endif

#endif
