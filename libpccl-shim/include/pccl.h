/* SPDX-License-Identifier: MIT
 *
 * Collective communication over TCP for training jobs whose members come and go.
 *
 * A *peer* is a connected communicator. All peers that connected to one master form a *run*; peers
 * with the same peer group number reduce and synchronize with each other. Peers may join, leave
 * and die at any time: calls of the others return a result code, and the others repeat the call
 * that failed.
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
 *		apply(gradients);                     // unchanged if this peer is alone
 *	}
 *	pcclDestroyCommunicator(comm);
 *
 * The host's agent, pcclagentd, does all network traffic. The library talks to it over a local
 * socket and shared memory. Environment: PCCL_AGENT_SOCKET names the agent's socket; the default is
 * the socket of the system's agent. If no agent is running, the library starts a private one for
 * this user, unless PCCL_AGENT_AUTOSPAWN is 0. The private agent reads two variables of the process
 * that started it: PCCL_ADVERTISE, the addresses at which other hosts reach it, and
 * PCCL_INTERFACES, the interfaces to use. PCCL_AGENTD and PCCL_MASTERD name the programs to start
 * if they are not where they were installed. pcclSynchronizeSharedState reads PCCL_HASH_TYPE.
 * PCCL_LOG_LEVEL applies to pcclRunMaster, to a private agent, and to the progress of
 * pcclOptimizeTopology, which is logged with INFO, DEBUG or TRACE.
 *
 * The death or restart of an agent does not end the run. A thread of the library notices it, waits
 * for the next agent, and presents the process's communicators and memory there. Connected
 * communicators stay the same peers. Operations in flight at that moment return
 * pcclRankConnectionLost, unless their whole result was already in this process and all other peers
 * have it. Every other call waits and then continues. If no agent comes back within
 * PCCL_AGENT_LEASE_MS milliseconds (default 30000; 0 means no waiting), or if an agent does not
 * answer for this time, calls return pcclAgentUnavailable until pcclConnect has joined the run
 * again. pcclConnect and pcclMemAlloc read the variable. If the process has no connected
 * communicator, pcclConnect and pcclMemAlloc themselves wait for the next agent, for this time at
 * most. They do not wait if the process has not reached any agent yet, or has already waited for an
 * agent without success. Functions that free memory or a communicator do not wait for the next
 * agent. The thread of the library that waits for agents blocks all signals except those of faults.
 *
 * A communicator can stop being a peer: it was removed from the run, or lost the master for good.
 * Then the calls under way, or else the next call of any function, return pcclRankConnectionLost
 * or the code that names the reason. Later calls on it return pcclInvalidUsage with the same
 * sentence, so that programs which repeat lost calls stop repeating them.
 * pcclMasterConnectionFailed and pcclAgentUnavailable do not change to pcclInvalidUsage, because
 * programs do not repeat a call that has returned one of these codes. pcclConnect joins the run
 * again.
 *
 * Results. Every function that can fail returns a pcclResult_t. Outputs are written only on
 * success, unless a function states otherwise. pcclGetLastError returns a sentence that says what
 * failed and what to do about it. Any function may return these codes; they are not repeated below:
 *	pcclNotInitialized     pcclInit has not succeeded in this process
 *	pcclInvalidArgument    a pointer that must not be NULL is NULL, or a value is out of range
 *	pcclInternalError      neither the caller nor the network is at fault; please report it
 *	pcclOutOfMemory        memory is exhausted, or the agent's limit for this user is reached
 *	pcclAgentUnavailable   the agent cannot be reached (see the code's description)
 *	pcclInterrupted        pcclInterrupt has ended the call while it waited
 *
 * Threads. A communicator belongs to its main thread. This is the thread that connected it, or,
 * before the first pcclConnect, the thread that created it. Any thread may connect or destroy it.
 * One other thread at a time may start and await operations on it (pcclAllReduceAsync,
 * pcclAwaitAsyncReduce, and pcclAllReduce and pcclAllReduceMultipleWithRetry, which do both). Until
 * that thread has awaited all of its operations, the main thread may only call pcclArePeersPending
 * and pcclGetAttribute on the communicator. The thread that started an operation awaits it. Each
 * function below names the threads that may call it. A call that breaks these rules returns
 * pcclInvalidUsage and changes nothing; pcclGetLastError names the rule. Different communicators of
 * one process are independent of each other; different threads may use them if each connects its
 * own. Any thread may call functions that take no communicator. A process created by fork() must
 * not use its parent's communicators or memory of pcclMemAlloc. Its calls return pcclInvalidUsage
 * until it has called pcclInit; after that it can create its own.
 *
 * Memory of CUDA devices. Buffers of all-reduces, and tensors with the device_type pcclDeviceCuda,
 * may lie in the memory of any CUDA device, if has_cuda_support of pcclBuildInfo_t is true. Several
 * devices per process and different kinds of memory on different peers are fine. The library finds
 * the device of a buffer by its address. It copies through host memory, in pieces, on two streams
 * of its own in the context to which the memory belongs, while other pieces are on the network. In
 * the agent there is no CUDA.
 *  - Order. A call works on a device after the work that was queued there before the call: the work
 *    in the legacy default stream of the context, or in the stream of pcclSetStream. That includes
 *    streams that the legacy default stream waits for, which are all streams not made with
 *    cudaStreamNonBlocking. When the call that ends the operation returns, the result is in place,
 *    and any work that is queued afterwards sees it. No call may be made while a graph is being
 *    captured.
 *  - Kinds. Memory of cudaMalloc and its relatives, of cudaMallocAsync and of virtual memory
 *    management is memory of a device, and so is managed memory (cudaMallocManaged), which is
 *    copied in the same order. Host memory that is registered with CUDA (cudaMallocHost,
 *    cudaHostRegister) is host memory: the program itself waits for the device before the call.
 *  - Errors. If the driver reports an error before the operation has begun, the call fails with
 *    pcclInternalError for all peers, and nobody is lost. If it reports an error later, and the
 *    other peers would wait for this one, this peer is removed from the run: its calls return
 *    pcclInternalError, those of the others pcclRankConnectionLost. pcclGetLastError names the
 *    function of the driver, its error, the buffer and the device. After an error that CUDA keeps
 *    for a context, each call with memory of this context fails in this way; other memory works. A
 *    result that is not complete is never reported as a success. Old contents of recvbuff are
 *    restored unless the driver refuses; then the sentence says that they could not be restored.
 *  - A process that does not use CUDA loads nothing of it. The library opens the driver
 *    (libcuda.so.1) when a tensor has the type pcclDeviceCuda, or when the process has loaded it.
 *
 * Waiting. A call that needs other peers waits until they make the same call. pcclUpdateTopology
 * and pcclArePeersPending wait for all accepted peers of the run. All-reduces and synchronizations
 * wait for all accepted peers of the group. If peers wait in different calls and none of these
 * calls can ever be complete, the master answers: pcclUpdateTopology returns pcclSuccess with the
 * topology unchanged, and pcclArePeersPending returns that no peer is pending. The caller then
 * continues and meets the others. So a newcomer may begin with pcclUpdateTopology while the others
 * reduce. If all peers of a group wait in all-reduces and synchronizations that can never meet, all
 * of these calls return pcclInvalidUsage, and pcclGetLastError names which peer waits in which
 * call. Buffers are as before. A peer does not count as waiting for an operation in flight as long
 * as it does not await the operation.
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

/* Marks pointers that may be NULL. All other pointers must not be NULL. The mark is for readers and
 * has no effect. */
