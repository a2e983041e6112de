# SPDX-License-Identifier: MIT
# The functions of pccl.h; names that share a page are links to it.
dist_man_MANS = \
	man/man3/pcclAllReduce.3 \
	man/man3/pcclAllReduceAsync.3 \
	man/man3/pcclAllReduceMultipleWithRetry.3 \
	man/man3/pcclAreNewPeersPending.3 \
	man/man3/pcclArePeersPending.3 \
	man/man3/pcclAwaitAsyncReduce.3 \
	man/man3/pcclConnect.3 \
	man/man3/pcclCreateCommunicator.3 \
	man/man3/pcclCreateMaster.3 \
	man/man3/pcclDestroyCommunicator.3 \
	man/man3/pcclDestroyMaster.3 \
	man/man3/pcclGetAttribute.3 \
	man/man3/pcclGetBuildInfo.3 \
	man/man3/pcclGetErrorString.3 \
	man/man3/pcclGetLastError.3 \
	man/man3/pcclGetVersion.3 \
	man/man3/pcclInit.3 man/man3/pcclInitExtended.3 \
	man/man3/pcclInterrupt.3 \
	man/man3/pcclInterruptMaster.3 \
	man/man3/pcclMasterAwaitTermination.3 \
	man/man3/pcclMemAlloc.3 \
	man/man3/pcclMemFree.3 \
	man/man3/pcclOptimizeTopology.3 \
	man/man3/pcclRunMaster.3 \
	man/man3/pcclSetErrorFeedback.3 \
	man/man3/pcclSetOutputPolicy.3 \
	man/man3/pcclSetStream.3 \
	man/man3/pcclSynchronizeSharedState.3 \
	man/man3/pcclUpdateTopology.3
