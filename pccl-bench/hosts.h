/* SPDX-License-Identifier: MIT
 *
 * The hosts on which the peers run: network namespaces joined by a bridge, or this host alone.
 *
 * The namespaces have no names. The kernel removes a namespace when its last process has ended and
 * its descriptor here is closed. So none is left, however this program ends.
 */
#ifndef BCH_HOSTS_H
#define BCH_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "pccl-bench/options.h"

struct bch_hosts {
	uint32_t n;
	bool separate;              /* true: namespaces */
	int home;                   /* the namespace of this process, or -1 */
	int net[BCH_HOSTS_MAX + 1]; /* the namespace of each host, then that of the bridge; or -1 */
};

/* Creates namespaces for more than one host if the user is root. Otherwise, and if this fails, all
 * hosts are on loopback. Prints the failure on standard error. */
void bch_hosts_make(struct bch_hosts *ret, uint32_t n);
void bch_hosts_close(struct bch_hosts *h);
/* Moves the calling process into the namespace of a host. h->n means the namespace of the master,
 * and BCH_HOME the process's own namespace. Returns 0 or CC_ERR_IO. */
#define BCH_HOME UINT32_MAX
int bch_hosts_enter(const struct bch_hosts *h, uint32_t host);
/* Limits the calling process, which is in the namespace of this host, to the CPUs of this host, if
 * there are enough CPUs for all hosts. Without this limit the scheduler would treat all hosts as
 * one, and could leave their agents on one CPU for a whole run, while their peers poll on the other
 * CPUs. Has an effect only if hosts are namespaces. The master may use all CPUs. */
void bch_hosts_confine(const struct bch_hosts *h, uint32_t host);
/* Returns the address of the host, with port 0. */
struct cc_addr bch_hosts_address(const struct bch_hosts *h, uint32_t host);

#define BCH_TITLE_SIZE 64
/* Returns a text like "2 hosts in network namespaces". */
const char *bch_hosts_title(const struct bch_hosts *h, char buf[BCH_TITLE_SIZE]);

#endif