#ifndef PCCL_NULLABLE
#define PCCL_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------- results */

/* The result of a call, with advice for each error. */
typedef enum pcclResult_t {
	pcclSuccess = 0,
	/* Call pcclInit first. */
	pcclNotInitialized = 1,
	/* An error that the caller cannot correct, or a function that this release does not have
	 * yet. pcclGetLastError names it. Nothing was changed. */
	pcclInternalError = 2,
	/* An argument is wrong; or the peers of a group called one operation (one tag) with
	 * different counts, types or operators. Correct the program. */
	pcclInvalidArgument = 3,
	/* The call is not allowed now: not connected, removed from the run, connected already,
	 * wrong thread, memory in use, refused by the master; or the peers wait for each other in
	 * calls that can never meet. Correct the program, or follow the text of pcclGetLastError. A
	 * peer that was removed may call pcclConnect. */
	pcclInvalidUsage = 4,
	/* The peer group has fewer than two peers. Call pcclUpdateTopology until others have
	 * joined, then repeat the step. */
	pcclTooFewPeers = 5,
	/* The master cannot be reached, or was gone for longer than master_lease_ms of the agent.
	 * In the second case calls return this code until pcclConnect succeeds. Call pcclConnect
	 * later, or connect a communicator with the address of another master. */
	pcclMasterConnectionFailed = 6,
	/* This host and another peer's host could not be connected. Check addresses and firewalls,
	 * then call pcclConnect again. */
	pcclRankConnectionFailed = 7,
	/* A peer of the group died or left during the call, the agent of a peer's host was
	 * restarted during the call, or this peer was removed from the run. Buffers are as
	 * before the call. Repeat the call. If this peer itself was removed, the repeated call
	 * returns pcclInvalidUsage and pcclGetLastError gives the reason. */
	pcclRankConnectionLost = 8,
	/* No peer of the group has shared state that can be elected. This release does not return
	 * this code: the peers of such a group get pcclInvalidUsage. */
	pcclNoSharedStateAvailable = 9,
	/* Operations started with pcclAllReduceAsync are outstanding; nothing was changed. Await
	 * them and call again. */
	pcclPendingAsyncOps = 10,
	/* This peer was removed from the run. pcclConnect makes it a new peer. */
	pcclUpdateTopologyFailed = 11,
	/* pcclOptimizeTopology has failed for all peers, and the rings are as before: repeat it. Or
	 * this peer was removed from the run: then the repeated call returns pcclInvalidUsage, and
	 * pcclConnect makes it a new peer. */
	pcclTopologyOptimizationFailed = 12,

	/* The codes below are extensions of the 1.0 set. */

	/* No agent answers at PCCL_AGENT_SOCKET (or the system's socket) and none could be started,
	 * or the agent is gone and no agent came back in time, or the agent does not respond. Start
	 * pcclagentd, or correct the variable. Communicators and memory stay valid. pcclMemAlloc
	 * and pcclConnect may be repeated at any time, other calls after pcclConnect has
	 * succeeded. */
	pcclAgentUnavailable = 64,
	/* Library, agent and master do not share a protocol version; pcclGetLastError names both
	 * versions. Install matching releases. */
	pcclVersionMismatch = 65,
	/* This user may not use the agent's socket. Have the user added to the socket's group, or
	 * name another agent's socket in PCCL_AGENT_SOCKET. */
	pcclPermissionDenied = 66,
	/* While this process opened its session with the agent, it was suspended for longer than
	 * the agent waits for a hello. The call may be repeated. No call that waits for other peers
	 * ends with this code. */
	pcclTimeout = 67,
	/* Memory is exhausted, or the agent's limit for this user is reached. Free memory, use
	 * smaller operations, or raise the limit. */
	pcclOutOfMemory = 68,
	/* pcclInterrupt ended the call. Buffers are as before, and this peer has left the run. End
	 * the program, or join again with pcclConnect. */
	pcclInterrupted = 69,

	pcclSystemError = pcclInternalError /* an older name */
} pcclResult_t;

/* --------------------------------------------------------------------------- types */

/*
 * Element types. These are the values of the released 1.0 library; programs, bindings and wheels
 * are built with them. An older listing without the half types had pcclFloat = 8 and
 * pcclDouble = 9; do not use it.
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
	pcclDouble = 11,  /* IEEE 754 binary64 */

	/* Types that exist only on the network, as quantized_datatype of pcclQuantBlockwise.
	 * Extensions to PCCL 1.0. */
	pcclInt4 = 64,
	pcclFloat8E4M3 = 65, /* 4 exponent bits, largest number 448 */
	pcclFloat8E5M2 = 66  /* 5 exponent bits, largest number 57344 */
} pcclDataType_t;

