/* SPDX-License-Identifier: MIT
 *
 * The first program: two or more of these, started on any hosts, add up four numbers.
 * usage: first [IPV4:PORT]   (of the master; default $PCCL_MASTER, then 127.0.0.1:48148)
 */
#include <arpa/inet.h>
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

static ccoip_socket_address_t address(const char *text)
{
	ccoip_socket_address_t a = {.inet.protocol = inetIPv4};
	char ip[16], port[6];
	int end = 0;

	if (sscanf(text, "%15[0-9.]:%5[0-9]%n", ip, port, &end) != 2 || text[end] != '\0' ||
		inet_pton(AF_INET, ip, a.inet.ipv4.data) != 1 || atoi(port) < 1 ||
		atoi(port) > 65535) {
		fprintf(stderr, "\"%s\" is not IPV4:PORT\nusage: first [IPV4:PORT]\n", text);
		exit(2);
	}
	a.port = (uint16_t)atoi(port);
	return a;
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
	pcclCommCreateParams_t params = {
		.master_address = address(master ? master : "127.0.0.1:48148")};
	pcclReduceDescriptor_t sum = {
		.count = 4, .op = pcclSum, .src_descriptor.datatype = pcclFloat};
	float values[4] = {1, 2, 3, 4};
	pcclResult_t result;
	pcclReduceInfo_t info;
	pcclComm_t *comm;

	must(pcclInit(), "init");
	must(pcclCreateCommunicator(&params, &comm), "create");
	must(pcclConnect(comm), "connect");
	while (peers(comm) < 2) {
		usleep(100000);
		must(pcclUpdateTopology(comm), "let others in");
	}
	while ((result = pcclAllReduce(values, values, &sum, comm, &info)) ==
		pcclRankConnectionLost)
		fprintf(stderr, "a peer was lost: the others reduce again\n");
	must(result, "all-reduce");
	printf("sum over %u peers: %g %g %g %g\n", (unsigned)info.local_world_size,
		(double)values[0], (double)values[1], (double)values[2], (double)values[3]);
	must(pcclDestroyCommunicator(comm), "leave");
	return 0;
}
