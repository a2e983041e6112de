/* SPDX-License-Identifier: MIT
 *
 * The hosts that peers are spread over: network namespaces joined by a bridge, or all this one.
 *
 * The namespaces have no names. They go with the last process in them and the descriptors here, so
 * nothing is left of them however this program ends.
 */
#ifndef BCH_HOSTS_H
#define BCH_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "pccl-bench/options.h"

struct bch_hosts {
	uint32_t n;
	bool separate;              /* namespaces */
	int home;                   /* the namespace of this process; -1 */
	int net[BCH_HOSTS_MAX + 1]; /* of each host; behind the last the one with the bridge; -1 */
};

/* Namespaces for more than one host if this is root, otherwise, and where it does not work,
 * loopback; why it did not work is told on standard error. */
void bch_hosts_make(struct bch_hosts *ret, uint32_t n);
void bch_hosts_close(struct bch_hosts *h);
/* Where the master belongs: h->n. The calling process goes there; BCH_HOME: back. 0 or CC_ERR_IO */
#define BCH_HOME UINT32_MAX
int bch_hosts_enter(const struct bch_hosts *h, uint32_t host);
/* The calling process, in the namespace of this host, has the CPUs of this host alone from now on,
 * where there is one for each: the scheduler would take all hosts for one, and can leave their
 * agents on one CPU, for a whole run, while their peers look for work on the others. Only if hosts
 * are namespaces; the master has all. */
void bch_hosts_confine(const struct bch_hosts *h, uint32_t host);
/* The address there, port 0. */
struct cc_addr bch_hosts_address(const struct bch_hosts *h, uint32_t host);

#define BCH_TITLE_SIZE 64
/* "2 hosts in network namespaces" */
const char *bch_hosts_title(const struct bch_hosts *h, char buf[BCH_TITLE_SIZE]);

#endif