/* The device in whose memory a tensor lies. */
typedef enum pcclDeviceType_t {
	pcclDeviceCpu = 0,
	pcclDeviceCuda = 1 /* any CUDA device; refused if has_cuda_support of pcclBuildInfo_t is
			    * false */
} pcclDeviceType_t;

/* The operation that combines the elements. All peers get the same bits, whatever the number of
 * peers. ARITHMETIC in pccl(7) defines the rules. If an element is NaN in any operand, it is NaN in
 * the result, also with Max and Min. */
typedef enum pcclRedOp_t {
	/* Integers wrap around. Half types are summed in binary32 and rounded at every host; a sum
	 * of pcclFloat16 above 65504 is infinite. Floating point sums have the order of the ring,
	 * which depends on the order of joining: two runs can differ in the last bits. */
	pcclSum = 0,
	/* The sum, divided once by the number of peers whose data is in it. A sum that has wrapped
	 * or become infinite gives a wrong average. */
	pcclAvg = 1,
	pcclProd = 2,
	pcclMax = 3,
	pcclMin = 4
} pcclRedOp_t;

/* Contents of the receive buffer after a failed operation. Send buffers and in-place buffers are
 * always restored. Extension to PCCL 1.0. */
typedef enum pcclOutputPolicy_t {
	pcclOutputKept = 0,      /* the contents from before the operation */
	pcclOutputDisposable = 1 /* any contents, unless the buffer is also the send buffer */
} pcclOutputPolicy_t;

/* Attributes that pcclGetAttribute reads. */
typedef enum pcclAttribute_t {
	PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE = 1,        /* accepted peers of the run */
	PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE = 2,    /* accepted peers of this peer's group */
	PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS = 3, /* groups with at least one accepted peer */
	PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE = 4 /* accepted peers of the largest group */
} pcclAttribute_t;

/* The part that a peer takes in a synchronization of shared state. */
typedef enum pcclSharedStateSyncStrategy_t {
	/* The contents that most peers have are elected. If one peer chooses this strategy, all
	 * peers must choose it: peers that choose another one are removed from the run. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR = 0,
	/* This peer's contents are known to be wrong: they are never sent and never elected. This
	 * peer does not pass received contents on to other peers. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY = 1,
	/* This peer's contents are right: they are never overwritten. Peers that choose this
	 * strategy must have equal contents, or all of them are removed from the run. An outdated
	 * peer with this strategy would have to receive contents, so it is removed, too. */
	PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY = 2
} pcclSharedStateSyncStrategy_t;

/* The distribution of the values, if the caller knows it. A hint for quantization. */
typedef enum pcclDistributionHint_t {
	pcclDistributionNone = 0,
	pcclDistributionNormal = 1,
	pcclDistributionUniform = 2,

	PCCL_DISTRIBUTION_HINT_NONE = pcclDistributionNone, /* older names of the values above */
	PCCL_NORMAL_DISTRIBUTION_HINT = pcclDistributionNormal,
	PCCL_UNIFORM_DISTRIBUTION_HINT = pcclDistributionUniform
} pcclDistributionHint_t;

/*
 * The compression of values on the network: the algorithm, and the type to which elements are
 * quantized (quantized_datatype). Only pcclFloat16, pcclBFloat16, pcclFloat and pcclDouble can be
 * quantized. Sums are computed in pcclFloat, those of pcclDouble in pcclDouble. Between processes
 * of one host nothing is quantized. All peers get the same bits.
 *
 *  - pcclQuantMinMax, pcclQuantZeroPointScale: to pcclUint8, pcclInt8, pcclUint16 or pcclInt16,
 *    with one scale for each segment (at most 256 KiB of the operand). The codes of MinMax are
 *    spread evenly between the least and the greatest number of the segment; those of
 *    ZeroPointScale include 0 exactly. Elements of pcclFloat and pcclDouble can also have
 *    pcclFloat16 or pcclBFloat16 as quantized_datatype: they are then only rounded.
 *  - pcclQuantBlockwise: to pcclInt8, pcclInt4, pcclFloat8E4M3 or pcclFloat8E5M2, with one scale
 *    for each block. So an element that is much larger than all others costs accuracy only in its
 *    block. The distribution hint may improve the accuracy; with pcclDistributionNormal, the codes
 *    of pcclInt4 are spread like the normal distribution.
 *
 * The macro PCCL_QUANT_BLOCKWISE returns pcclQuantBlockwise with another block size and with
 * options. Values from 64 on, and options, are extensions to PCCL 1.0.
 *
 * If an element is NaN or infinite, all elements that share its scale become NaN, on all peers.
 *
 * pcclSetErrorFeedback makes operations add what the last operation with the same tag has lost.
 */
typedef enum pcclQuantizationAlgorithm_t {
	pcclQuantNone = 0,
	pcclQuantMinMax = 1,
	pcclQuantZeroPointScale = 2,
	pcclQuantBlockwise = 64, /* blocks of 256 elements, of pcclInt4 32; scales in binary16 */

	/* Options, to be combined with `|`. */

	/* The scales of the blocks are bfloat16. */
	PCCL_QUANT_BF16_SCALES = 1 << 12,
	/* Rounds up or down at random, so that the expected result is exact. Only for integers,
	 * with any algorithm. The random numbers depend only on the operation and the position. */
	PCCL_QUANT_STOCHASTIC = 1 << 13,
	/* Sends sums as pcclInt4, and results as pcclInt8 in blocks of 256 elements. */
	PCCL_QUANT_MIXED = 1 << 14
} pcclQuantizationAlgorithm_t;

/* The algorithm pcclQuantBlockwise with 2^log2_block elements in a block. log2_block: 5 to 10.
 * options: options of pcclQuantizationAlgorithm_t, or 0. */
#define PCCL_QUANT_BLOCKWISE(log2_block, options)                                                  \
	((pcclQuantizationAlgorithm_t)(64 | (log2_block) << 8 | (options)))

/* A communicator: one peer of a run. pcclCreateCommunicator creates it. */
typedef struct pcclComm_t pcclComm_t;

/* Reserved; no function of this release uses it. */
typedef struct pcclRankInfo_t pcclRankInfo_t;

