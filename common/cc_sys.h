/* SPDX-License-Identifier: MIT
 *
 * Small system helpers: clock, random bytes, sockets.
 */
#ifndef CC_SYS_H
#define CC_SYS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"

/* Returns the time of CLOCK_MONOTONIC. */
uint64_t cc_now_ns(void);
/* May this process run on more than one CPU? The first call determines the answer. */
bool cc_has_cpus(void);
void cc_random_id(struct cc_id *ret);

/* Creates a TCP socket, non-blocking and close-on-exec. It sends without pacing until cc_tcp_tune
 * finds a high round-trip path, because pacing costs throughput and much processor time where round
 * trips are short. Connections that a listening socket accepts inherit this. Returns the
 * descriptor, or -1 with errno. */
int cc_tcp_socket(int family);
/* Opens a listening TCP socket (cc_tcp_socket) with SO_REUSEADDR. The IPv6 address "any" accepts
 * IPv4, too. If the port is in use, tries the next higher port, at most `bump` times. With port 0
 * the kernel chooses a port. *addr gets the port. Returns the descriptor or a negative enum cc_err.
 */
int cc_listen_tcp(struct cc_addr *addr, unsigned bump);
#define CC_BIND_MS 10000u /* how long daemons wait for an address, and masters for a port, too */
/* Does the same as cc_listen_tcp for this port only, but waits for the address, and logs a warning.
 * It tries again for in_use_ms if the port is in use although nobody listens there, because then an
 * outgoing connection of this host uses the port. It tries again for missing_ms if this host does
 * not have the address (EADDRNOTAVAIL), because its network may still be starting. */
int cc_listen_tcp_patiently(struct cc_addr *addr, uint32_t in_use_ms, uint32_t missing_ms);
/* Opens a listening AF_UNIX socket of this type (SOCK_STREAM, SOCK_SEQPACKET). Replaces a stale
 * socket file, on which nobody listens. Returns CC_ERR_EXIST if a program listens there. `mode` is
 * as for chmod. */
int cc_listen_unix(const char *path, int type, unsigned mode);
/* The time for which the other host of a TCP connection may leave data, or keepalive probes,
 * unacknowledged. */
#define CC_TCP_TIMEOUT_MS 3000u
/* The size in bytes of a TCP segment that should pass on every path, because IPv4 guarantees
 * packets of 576 bytes. */
#define CC_TCP_NARROW 536u
/* The segment sizes that are tried one after the other on a path that loses large packets. 0 means
 * that the kernel chooses. */
#define CC_TCP_SIZES 3u
extern const uint16_t cc_tcp_sizes[CC_TCP_SIZES];
/* A high round-trip path has at least this round trip. */
#define CC_HIGH_RTT_US 5000u
/* A path with at least this round trip is slow. Bounds of one or two seconds are too short for some
 * of these paths. */
#define CC_PACED_RTT_US 200000u
/* The number of round trips that is added to bounds of one or two seconds on a slow path. */
#define CC_PACED_RTT_TRIPS 4u
/* Sets the options of every connected TCP socket of this project. Data is sent without delay. The
 * kernel gives the connection up (ETIMEDOUT) when the other host has not answered for
 * CC_TCP_TIMEOUT_MS, even if there is no data to send. On a high round-trip path the socket gets
 * the congestion control that the host's administrator has chosen. Returns 0, or CC_ERR_IO with
 * errno for sockets that are not TCP. */
int cc_tcp_tune(int fd);
/* Returns the kernel's smoothed round trip of a connected TCP socket. Before any data was sent it
 * is the round trip of the handshake. Returns 0 for other sockets. */
uint32_t cc_tcp_round_trip_us(int fd);
/* Returns the path allowance of a socket: the time by which an answer may take longer than
 * CC_PATH_MS. An answer is assumed to take the kernel's smoothed round trip plus four deviations;
 * the result is at most CC_PATH_MAX_MS. Most of this time is spent in queues of routers. If many
 * segments had to be sent again, the result is CC_LOSSY_MS higher, because the kernel waits longer
 * after each loss of the same segment. Returns 0 for a path that is neither slower than CC_PATH_MS
 * nor lossy, and for sockets that are not TCP. */
#define CC_PATH_MS     500u
#define CC_PATH_MAX_MS 30000u
uint32_t cc_tcp_path_ms(int fd);
uint32_t cc_tcp_info_path_ms(uint32_t rtt_us, uint32_t deviation_us);
#define CC_LOSSY_MS 3000u
uint32_t cc_tcp_lossy_ms(uint32_t sent, uint32_t repeated);
/* Does the socket use the congestion control bbr, in any version? */
bool cc_tcp_has_bbr(int fd);
/* Lets the kernel give the connection up only after ms + CC_PATH_MAX_MS, because the caller itself
 * checks for a silence of ms. Call this after cc_tcp_tune. */
void cc_tcp_allow_silence(int fd, uint32_t ms);
/* Moves fd to a higher number if it is 0, 1 or 2 and if a higher number is free. A program may
 * write to these descriptors although it has closed them, so they must not have another meaning.
 * Returns the new descriptor, or fd itself, which may be negative. */
int cc_fd_above_standard(int fd);
/* Throws away the bytes that have arrived on a socket. Unread bytes would turn a later close into a
 * reset, and the other side could then lose our last bytes. */
void cc_discard_input(int sock);
/* Refuses a connection: sends as much of buf as fits, and closes the socket. */
void cc_reject(int sock, const void *buf, size_t len);
/* Opens /dev/null for each of the descriptors 0 to 2 that is closed. */
void cc_open_standard_fds(void);
/* Connects to an AF_UNIX socket and may block. Returns the descriptor, or a negative enum cc_err
 * with errno. */
int cc_connect_unix(const char *path, int type);
/* An address of this host. The port is 0. */
struct cc_interface {
	struct cc_addr addr;
	uint8_t bits;  /* prefix length of its network */
	bool loopback; /* the interface is the loopback interface */
	char name[16];
};
/* Lists the addresses of the interfaces that are up, without 127.0.0.0/8, ::1 and link-local
 * addresses. IPv4 comes first, and within each family the loopback interface comes last. Writes at
 * most `max` addresses. Returns the number of all addresses, or CC_ERR_IO. */
int cc_interfaces(struct cc_interface *ret, unsigned max);
/* Writes the local address of a connected socket. Returns 0 or CC_ERR_IO. */
int cc_local_addr(int fd, struct cc_addr *ret);
/* Does this host have the address? Returns true if this cannot be found out. */
bool cc_addr_is_here(const struct cc_addr *a);
/* Has this host lost the address, while it has other addresses outside of the loopback interface?
 * Returns false for an address without a family. */
bool cc_addr_has_left(const struct cc_addr *a);
/* Is the path a folder? fopen() opens a folder as if it were an empty file. */
bool cc_is_folder(const char *path);
/* Are the first `bits` bits of both addresses equal? */
bool cc_addr_in_net(const struct cc_addr *a, const struct cc_addr *net, uint8_t bits);

#endif
