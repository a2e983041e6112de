/* SPDX-License-Identifier: MIT
 *
 * The first program: two or more of these, started anywhere, add up four numbers.
 * usage: first [ADDR:PORT]   (of the master; default $PCCL_MASTER, then 127.0.0.1:48148)
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pccl.h>

static void must(pcclResult_t result, const char *what)
{
	if (result != pcclSuccess) {
		fprintf(stderr, "%s: %s\n", what, pcclGetLastError());
		exit(1);
	}
}

static int peers(const pcclComm_t *comm)
{
	int n;

	must(pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &n), "ask");
	return n;
}

int main(int argc, char **argv)
{
	const char *master = argc > 1 ? argv[1] : getenv("PCCL_MASTER");
	pcclCommCreateParams_t params = {0};
	uint8_t *ip = params.master_address.inet.ipv4.data;
	pcclReduceDescriptor_t sum = {
		.count = 4, .op = pcclSum, .src_descriptor.datatype = pcclFloat};
	float values[4] = {1, 2, 3, 4};
	pcclResult_t result;
	pcclReduceInfo_t info;
	pcclComm_t *comm;

	/* Nobody answers at an address that is out of range. */
	if (sscanf(master ? master : "127.0.0.1:48148", "%hhu.%hhu.%hhu.%hhu:%hu", &ip[0], &ip[1],
		    &ip[2], &ip[3], &params.master_address.port) != 5) {
		fprintf(stderr, "usage: first [ADDR:PORT]\n");
		return 2;
	}
	must(pcclInit(), "init");
	must(pcclCreateCommunicator(&params, &comm), "create");
	must(pcclConnect(comm), "connect");
	while (peers(comm) < 2) {
		usleep(100000);
		must(pcclUpdateTopology(comm), "let others in");
	}
	while ((result = pcclAllReduce(values, values, &sum, comm, &info)) ==
		pcclRankConnectionLost)
		fprintf(stderr, "a peer was lost, once more without it\n");
	must(result, "all-reduce");
	printf("sum over %u peers: %g %g %g %g\n", (unsigned)info.local_world_size,
		(double)values[0], (double)values[1], (double)values[2], (double)values[3]);
	must(pcclDestroyCommunicator(comm), "leave");
	return 0;
}