/* A master that this process runs. pcclCreateMaster creates it. */
typedef struct pcclMasterInstanceState_t pcclMasterInstance_t;

/* The identifier of a peer. Reserved; no function of this release uses it. */
typedef struct pcclRankUuid_t {
	uint8_t data[16];
} pcclRankUuid_t;

/* The features that the library was built with. */
typedef struct pcclBuildInfo_t {
	bool has_cuda_support; /* buffers and tensors may lie in the memory of a CUDA device */
} pcclBuildInfo_t;

/* Parameters of a communicator. */
typedef struct pcclCommCreateParams_t {
	/* The address at which the master listens. */
	ccoip_socket_address_t master_address;
	/* Peers with equal numbers reduce and synchronize with each other. 0 if there is only one
	 * group. */
	uint32_t peer_group;
	/* TCP streams per link to another host. One operation uses all of them. 0 means 1. If a
	 * round trip takes 5 ms or more, a link has at least four. Each link has one more stream,
	 * for small operations. */
	uint32_t p2p_connection_pool_size;
} pcclCommCreateParams_t;

/* Information about an all-reduce. */
typedef struct pcclReduceInfo_t {
	uint32_t local_world_size; /* peers of the group whose data is in the result */
	uint64_t tx_bytes;         /* bytes that this host sent for the operation, including the
				    * library's own headers, but not those of TCP */
	uint64_t rx_bytes;         /* bytes that this host received for the operation, counted in
				    * the same way; both numbers are 0 if all peers of the group run
				    * on one host, or if the agent died at the end of the operation,
				    * because only the agent knew them */
} pcclReduceInfo_t;

/* The type of the operand. */
typedef struct pcclReduceOperandDescriptor_t {
	pcclDataType_t datatype; /* type of the elements of both buffers */
	pcclDistributionHint_t distribution_hint;
} pcclReduceOperandDescriptor_t;

/* The compression of the operand on the network. {0} means no compression. */
typedef struct pcclQuantizationOptions_t {
	pcclDataType_t quantized_datatype; /* type on the network; ignored with pcclQuantNone */
	pcclQuantizationAlgorithm_t algorithm;
} pcclQuantizationOptions_t;

/* One all-reduce. All peers of the group must give the same values. Only distribution_hint may
 * differ, if the algorithm is not pcclQuantBlockwise: then the hint has no effect. */
typedef struct pcclReduceDescriptor_t {
	size_t count; /* elements in each of the two buffers; with 0 the call returns at once and
		       * takes no part in an operation of other peers */
	pcclRedOp_t op;
	uint64_t tag; /* names the operation: calls of the peers with the same tag belong together;
		       * it must differ from the tags of all operations in flight on this
		       * communicator */
	pcclReduceOperandDescriptor_t src_descriptor;
	pcclQuantizationOptions_t quantization_options;
} pcclReduceDescriptor_t;

/* One of several all-reduces. */
typedef struct pcclReduceSingleDescriptor_t {
	void *sendbuf; /* both buffers: see the arguments of pcclAllReduce */
	void *recvbuf;
	pcclReduceDescriptor_t descriptor;
} pcclReduceSingleDescriptor_t;

typedef pcclReduceSingleDescriptor_t pcclReduceOpDescriptor_t; /* an older name */

/* An operation in flight. The handle is a plain value: it may be copied, and need not be freed. */
typedef struct pcclAsyncReduceOp_t {
	pcclComm_t *comm; /* the communicator on which the operation was started */
	uint64_t tag;     /* the tag of the operation */
} pcclAsyncReduceOp_t;

/* One tensor of the shared state. All memory that it points to belongs to the caller. */
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

/* The bytes that a synchronization transferred. Only tensor contents count, whether they crossed
 * the network or not. Both numbers are 0 if the agent died at the end of the synchronization,
 * because only the agent knew them. */
typedef struct pcclSharedStateSyncInfo_t {
	uint64_t tx_bytes; /* bytes of this peer's tensors that others received; bytes that several
			    * peers of another host lack are sent to that host once and count
			    * once */
	uint64_t rx_bytes; /* bytes written into this peer's tensors */
} pcclSharedStateSyncInfo_t;

/* ------------------------------------------------------------------ library, errors */

/*
 * Initializes the library. Must be called once per process before other functions; further calls
 * do nothing. Opens no connection. Any thread.
 * Returns pcclSuccess or pcclInternalError (the system has no memory for the library's handlers of
 * fork()).
 */
PCCL_EXPORT pcclResult_t pcclInit(void);

/*
 * Initializes the library as pcclInit does. From then on, functions also return the codes from 64
 * upward in this process. Programs and bindings made for PCCL 1.0 do not know these codes and do
 * not call this function. They get the nearest code of 1.0 instead: pcclInternalError for
 * pcclOutOfMemory and pcclInterrupted, pcclMasterConnectionFailed for the others. pcclGetLastError
 * returns the same text in both cases. This header defines pcclInit as another name of
 * pcclInitExtended, unless PCCL_1_0_CODES is defined before the header is included.
 */
PCCL_EXPORT pcclResult_t pcclInitExtended(void);
#ifndef PCCL_1_0_CODES
#define pcclInit pcclInitExtended
#endif

/* Returns the features that the library was built with. Works before pcclInit. Any thread. */
PCCL_EXPORT pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info);

/* Returns the release of the library in use, such as "0.1.0". The string is static. Any thread, any
 * time. */
PCCL_EXPORT const char *pcclGetVersion(void);

/*
 * Returns a short description of a result code. The string is static and never NULL. If the number
 * is not a result code, the text says so. Any thread, any time.
 */
PCCL_EXPORT const char *pcclGetErrorString(pcclResult_t result);

/*
 * Returns a sentence about this thread's last call of a pccl function: what failed and what to do
 * about it. If the call succeeded, the sentence is empty. Never returns NULL. The text belongs to
 * the library and is valid until this thread's next call of a function that returns pcclResult_t.
 * Any thread, any time.
 */
PCCL_EXPORT const char *pcclGetLastError(void);

/* --------------------------------------------------------------------------- memory */

