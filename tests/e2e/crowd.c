/* SPDX-License-Identifier: MIT
 *
 * Many peers in one process, each with its own thread:
 *
 *	crowd master=A:P n=N group=G world=N [state=1]
 *
 * All peers connect at once, wait until the group has `world` peers, and reduce integers: first a
 * few, then more than an eager operation may have. With state=1 they synchronize before that: the
 * last peer of the process that is started with first=1 has the tensors that all others get. The
 * answer is a line, "ok" or the first failure; the exit status shows the same.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pccl.h"

#define TENSOR 100003u
#define STACK  ((size_t)256 << 10)

static struct {
	pcclCommCreateParams_t params;
	unsigned n, world_size;
	bool state, has_state;
	pthread_barrier_t made;
} crowd;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char complaint[512];

static bool good(unsigned peer, const char *call, pcclResult_t r)
{
	if (r == pcclSuccess)
		return true;
	pthread_mutex_lock(&lock);
	if (!complaint[0])
		snprintf(complaint, sizeof complaint, "peer %u: %s: code %d: %s", peer, call,
			(int)r, pcclGetLastError());
	pthread_mutex_unlock(&lock);
	return false;
}

static bool same(unsigned peer, const char *what, uint32_t is, uint32_t should_be)
{
	if (is == should_be)
		return true;
	pthread_mutex_lock(&lock);
	if (!complaint[0])
		snprintf(complaint, sizeof complaint, "peer %u: %s: %u, not %u", peer, what, is,
			should_be);
	pthread_mutex_unlock(&lock);
	return false;
}

static int view_of(pcclComm_t *c)
{
	int v = -1;

	(void)pcclGetAttribute(c, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &v);
	return v;
}

static bool gather(unsigned peer, pcclComm_t *c)
{
	while (view_of(c) < (int)crowd.world_size)
		if (!good(peer, "pcclUpdateTopology", pcclUpdateTopology(c)))
			return false;
	return same(peer, "world", (uint32_t)view_of(c), crowd.world_size);
}

static bool reduce(unsigned peer, pcclComm_t *c, uint64_t tag, size_t count)
{
	uint32_t *in = malloc(count * sizeof *in), *out = calloc(count, sizeof *out);
	pcclReduceDescriptor_t d = {.count = count, .op = pcclSum, .tag = tag};
	pcclReduceInfo_t info;
	bool fine = in && out;

	d.src_descriptor.datatype = pcclUint32;
	d.src_descriptor.distribution_hint = pcclDistributionNone;
	for (size_t i = 0; fine && i < count; i++)
		in[i] = (uint32_t)i + 1;
	fine = fine && good(peer, "pcclAllReduce", pcclAllReduce(in, out, &d, c, &info)) &&
	       same(peer, "info.world", info.local_world_size, crowd.world_size);
	for (size_t i = 0; fine && i < count; i++)
		fine = same(peer, "sum", out[i], ((uint32_t)i + 1) * crowd.world_size);
	free(in);
	free(out);
	return fine;
}

static bool synchronize(unsigned peer, pcclComm_t *c)
{
	bool has = crowd.has_state && peer == crowd.n - 1, fine;
	uint32_t *data = calloc(TENSOR, sizeof *data);
	pcclTensorInfo_t t = {
		.name = "weights", .data = data, .count = TENSOR, .datatype = pcclUint32};
	pcclSharedState_t s = {.revision = has ? 7 : 0, .count = 1, .infos = &t};
	pcclSharedStateSyncInfo_t info;

	for (size_t i = 0; has && i < TENSOR; i++)
		data[i] = (uint32_t)i * 2654435761u;
	fine = good(peer, "pcclSynchronizeSharedState",
		pcclSynchronizeSharedState(c, &s,
			has ? PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY
			    : PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY,
			&info));
	for (size_t i = 0; fine && i < TENSOR; i++)
		fine = same(peer, "tensor", data[i], (uint32_t)i * 2654435761u);
	free(data);
	return fine;
}

static void *run(void *arg)
{
	unsigned peer = (unsigned)(uintptr_t)arg;
	pcclComm_t *c = NULL;
	bool fine = good(peer, "pcclCreateCommunicator", pcclCreateCommunicator(&crowd.params, &c));

	pthread_barrier_wait(&crowd.made);
	fine = fine && good(peer, "pcclConnect", pcclConnect(c)) && gather(peer, c);
	fine = fine && (!crowd.state || synchronize(peer, c));
	fine = fine && reduce(peer, c, 1, 10) && reduce(peer, c, 2, 10) && reduce(peer, c, 3, 10);
	fine = fine && reduce(peer, c, 4, crowd.world_size > 256 ? 3000 : 300000);
	/* No peer leaves before all are done, because the others would lose a peer. */
	if (fine)
		(void)reduce(peer, c, 5, 1);
	if (c)
		(void)pcclDestroyCommunicator(c);
	return NULL;
}

static const char *word(int argc, char **argv, const char *key, const char *otherwise)
{
	size_t len = strlen(key);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], key, len) == 0 && argv[i][len] == '=')
			return argv[i] + len + 1;
	return otherwise;
}

static unsigned number(int argc, char **argv, const char *key, const char *otherwise)
{
	return (unsigned)strtoul(word(argc, argv, key, otherwise), NULL, 10);
}

int main(int argc, char **argv)
{
	const char *master = word(argc, argv, "master", ""), *colon = strrchr(master, ':');
	char ip[64] = "";
	pthread_attr_t attr;
	pthread_t *threads;

	if (!colon || colon - master >= (long)sizeof ip)
		return 2;
	memcpy(ip, master, (size_t)(colon - master));
	crowd.params.master_address.port = (uint16_t)strtoul(colon + 1, NULL, 10);
	crowd.params.master_address.inet.protocol = inetIPv4;
	if (inet_pton(AF_INET, ip, crowd.params.master_address.inet.ipv4.data) != 1)
		return 2;
	crowd.params.peer_group = number(argc, argv, "group", "0");
	crowd.params.p2p_connection_pool_size = 1;
	crowd.n = number(argc, argv, "n", "1");
	crowd.world_size = number(argc, argv, "world", "1");
	crowd.state = number(argc, argv, "state", "0") != 0;
	crowd.has_state = number(argc, argv, "first", "0") != 0;
	if (pcclInit() != pcclSuccess)
		return 2;
	threads = calloc(crowd.n, sizeof *threads);
	if (!threads)
		return 2;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_barrier_init(&crowd.made, NULL, crowd.n);
	for (unsigned i = 0; i < crowd.n; i++)
		if (pthread_create(&threads[i], &attr, run, (void *)(uintptr_t)i) != 0)
			return 2;
	for (unsigned i = 0; i < crowd.n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	puts(complaint[0] ? complaint : "ok");
	return complaint[0] != 0;
}
