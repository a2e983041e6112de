/* SPDX-License-Identifier: MIT
 *
 * The parts that the examples of the documents leave out. A frame includes this file, then defines
 * main around #include "example-N.inc", the N-th example of its document. The program is called
 * with the address of a master, trains until it is killed, and prints "step world=N" after each
 * step.
 */
#ifndef FRAME_H
#define FRAME_H

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pccl.h>

enum { N_VALUES = 1000 };

static pcclComm_t *comm;
static float values[N_VALUES];

static inline void must(pcclResult_t result)
{
	if (result != pcclSuccess)
		errx(1, "%s: %s", pcclGetErrorString(result), pcclGetLastError());
}

/* Parses the address A.B.C.D:PORT. Ends the program if this fails. */
static inline pcclCommCreateParams_t params_of(const char *master)
{
	pcclCommCreateParams_t params = {0};
	char ip[16], port[6];
	int end = 0;

	if (sscanf(master, "%15[0-9.]:%5[0-9]%n", ip, port, &end) != 2 || master[end] != '\0' ||
		inet_pton(AF_INET, ip, params.master_address.inet.ipv4.data) != 1 ||
		atoi(port) > UINT16_MAX)
		errx(2, "not an address: %s", master);
	params.master_address.port = (uint16_t)atoi(port);
	return params;
}

static inline void join(const char *master)
{
	pcclCommCreateParams_t params = params_of(master);

	must(pcclInit());
	must(pcclCreateCommunicator(&params, &comm));
	must(pcclConnect(comm));
}

static inline int world(void)
{
	int n;

	must(pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &n));
	return n;
}

/* The work of a step. This test is about the calls between the steps. */
static inline void compute(float *gradients)
{
	struct timespec moment = {.tv_nsec = 2000000};

	nanosleep(&moment, NULL);
	for (size_t i = 0; i < N_VALUES; i++)
		gradients[i] = (float)i;
}

static inline void step_done(void)
{
	printf("step world=%d\n", world());
	fflush(stdout);
}

#endif