/*
 * Allocates memory that is shared with the agent. If the buffers of an all-reduce, or the tensors
 * of a synchronization, lie anywhere in such memory, nothing is copied between the process and the
 * agent. Other memory works, too, and is copied.
 *
 * size: bytes, at least 1.
 * ptr_out: receives the address, aligned to a page; the memory is zero-filled. It belongs to the
 * caller until pcclMemFree. It counts against the agent's limit for this user.
 *
 * Any thread.
 *
 * pcclInvalidUsage  PCCL_AGENT_LEASE_MS is not a number of milliseconds
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
 * Creates a communicator, but does not connect it. Uses no network and does not wait. Any thread.
 *
 * params: read only during the call.
 * comm_out: receives the communicator, to be destroyed with pcclDestroyCommunicator.
 */
PCCL_EXPORT pcclResult_t pcclCreateCommunicator(
	const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/*
 * Leaves the run, if connected, and frees the communicator. Blocks until everything that belongs to
 * the communicator has ended. Abandons operations in flight: their buffers belong to the caller
 * again, with the contents from before the operation. Calls of other peers that wait for this peer
 * return pcclRankConnectionLost. The pointer is invalid after success. Any thread.
 *
 * pcclInvalidUsage  another thread is in a call on the communicator: nothing was changed
 */
PCCL_EXPORT pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator);

/*
 * Joins the run of the master named at creation. The first peer of a new run is accepted at once.
 * A later peer waits, without limit, until the accepted peers call pcclUpdateTopology. Only these
 * waits have a limit: connect_timeout_ms of the agent to reach a master, master_lease_ms of the
 * agent if the master dies in the meantime, and PCCL_AGENT_LEASE_MS if the agent dies. Any thread
 * may call this function, and becomes the main thread by this call.
 *
 * pcclMasterConnectionFailed  no master answers at the address, or no new master took over in time
 * pcclRankConnectionFailed    this host and the hosts of the run's peers could not be connected
 * pcclOutOfMemory             a process has reached a limit of its system: the text names the limit
 * pcclInvalidUsage            connected already, the master refused this peer, operations of an
 *                             earlier connection have not been awaited, or another communicator
 *                             of this thread is a peer of the run and would have to vote: use one
 *                             thread for each
 * pcclVersionMismatch, pcclPermissionDenied, pcclTimeout
 * After a failure the communicator is as before and pcclConnect may be called again.
 */
PCCL_EXPORT pcclResult_t pcclConnect(pcclComm_t *communicator);

/*
 * Ends the call that is blocked on the communicator, within a tenth of a second, or half a second
 * if the agent does not respond. That call returns pcclInterrupted, its buffers are as before, and
 * this peer has left the run as with pcclDestroyCommunicator. An operation that is under way with
 * memory of pcclMemAlloc still waits for an agent that does not respond, because the agent may use
 * that memory. This wait ends after PCCL_AGENT_LEASE_MS, like the wait of any call. Operations in
 * flight end, too, and must still be awaited; after that, pcclConnect joins the run again. If the
 * result of the blocked call comes before the interrupt, the call returns this result. If no call
 * is blocked, the interrupt ends the next call that has to wait. If a call fails while an interrupt
 * is pending for it, the interrupt counts as used: it does not end a later call as well. Returns at
 * once. May be called from a signal handler and from any thread. Does not change the text of
 * pcclGetLastError.
 *
 * pcclInvalidArgument  the pointer is NULL, or not a communicator
 * pcclInvalidUsage     the communicator belongs to the process that this one was forked from
 */
PCCL_EXPORT pcclResult_t pcclInterrupt(pcclComm_t *communicator);

/*
 * Chooses the contents that the receive buffer of a failed operation may have. Applies to
 * operations that are started on this communicator from now on. The default is pcclOutputKept: the
 * old contents are kept until the operation ends, which takes as much memory as the buffer itself.
 * If the receive buffers of all peers of a host are disposable, differ from the send buffers, and
 * lie in memory of pcclMemAlloc, results are written directly and nothing is kept. Peers of a group
 * may choose differently. Any thread.
 *
 * pcclInvalidArgument  also: there is no such policy
 * pcclInvalidUsage     the communicator belongs to the process that this one was forked from
 */
PCCL_EXPORT pcclResult_t pcclSetOutputPolicy(pcclComm_t *communicator, pcclOutputPolicy_t policy);

/*
 * Names the stream whose work comes before the calls of this communicator that use memory of a CUDA
 * device. Applies to calls that are made from now on. The stream may belong to any device and must
 * exist during these calls. Extension to PCCL 1.0. Any thread.
 *
 * stream: a cudaStream_t or CUstream; NULL, the default, is the legacy default stream of the
 * context to which the memory belongs.
 *
 * pcclInvalidUsage   the communicator belongs to the process that this one was forked from
 * pcclInternalError  stream is not NULL, and the library was built without CUDA
 */
PCCL_EXPORT pcclResult_t pcclSetStream(pcclComm_t *communicator, void *PCCL_NULLABLE stream);

/*
 * Switches error feedback on or off for the quantized all-reduces with this tag that are started on
 * this communicator from now on. It is off by default. With error feedback, the library keeps what
 * a host has lost by quantization, the *residual*, and adds it to the operand of the host at the
 * next operation with the tag. So over many operations the errors cancel out instead of adding up.
 * The residual contains the loss of the host's operands and of the sums and results that the host
 * encodes. The caller's buffers do not contain it. Extension to PCCL 1.0.
 *
 * All peers of the group must choose the same for a tag. Otherwise the operation returns
 * pcclInvalidArgument, and pcclGetLastError names "error feedback". Operations with error feedback
 * must be pcclSum or pcclAvg; other operators return pcclInvalidArgument. Operations with the tag
 * that are not quantized neither use nor change the residual.
 *
 * Only an operation that has succeeded replaces the residual. A failed one leaves it as it was, so
 * a repeated call adds the same residual again. The next operation with the tag begins without a
 * residual after each of these events:
 *  - A peer has joined or left the group, or an operation of the group has failed with
 *    pcclRankConnectionLost.
 *  - An operation with this tag has succeeded with another count, type, operator or quantization,
 *    or quantized without error feedback.
 *  - The agent of this host has restarted. Other hosts then still have their residuals.
 *
 * Memory: on each host, each tag takes 4 bytes for each element of the operand, or 8 bytes if the
 * elements are pcclDouble. From the second operation on it takes twice as much. A tag also takes
 * less than 1 KiB for other data. The number of peers on the host has no effect. If all peers are
 * on one host, nothing is quantized, and no memory is needed. The agent counts the memory against
 * its limit for this user. If it does not fit, the operation returns pcclOutOfMemory to all peers,
 * and pcclGetLastError names the limit and the host. The memory is freed when the residual is
 * dropped; after a change of the group this is at the next operation of the group. It is also freed
 * when all communicators of the group on the host are gone. To free the memory of a tag that is
 * still in use, switch error feedback off on all peers and quantize one operation with the tag. Any
 * thread.
 *
 * pcclInvalidArgument  also: not a communicator
 * pcclInvalidUsage     the communicator belongs to the process that this one was forked from
 * pcclOutOfMemory      the process has no memory for another tag
 */
