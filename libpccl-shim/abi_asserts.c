/* SPDX-License-Identifier: MIT
 *
 * Asserts the binary interface at compile time: sizes and offsets of every public structure and the
 * value of every public constant. Existing programs and bindings were built with these values. So
 * if an assertion fails, correct the header, never this file. The file is compiled into the library
 * (it adds no code) and, separately, by tests/abi.
 */
#include <stddef.h>

#include "pccl.h"

#define SIZE(type, n)      _Static_assert(sizeof(type) == (n), "size of " #type)
#define AT(type, field, n) _Static_assert(offsetof(type, field) == (n), #type "." #field)
#define VALUE(name, n)     _Static_assert((int)(name) == (n), "value of " #name)
#define ALIGN(type, n)     _Static_assert(_Alignof(type) == (n), "alignment of " #type)

SIZE(pcclResult_t, 4);
VALUE(pcclSuccess, 0);
VALUE(pcclNotInitialized, 1);
VALUE(pcclInternalError, 2);
VALUE(pcclInvalidArgument, 3);
VALUE(pcclInvalidUsage, 4);
VALUE(pcclTooFewPeers, 5);
VALUE(pcclMasterConnectionFailed, 6);
VALUE(pcclRankConnectionFailed, 7);
VALUE(pcclRankConnectionLost, 8);
VALUE(pcclNoSharedStateAvailable, 9);
VALUE(pcclPendingAsyncOps, 10);
VALUE(pcclUpdateTopologyFailed, 11);
VALUE(pcclTopologyOptimizationFailed, 12);
VALUE(pcclAgentUnavailable, 64);
VALUE(pcclVersionMismatch, 65);
VALUE(pcclPermissionDenied, 66);
VALUE(pcclTimeout, 67);
VALUE(pcclOutOfMemory, 68);
VALUE(pcclInterrupted, 69);
VALUE(pcclSystemError, 2);

SIZE(pcclDataType_t, 4);
VALUE(pcclUint8, 0);
VALUE(pcclInt8, 1);
VALUE(pcclInt16, 2);
VALUE(pcclUint16, 3);
VALUE(pcclUint32, 4);
VALUE(pcclInt32, 5);
VALUE(pcclUint64, 6);
VALUE(pcclInt64, 7);
VALUE(pcclFloat16, 8);
VALUE(pcclBFloat16, 9);
VALUE(pcclFloat, 10);
VALUE(pcclDouble, 11);

SIZE(pcclDeviceType_t, 4);
VALUE(pcclDeviceCpu, 0);
VALUE(pcclDeviceCuda, 1);

SIZE(pcclRedOp_t, 4);
VALUE(pcclSum, 0);
VALUE(pcclAvg, 1);
VALUE(pcclProd, 2);
VALUE(pcclMax, 3);
VALUE(pcclMin, 4);

SIZE(pcclAttribute_t, 4);
VALUE(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, 1);
VALUE(PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, 2);
VALUE(PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS, 3);
VALUE(PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, 4);

SIZE(pcclSharedStateSyncStrategy_t, 4);
VALUE(PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, 0);
VALUE(PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY, 1);
VALUE(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, 2);

SIZE(pcclDistributionHint_t, 4);
VALUE(pcclDistributionNone, 0);
VALUE(pcclDistributionNormal, 1);
VALUE(pcclDistributionUniform, 2);
VALUE(PCCL_DISTRIBUTION_HINT_NONE, 0);
VALUE(PCCL_NORMAL_DISTRIBUTION_HINT, 1);
VALUE(PCCL_UNIFORM_DISTRIBUTION_HINT, 2);

SIZE(pcclQuantizationAlgorithm_t, 4);
VALUE(pcclQuantNone, 0);
VALUE(pcclQuantMinMax, 1);
VALUE(pcclQuantZeroPointScale, 2);

SIZE(ccoip_inet_protocol_t, 4);
VALUE(inetIPv4, 0);
VALUE(inetIPv6, 1);

VALUE(CCOIP_PROTOCOL_PORT_MASTER, 48148);
VALUE(CCOIP_PROTOCOL_PORT_SHARED_STATE, 48149);
VALUE(CCOIP_PROTOCOL_PORT_P2P, 48150);
VALUE(CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK, 48151);

