/* SPDX-License-Identifier: MIT
 *
 * A high round-trip path between two hosts: a pair of TAP devices, each in a network namespace. A
 * packet that enters one device leaves the other one after a delay, or is lost.
 *
 * The devices exchange packets of up to 64 KiB with this program (cut.h), because one system call
 * for each packet of a wire would make this program the bottleneck.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "tests/lab/cut.h"

/* The bytes that can be in flight in one direction: 50 ms of 10 Gbit/s. */
#define RING_SIZE ((size_t)64 << 20)
#define BATCH     32 /* packets that are read from one end before the other end is read */
#define SECOND_NS UINT64_C(1000000000)
#define WIRE_MTU  1514u

struct options {
	uint64_t delay; /* ns in each direction */
	double loss;    /* probability of a loss of a wire packet */
	double rate;    /* bits per second; 0: as fast as this program can */
	uint64_t queue; /* ns that a packet may wait for earlier packets, if there is a rate */
	uint64_t seed;
};

struct record {
	uint64_t due;
	uint32_t len, packets; /* number of wire packets */
	uint8_t packet[];
};

/* One direction. */
struct seal_dir {
	const char *from_name, *to_name;
	int from, to;
	uint8_t *ring;       /* records, RING_SIZE bytes that are mapped twice in a row */
	uint64_t head, tail; /* bytes written and read since the start */
	uint64_t random;
	uint64_t busy_until;                        /* for the rate */
	uint64_t forwarded, lost, overrun, refused; /* numbers of wire packets */
};

static struct options opt;
static volatile sig_atomic_t ended;

static void on_signal(int signo)
{
	(void)signo;
	ended = 1;
}

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fputs("high_rtt: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(err));
	exit(1);
}

/* ---- the ends */

static int tap_open(const char *netns, const char *name)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	/* A device belongs to the namespace of the process that opens the file. */
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die("%s", netns);
	close(fd);
	if (strlen(name) >= sizeof ifr.ifr_name) {
		errno = ENAMETOOLONG;
		die("%s", name);
	}
	memcpy(ifr.ifr_name, name, strlen(name));
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	/* The kernel may leave to this program only the work that cut.c can do. */
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) < 0 ||
		ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0)
		die("TAP device %s", name);
	return fd;
}