PCCL_EXPORT pcclResult_t pcclSetErrorFeedback(pcclComm_t *communicator, uint64_t tag, bool enabled);

/*
 * Reads an attribute as of the end of the last call on this communicator. Only calls that involve
 * other peers change the values. All peers that have made the same call see the same values after
 * this call. Does not block. Of the operations that a thread has awaited, the one that ended last
 * determines the values; another thread may see older values. Any thread.
 *
 * pcclInvalidUsage  not connected, or no longer part of the run, as an earlier call has reported
 * pcclMasterConnectionFailed, pcclAgentUnavailable: as an earlier call has reported
 */
PCCL_EXPORT pcclResult_t pcclGetAttribute(
	const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out);

/* -------------------------------------------------------------------------- topology */

/*
 * Votes to admit waiting newcomers and to remove lost peers from the ring. Blocks until all
 * accepted peers of the run, of every group, have called it; then all calls return together. If
 * another peer waits in a call that needs this peer, the vote returns at once and changes nothing.
 * Typically called once per training step, at a point that all peers reach. Main thread.
 *
 * pcclPendingAsyncOps       await outstanding operations first; this peer has not voted
 * pcclUpdateTopologyFailed  this peer was removed from the run: pcclConnect makes it a new peer.
 *                           The first topology call after the removal reports this
 * pcclInvalidUsage          not connected, not the main thread, or removed from the run, as an
 *                           earlier call has reported
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclUpdateTopology(pcclComm_t *communicator);

/*
 * Asks whether newcomers are waiting. If so, pcclUpdateTopology should be called soon. All peers
 * get the same answer. Blocks until all accepted peers have called it. If another peer waits in an
 * operation that needs this peer, the answer is false: no newcomer can be admitted before that
 * operation. If the others wait in pcclUpdateTopology, the answer tells whether newcomers are
 * waiting. A newcomer that begins to wait after the answer is counted only by the next call. A
 * newcomer that cannot be reached does not count: agents first probe in the background whether they
 * can connect to it. Main thread, also while operations of this or of another thread are in flight.
 *
 * peers_pending_out: receives the answer.
 *
 * pcclInvalidUsage  not connected, or not the main thread
 * pcclRankConnectionLost    this peer was removed from the run
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclArePeersPending(
	const pcclComm_t *communicator, bool *peers_pending_out);

/* The same as pcclArePeersPending, by its older name. */
PCCL_EXPORT pcclResult_t pcclAreNewPeersPending(
	const pcclComm_t *communicator, bool *new_peers_pending_out);

/*
 * Makes large all-reduces faster: measures the paths between the hosts, computes the best rings for
 * each group, and puts them in force. Blocks until all accepted peers of the run, of every group,
 * have called it; then all calls return together with the same code. Typically called after the
 * peers have joined, and again after the members have changed. Main thread.
 *
 * Rates are measured that are not known, or that are older than an hour. With n hosts this takes up
 * to about n seconds, and longer on paths with long round trips (ccoip-masterd --benchmark-ms). If
 * all rates are known, the call takes about a second or less. A group with fewer than three hosts
 * has only one ring, so nothing is measured for it. With more than 256 hosts nothing is measured,
 * and the call succeeds without a change. The rings in force also stay if no other ones are
 * predicted to be at least 2 % faster. While operations or measurements of another run use the
 * network of a host, the call waits, for 10 seconds or more; then it succeeds without a change.
 *
 * The call admits no newcomers. If the others wait in pcclUpdateTopology instead, all of these
 * calls return success without a change.
 *
 * If a peer, a host or a link is lost meanwhile, or if a measurement does not end, the calls of all
 * peers fail, and the rings are as before. Repeat the call: until it has succeeded,
 * pcclUpdateTopology, pcclArePeersPending, all all-reduces and pcclSynchronizeSharedState return
 * pcclInvalidUsage, unless this peer is alone in the run by then. All peers get the same code, so
 * all of them repeat the call. A call that fails again answers half a second after the last
 * failure at the earliest.
 *
 * pcclInvalidUsage                fewer than two peers in the run, not connected, not the main
 *                                 thread, or removed from the run, as an earlier call has reported
 * pcclPendingAsyncOps             await outstanding operations first; this peer has not voted
 * pcclTopologyOptimizationFailed  the optimization has failed: repeat it; pcclGetLastError gives
 *                                 the reason. Or this peer was removed from the run: pcclConnect
 *                                 makes it a new peer. The first topology call after the removal
 *                                 reports this
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator);

/* ----------------------------------------------------------------- collective operations */