SIZE(ccoip_ipv4_address_t, 4);
ALIGN(ccoip_ipv4_address_t, 1);
SIZE(ccoip_ipv6_address_t, 16);
ALIGN(ccoip_ipv6_address_t, 1);

SIZE(ccoip_inet_address_t, 24);
ALIGN(ccoip_inet_address_t, 4);
AT(ccoip_inet_address_t, protocol, 0);
AT(ccoip_inet_address_t, ipv4, 4);
AT(ccoip_inet_address_t, ipv6, 8);

SIZE(ccoip_socket_address_t, 28);
ALIGN(ccoip_socket_address_t, 4);
AT(ccoip_socket_address_t, inet, 0);
AT(ccoip_socket_address_t, port, 24);

SIZE(pcclCommCreateParams_t, 36);
ALIGN(pcclCommCreateParams_t, 4);
AT(pcclCommCreateParams_t, master_address, 0);
AT(pcclCommCreateParams_t, peer_group, 28);
AT(pcclCommCreateParams_t, p2p_connection_pool_size, 32);

SIZE(pcclReduceInfo_t, 24);
ALIGN(pcclReduceInfo_t, 8);
AT(pcclReduceInfo_t, local_world_size, 0);
AT(pcclReduceInfo_t, tx_bytes, 8);
AT(pcclReduceInfo_t, rx_bytes, 16);

SIZE(pcclReduceOperandDescriptor_t, 8);
ALIGN(pcclReduceOperandDescriptor_t, 4);
AT(pcclReduceOperandDescriptor_t, datatype, 0);
AT(pcclReduceOperandDescriptor_t, distribution_hint, 4);

SIZE(pcclQuantizationOptions_t, 8);
ALIGN(pcclQuantizationOptions_t, 4);
AT(pcclQuantizationOptions_t, quantized_datatype, 0);
AT(pcclQuantizationOptions_t, algorithm, 4);

SIZE(pcclReduceDescriptor_t, 40);
ALIGN(pcclReduceDescriptor_t, 8);
AT(pcclReduceDescriptor_t, count, 0);
AT(pcclReduceDescriptor_t, op, 8);
AT(pcclReduceDescriptor_t, tag, 16);
AT(pcclReduceDescriptor_t, src_descriptor, 24);
AT(pcclReduceDescriptor_t, quantization_options, 32);

SIZE(pcclReduceSingleDescriptor_t, 56);
ALIGN(pcclReduceSingleDescriptor_t, 8);
AT(pcclReduceSingleDescriptor_t, sendbuf, 0);
AT(pcclReduceSingleDescriptor_t, recvbuf, 8);
AT(pcclReduceSingleDescriptor_t, descriptor, 16);
SIZE(pcclReduceOpDescriptor_t, 56);

SIZE(pcclAsyncReduceOp_t, 16);
ALIGN(pcclAsyncReduceOp_t, 8);
AT(pcclAsyncReduceOp_t, comm, 0);
AT(pcclAsyncReduceOp_t, tag, 8);

SIZE(pcclRankUuid_t, 16);
ALIGN(pcclRankUuid_t, 1);

SIZE(pcclTensorInfo_t, 40);
ALIGN(pcclTensorInfo_t, 8);
AT(pcclTensorInfo_t, name, 0);
AT(pcclTensorInfo_t, data, 8);
AT(pcclTensorInfo_t, count, 16);
AT(pcclTensorInfo_t, datatype, 24);
AT(pcclTensorInfo_t, device_type, 28);
AT(pcclTensorInfo_t, allow_content_inequality, 32);

SIZE(pcclSharedState_t, 24);
ALIGN(pcclSharedState_t, 8);
AT(pcclSharedState_t, revision, 0);
AT(pcclSharedState_t, count, 8);
AT(pcclSharedState_t, infos, 16);

SIZE(pcclSharedStateSyncInfo_t, 16);
ALIGN(pcclSharedStateSyncInfo_t, 8);
AT(pcclSharedStateSyncInfo_t, tx_bytes, 0);
AT(pcclSharedStateSyncInfo_t, rx_bytes, 8);

SIZE(pcclBuildInfo_t, 1);
AT(pcclBuildInfo_t, has_cuda_support, 0);
