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

/* CLOCK_MONOTONIC. */
uint64_t cc_now_ns(void);
/* Whether this process may run on more than one CPU, as of the first call. */
bool cc_has_cpus(void);
void cc_random_id(struct cc_id *ret);

/* A TCP socket, non-blocking, close-on-exec. Until cc_tcp_tune sees that its path is long it is
 * sent on without pacing, which costs throughput, and much of a processor, where round trips are
 * short; and so is what it accepts when it listens. The descriptor, or -1 + errno. */
int cc_tcp_socket(int family);
/* A listening TCP socket (cc_tcp_socket), non-blocking, close-on-exec, SO_REUSEADDR; IPv6 "any" is
 * dual-stack. When the port is taken the next higher is tried, at most `bump` times (0: this port
 * only; port 0: any). *addr gets the port. Returns the descriptor or a negative enum cc_err. */
int cc_listen_tcp(struct cc_addr *addr, unsigned bump);
#define CC_BIND_MS 10000u /* how long daemons wait for an address, and masters for a port */
/* The same, without bump. Tries again, and says so in the log: for in_use_ms if the port is in use
 * and nobody listens there, so that an outgoing connection of this host has been given it; for
 * missing_ms if this host has no such address (EADDRNOTAVAIL), which its network may bring yet. */
int cc_listen_tcp_patiently(struct cc_addr *addr, uint32_t in_use_ms, uint32_t missing_ms);
/* A listening AF_UNIX socket of this type (SOCK_STREAM, SOCK_SEQPACKET). A stale socket file, on
 * which nobody listens, is replaced; a live one is CC_ERR_EXIST. mode as for chmod. */
int cc_listen_unix(const char *path, int type, unsigned mode);
/* How long a TCP peer may leave data unacknowledged, or a silent one keepalive probes. */
#define CC_TCP_TIMEOUT_MS 3000u
/* Bytes of a TCP segment that every path should take: IPv4 promises packets of 576 bytes. */
#define CC_TCP_NARROW 536u
/* What is tried one after the other on a path that loses large packets. 0: the kernel's choice. */
#define CC_TCP_SIZES 3u
extern const uint16_t cc_tcp_sizes[CC_TCP_SIZES];
/* A path is long where a round trip takes so much or more. */
#define CC_HIGH_RTT_US 5000u
/* It is slow where one takes so much: bounds of a second or two are short for some of them. */
#define CC_PACED_RTT_US 200000u
/* So many of its round trips are added to them. */
#define CC_PACED_RTT_TRIPS 4u
/* The options of every connected TCP socket here: no delay, and the kernel gives the connection up
 * (ETIMEDOUT) when the other host has vanished for CC_TCP_TIMEOUT_MS, whether or not there is
 * something to send; on a high round-trip path, the host's own congestion control. 0 or CC_ERR_IO
 * (errno kept; other sockets than TCP). */
int cc_tcp_tune(int fd);
/* The kernel's smoothed round trip of a connected TCP socket; of one that has sent nothing yet,
 * that of its handshake. 0 for other sockets. */
uint32_t cc_tcp_round_trip_us(int fd);
/* By how much an answer on it may take longer than CC_PATH_MS, by what the kernel has measured: its
 * smoothed round trip and four deviations, at most CC_PATH_MAX_MS. Most of that is time in queues
 * of routers. Where many segments had to be sent again, CC_LOSSY_MS more: the kernel sends one that
 * is lost time and again ever more seldom. 0 on other ways, and for other sockets. */
#define CC_PATH_MS     500u
#define CC_PATH_MAX_MS 30000u
uint32_t cc_tcp_path_ms(int fd);
uint32_t cc_tcp_info_path_ms(uint32_t rtt_us, uint32_t deviation_us);
#define CC_LOSSY_MS 3000u
uint32_t cc_tcp_lossy_ms(uint32_t sent, uint32_t repeated);
/* Whether its congestion control is bbr, of whatever version. */
bool cc_tcp_has_bbr(int fd);
/* After cc_tcp_tune, where the caller himself judges a silence of up to ms: the kernel gives the
 * connection up CC_PATH_MAX_MS later than that. */
void cc_tcp_allow_silence(int fd, uint32_t ms);
/* A program may write to descriptors 0 to 2 although it has closed them, so nothing else may be
 * there. Moves fd to a higher number if it is one of these and there is room. Negative ones stay.
 */
int cc_fd_above_standard(int fd);
/* Throws away what has arrived on a socket. Bytes that nobody read would turn our close into an
 * error that hides the goodbye. */
void cc_discard_input(int sock);
/* The goodbye to who has connected and is not taken in: says it as far as it fits, and closes. */
void cc_reject(int sock, const void *buf, size_t len);
/* Opens /dev/null in place of those of the descriptors 0 to 2 that are closed. */
void cc_open_standard_fds(void);
/* Connects (blocking) to an AF_UNIX socket. Descriptor or a negative enum cc_err (errno kept). */
int cc_connect_unix(const char *path, int type);
/* An address of this host, port 0. */
struct cc_interface {
	struct cc_addr addr;
	uint8_t bits;  /* of its network */
	bool loopback; /* the interface is, not the address */
	char name[16];
};
/* Addresses of interfaces that are up, but 127.0.0.0/8, ::1 and those of a link alone: IPv4 first,
 * and those on the loopback interface last. How many there are, of which `max` were written; or
 * CC_ERR_IO. */
int cc_interfaces(struct cc_interface *ret, unsigned max);
/* The address of this host that a connected socket has. 0 or CC_ERR_IO. */
int cc_local_addr(int fd, struct cc_addr *ret);
/* Has this host the address? True where that cannot be found out. */
bool cc_addr_is_here(const struct cc_addr *a);
/* It has it no longer, and has others, loopback apart. Without a family: false. */
bool cc_addr_has_left(const struct cc_addr *a);
/* Is there a folder in the place of a file? fopen() takes it for an empty one. */
bool cc_is_folder(const char *path);
/* Are the first bits of both alike? */
bool cc_addr_in_net(const struct cc_addr *a, const struct cc_addr *net, uint8_t bits);

#endif