/*
 * Combines the buffers of all peers of the group, element by element, and gives the same result,
 * bit for bit, to all. Blocks until all have the result, or the operation has failed for all. It
 * combines pcclAllReduceAsync and pcclAwaitAsyncReduce; the same threads may call it.
 *
 * sendbuff: descriptor->count elements of this peer, naturally aligned. Never written, unless it is
 * also recvbuff. Either buffer may be in the memory of a CUDA device.
 * recvbuff: receives the result, which also has descriptor->count elements. If recvbuff is equal to
 * sendbuff, the operation reduces in place. Otherwise the two must not overlap.
 * descriptor: read only during the call.
 * reduce_info_out: NULL, or receives information about the operation. Written only on success.
 *
 * If the call fails, both buffers have their contents from before it, unless pcclSetOutputPolicy
 * allows other contents of recvbuff.
 *
 * pcclTooFewPeers         this peer is alone in the group: call pcclUpdateTopology until others
 *                         have joined
 * pcclRankConnectionLost  a peer was lost, and the ring becomes smaller: call again with the same
 *                         arguments
 * pcclInvalidArgument     also: an operation with this tag is in flight, the memory of a device
 * ends before the buffer does, or the peers gave different counts, types or operators for the
 * operation (all of them get this code). A call with wrong arguments waits for the other peers, and
 * the calls of all peers end with this code. Exceptions: the descriptor is NULL or its count is 0
 * pcclInvalidUsage        not connected; this peer is no longer part of the run, as an earlier call
 *                         has reported; or this thread may not make the call (see
 *                         pcclAllReduceAsync)
 * pcclOutOfMemory         one of the peers, or its agent, has no memory for the operation: the call
 *                         ends with this code for all peers, and pcclGetLastError names the host
 *                         and the limit. No peer is lost. Call again when there is more memory
 * pcclInternalError       also: the agent of one of the peers has died twice in a row while it
 *                         carried out this operation; or CUDA could not copy a buffer
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/*
 * Starts an all-reduce and returns at once. Arguments are those of pcclAllReduce. Until
 * pcclAwaitAsyncReduce has returned for the operation, neither buffer may be written or freed, and
 * recvbuff may not be read: in the meantime a thread of the library copies a large sendbuff. Peers
 * may start their operations in different orders.
 *
 * reduce_handle_out: receives the handle to await. Each operation that was started must be awaited,
 * exactly once.
 *
 * A communicator carries out up to 60 operations at the same time. Further operations wait. They
 * begin in the order of the calls, but only while the thread that started them is in a call that
 * starts or awaits operations. If a call has to wait for room, it waits until any of the 60 has
 * ended. If none of the 60 can end, the call ends like other calls that can never meet.
 *
 * Threads: the main thread, or another thread while the main thread makes no call on the
 * communicator except pcclArePeersPending and pcclGetAttribute. The thread that starts operations
 * awaits them. Until this thread has awaited all of them, no other thread may start any.
 *
 * Errors are those of pcclAllReduce. Either this call or the await returns them. The loss of a peer
 * is reported by the await.
 * pcclInvalidUsage  also: operations of another thread are in flight; or the main thread is in a
 *                   call that allows no operations in flight
 */
PCCL_EXPORT pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out);

/*
 * Waits until an operation has ended. Only the thread that started it may call this. The handle is
 * invalid afterwards, whatever the result, except where noted. Outputs and errors are those of
 * pcclAllReduce. If one of several operations is lost, await all of them before repeating any.
 *
 * pcclInvalidArgument  also: no such operation is in flight
 * pcclInvalidUsage     also: another thread started the operation, which is still in flight
 */
PCCL_EXPORT pcclResult_t pcclAwaitAsyncReduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/*
 * Carries out several all-reduces, up to max_in_flight at the same time, started in the order of
 * their descriptors. If an operation is lost (pcclRankConnectionLost), the call awaits the
 * operations under way and then repeats the failed ones, again in order, until all have succeeded.
 * All peers of the group must call it with the same descriptors in the same order. Peers that see a
 * loss at different moments do not block each other. If peers were lost during the call, operations
 * may have been done with different numbers of peers. The threads that may call pcclAllReduceAsync
 * may call this function.
 *
 * descriptors: an array of count descriptors with distinct tags; read only during the call. The
 * text of an error about a descriptor begins with the index of the descriptor.
 * reduce_info_out: NULL, or receives the bytes of all operations together, and the number of peers
 * in the operation that was awaited last. This number is only a hint. Written only on success.
 * max_in_flight: at least 1. The limit is 64, minus the caller's own operations in flight; a higher
 * value counts as this limit.
 *
 * If the peers disagree on an operation (pcclInvalidArgument), or one of them cannot take part in
 * it (pcclOutOfMemory, pcclInternalError), only this operation fails, and the others are carried
 * out. Any other error ends the call, after it has awaited all operations under way. The call
 * returns the first error in the order in which it awaits the operations. Completed operations have
 * their results; the buffers of all others are as before.
 *
 * The table of descriptors can be wrong as a whole: a tag appears twice, max_in_flight is below 1,
 * or there is no memory for the table. Then the call fails on all peers: this peer takes part in
 * each operation of its table without carrying it out, and waits for the other peers. The calls of
 * all peers end with the code and sentence that this call returns; on the other peers the sentence
 * names this process. There are two exceptions. If descriptors is NULL, no other peer gets an
 * error. An operation is left out if its tag is that of an operation which this peer has in flight
 * already.
 *
 * pcclTooFewPeers      this peer is alone in its group
 * pcclInvalidUsage     also: this peer was removed from the run; pcclGetLastError gives the reason
 * pcclInvalidArgument  also: two descriptors have the same tag, max_in_flight is below 1; then no
 *                      operation was carried out
 * pcclOutOfMemory      also: no memory for count operations; then no operation was carried out
 * All other errors are those of pcclAllReduce, apart from pcclRankConnectionLost.
 */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out, int max_in_flight);

/* ---------------------------------------------------------------------- shared state */