static uint8_t *ring_map(void)
{
	int fd = memfd_create("high_rtt", MFD_CLOEXEC);
	uint8_t *at;

	if (fd < 0 || ftruncate(fd, (off_t)RING_SIZE) < 0)
		die("memory");
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	at = mmap(NULL, 2 * RING_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		die("memory");
	for (int i = 0; i < 2; i++)
		/* cppcheck-suppress leakReturnValNotUsed ; the address is known */
		if (mmap(at + (size_t)i * RING_SIZE, RING_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			die("memory");
	close(fd);
	return at;
}

/* ---- one direction */

/* Returns a number from 0 to 1. The sequence is xorshift64*. */
static double chance(struct seal_dir *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (double)(w->random * UINT64_C(0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

/* Returns whether a wire packet gets through. */
static bool passes(struct seal_dir *w, size_t bytes, uint64_t now)
{
	if (opt.loss > 0 && chance(w) < opt.loss) {
		w->lost++;
		return false;
	}
	if (opt.rate > 0) {
		uint64_t start = w->busy_until > now ? w->busy_until : now;

		if (start - now > opt.queue) {
			w->overrun++;
			return false;
		}
		w->busy_until = start + (uint64_t)((double)bytes * 8e9 / opt.rate);
	}
	return true;
}

static size_t record_size(size_t len)
{
	return (sizeof(struct record) + len + 7) & ~(size_t)7;
}

static struct record *record_at(const struct seal_dir *w, uint64_t position)
{
	return (struct record *)(void *)(w->ring + position % RING_SIZE);
}

static void put(struct seal_dir *w, const uint8_t *packet, size_t len, unsigned first, unsigned n,
	uint64_t now)
{
	struct record *r;

	if (w->head == w->tail) /* stay in the part of the ring that the processor has cached */
		w->head = w->tail = 0;
	if (w->head - w->tail + record_size(len) > RING_SIZE) {
		w->overrun += n;
		return;
	}
	r = record_at(w, w->head);
	r->due = (opt.rate > 0 ? w->busy_until : now) + opt.delay;
	r->len = (uint32_t)cut_take(packet, len, first, n, r->packet);
	r->packets = n;
	w->head += record_size(r->len);
}

/* Stores the segments that are not lost, in as few packets as possible. */
static void take(struct seal_dir *w, const uint8_t *packet, size_t len, uint64_t now)
{
	unsigned n = cut_segments(packet, len), first = 0;

	for (unsigned i = 0; i < n; i++) {
		if (passes(w, cut_segment_bytes(packet, len, i), now))
			continue;
		if (i > first)
			put(w, packet, len, first, i - first, now);
		first = i + 1;
	}
	if (n > first)
		put(w, packet, len, first, n - first, now);
}

static void take_all(struct seal_dir *w)
{
	static uint8_t packet[CUT_PACKET_MAX];

	for (int i = 0; i < BATCH; i++) {
		ssize_t len = read(w->from, packet, sizeof packet);

		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (len < 0)
			die("reading from %s", w->from_name);
		take(w, packet, (size_t)len, cc_now_ns());
	}
}

static void deliver_due(struct seal_dir *w, uint64_t now)
{
	while (w->tail != w->head) {
		struct record *r = record_at(w, w->tail);

		if (r->due > now)
			return;
		/* A device that is down accepts nothing, like a cable that is pulled. */
		if (write(w->to, r->packet, r->len) == (ssize_t)r->len)
			w->forwarded += r->packets;
		else
			w->refused += r->packets;
		w->tail += record_size(r->len);
	}
}

static void forward(struct seal_dir paths[2], const sigset_t *open)
{
	struct pollfd fds[2] = {
		{.fd = paths[0].from, .events = POLLIN}, {.fd = paths[1].from, .events = POLLIN}};

	while (!ended) {
		uint64_t now, due = UINT64_MAX;
		struct timespec wait;

		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				take_all(&paths[i]);
		now = cc_now_ns();
		for (int i = 0; i < 2; i++) {
			deliver_due(&paths[i], now);
			if (paths[i].tail != paths[i].head &&
				record_at(&paths[i], paths[i].tail)->due < due)
				due = record_at(&paths[i], paths[i].tail)->due;
		}
		wait = (struct timespec){
			(time_t)((due - now) / SECOND_NS), (long)((due - now) % SECOND_NS)};
		if (ppoll(fds, 2, due == UINT64_MAX ? NULL : &wait, open) < 0) {
			if (errno != EINTR)
				die("ppoll");
			fds[0].revents = fds[1].revents = 0;
		}
	}
}

static void report(const struct seal_dir *w)
{
	printf("%s to %s: forwarded=%" PRIu64 " lost=%" PRIu64 " overrun=%" PRIu64
	       " refused=%" PRIu64 "\n",
		w->from_name, w->to_name, w->forwarded, w->lost, w->overrun, w->refused);
}

/* ---- */

static _Noreturn void usage(int status)
{
	fputs("usage: high_rtt [OPTION...] NAMESPACE DEVICE NAMESPACE DEVICE\n"
	      "Makes two TAP devices, prints \"ready\" and forwards between them until SIGTERM.\n"
	      "A namespace is a file: /run/netns/NAME.\n"
	      "  --delay MS      delay of every packet, each way [0]\n"
	      "  --loss P        probability that a packet gets lost, each way [0]\n"
	      "  --seed N        seed of the random losses [0]\n"
	      "  --rate MBIT     megabits per second, each way [no limit]\n"
	      "  --queue N       full packets that can wait because of --rate [1000];\n"
	      "                  further packets get lost\n",
		status ? stderr : stdout);
	exit(status);
}

static double number(const char *text, double max)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= max)) {
		fprintf(stderr, "high_rtt: not a number from 0 to %g: %s\n", max, text);
		exit(2);
	}
	return v;
}

static void parse(int argc, char **argv)
{
	enum { DELAY = 1, LOSS, SEED, RATE, QUEUE, HELP };
	static const struct option known[] = {{"delay", required_argument, NULL, DELAY},
		{"loss", required_argument, NULL, LOSS}, {"seed", required_argument, NULL, SEED},
		{"rate", required_argument, NULL, RATE}, {"queue", required_argument, NULL, QUEUE},
		{"help", no_argument, NULL, HELP}, {0}};
	double queue = 1000;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case DELAY:
			opt.delay = (uint64_t)(number(optarg, 1e6) * 1e6);
			break;
		case LOSS:
			opt.loss = number(optarg, 1);
			break;
		case SEED:
			opt.seed = (uint64_t)number(optarg, UINT32_MAX);
			break;
		case RATE:
			opt.rate = number(optarg, 1e6) * 1e6;
			break;
		case QUEUE:
			queue = number(optarg, 1e6);
			break;
		default:
			usage(c == HELP ? 0 : 2);
		}
	}
	if (argc - optind != 4)
		usage(2);
	if (opt.rate > 0)
		opt.queue = (uint64_t)(queue * WIRE_MTU * 8e9 / opt.rate);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct seal_dir paths[2];
	pid_t parent = getppid();
	sigset_t block, open;
	int ends[2];

	parse(argc, argv);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
		return 1;
	prctl(PR_SET_TIMERSLACK, 1);
	/* A cable does not wait for a processor: late packets would arrive all at once and overrun
	 * the next queue. If real-time scheduling is not allowed, the machine should be idle. */
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, &open);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	for (int i = 0; i < 2; i++)
		ends[i] = tap_open(argv[optind + 2 * i], argv[optind + 2 * i + 1]);
	for (int i = 0; i < 2; i++)
		paths[i] = (struct seal_dir){.from_name = argv[optind + 2 * i + 1],
			.to_name = argv[optind + 2 * (1 - i) + 1],
			.from = ends[i],
			.to = ends[1 - i],
			.ring = ring_map(),
			/* not 0, and different for both directions */
			.random = ((opt.seed * 2 + (uint64_t)i) << 1 | 1) *
				  UINT64_C(0x9e3779b97f4a7c15)};
	puts("ready");
	fflush(stdout);
	forward(paths, &open);
	report(&paths[0]);
	report(&paths[1]);
	return 0;
}