/*
 * Makes the shared state equal on all peers of the group. It compares the contents by hashes,
 * elects the contents that all peers will have, and sends only what differs, directly into the
 * tensors of the peers that lack it. Each block of 65,536 bytes is verified. Blocks until all peers
 * of the group have called it and are equal. Main thread; no operation in flight. A peer may be
 * alone in its group.
 *
 * shared_state: revision and tensors of this peer, in any order of names. Names, types, counts and
 * flags must be the same on all peers. At most 1,048,576 tensors and 2^48 bytes in total; a
 * tensor may be empty (count 0, data may be NULL then). Tensors belong to the caller and must not
 * be touched during the call. They may lie in memory of pcclMemAlloc, which saves copying. Tensors
 * with allow_content_inequality are compared only by name, type, count and flag, and never sent.
 * Tensors in the memory of a CUDA device have the device_type pcclDeviceCuda, on those peers where
 * they are there.
 * revision must be one more than at the last synchronization of the group. At the first
 * synchronization it may be any number except 2^64 - 1. A peer with a lower revision is outdated:
 * it receives the contents of the peers that are not outdated, and its revision is set to the
 * group's. A peer with a higher revision is removed from the run.
 * strategy: the part that this peer takes, see pcclSharedStateSyncStrategy_t. If the peers choose
 * ENFORCE_POPULAR, the contents that most of them have are elected; peers that are outdated or
 * receive-only do not count. Peers that are send-only must have equal contents, which are elected.
 * sync_info_out: NULL, or receives the bytes that were transferred, 0 if the peers were equal.
 * Written only on success.
 *
 * On success, revision is the group's revision, and every compared tensor was verified. If the call
 * fails, revision is as before. Tensors of a peer that did not choose send-only may have been
 * overwritten in part; pcclGetLastError reports this. The call may then be made again with the same
 * arguments: data that was received already is not sent again.
 *
 * Tensors written in part are torn, and are not elected: the peer counts as outdated, whatever its
 * strategy. The process remembers the hash of the contents that the failed call has left. As long
 * as the tensors have these contents they stay torn, also with another revision, after a new
 * connection, with a new communicator, in other memory or in a new run. A call that succeeds ends
 * the torn state. An application can also end this state by replacing all tensors, for example by
 * those of a checkpoint, and then using another revision (higher or lower) or a new communicator.
 *
 * Tensors are hashed by all CPUs that the calling thread may use, in threads that exist only during
 * the call. Tensors in the memory of a CUDA device are hashed by the device, or, if the hash type
 * is crc32c, copied to the host piece by piece. Environment: PCCL_HASH_TYPE may be simple or
 * crc32c, which needs the library ISA-L; it must be the same for all peers. If it is not set, the
 * agent's setting hash_type applies, whose default is simple.
 *
 * pcclInvalidArgument     also: a name is NULL, empty, longer than 1,024 bytes or appears twice, a
 *                         type or count is out of range, or the memory of a tensor is not on the
 *                         device of its device_type; the sentence names the tensor. Nothing
 *                         was changed, and the call ends with this code for all peers of the group
 * pcclInvalidUsage        the peer was removed from the run: its revision is ahead of the group's
 *                         (REVISION_INCREMENT_VIOLATION); its tensors differ in name, type, count
 *                         or flag from the elected ones, or its hash type differs; other peers
 *                         chose ENFORCE_POPULAR, and this peer chose another strategy; this peer is
 *                         send-only and would have to receive; the contents that it needs could not
 *                         be fetched or verified; or no contents can be elected, because all are
 *                         outdated, torn or receive-only, which removes all peers of the group.
 *                         Also: not connected, not the main thread, PCCL_HASH_TYPE is wrong
 * pcclPendingAsyncOps     await outstanding operations first; nothing was changed
 * pcclRankConnectionLost  all peers that had the elected contents were lost, or the agent of a
 *                         peer's host was restarted: call again. No other loss ends the call: the
 *                         remaining peers elect, or continue. If the loss came after the election,
 *                         the next call of each peer reports it
 * pcclInternalError       also: CUDA could not copy or hash a tensor; or a tensor has the
 *                         device_type pcclDeviceCuda, and the library was built without CUDA
 * pcclMasterConnectionFailed
 */
PCCL_EXPORT pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator,
	pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
	pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out);

/* ---------------------------------------------------------------------------- master */

/*
 * A master that this program starts, for tests and small runs. The library runs the program
 * ccoip-masterd as a child process, on a socket that this process has opened. The order of calls is
 * create, run, interrupt, await termination, destroy. Any thread; pcclInit is not needed.
 * A handle belongs to the process that created it: in a process that was forked from it, all these
 * calls return pcclInvalidUsage.
 */

/*
 * Opens the listening socket. If an outgoing connection of this host uses the port, the call waits
 * for up to 10 s.
 *
 * listen_address: the local address and port; 0.0.0.0 or :: for all addresses of the host.
 * p_master_handle_out: receives the handle, to be freed with pcclDestroyMaster.
 *
 * pcclInvalidUsage  the address is in use, is not an address of this host, or this user may not
 *                   open its port
 * pcclOutOfMemory   this process may open no more files, or a similar limit is reached: the text
 *                   names the limit
 */
PCCL_EXPORT pcclResult_t pcclCreateMaster(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out);

/*
 * Starts the master and returns; peers can connect from now on. If pcclInterruptMaster was called
 * before, the master is not started and counts as ended.
 *
 * pcclInvalidArgument  the master is running already, or has run before
 * pcclInternalError    the program ccoip-masterd cannot be started
 * pcclOutOfMemory      this process may have no more processes, open files, or a similar limit is
 *                      reached: the text names the limit; call again when it has been raised
 */
PCCL_EXPORT pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance);

/*
 * Ends the master and its run: within a second its peers' calls return pcclMasterConnectionFailed,
 * "the master was told to end". A host that is not connected at that moment learns of the end if it
 * connects again within two seconds; otherwise its peers wait for another master, as after the
 * master's death. Returns at once; pcclMasterAwaitTermination waits for the end. May be called from
 * a signal handler, also before and during pcclRunMaster. Does not change the text of
 * pcclGetLastError.
 *
 * pcclInvalidArgument  there is no master, or it has ended
 */
PCCL_EXPORT pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance);

/*
 * Blocks until the master has ended: it was interrupted, or died by itself.
 *
 * pcclInternalError    the master has ended with an error
 * pcclInvalidArgument  the master was never started
 */
PCCL_EXPORT pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance);

/*
 * Frees the handle. The handle is invalid afterwards.
 *
 * pcclInvalidUsage  the master has been started and pcclMasterAwaitTermination has not returned;
 *                   the handle stays valid
 */
PCCL_EXPORT pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance);

#ifdef __cplusplus
}
#endif

#endif
