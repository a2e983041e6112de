/* SPDX-License-Identifier: MIT
 *
 * A high round-trip path between two hosts: a pair of TAP devices, each in a network namespace. A
 * packet that enters one device leaves the other one after a delay, or is lost. With more than two
 * devices the program is a switch, and each pair has its own delay.
 *
 * The devices exchange packets of up to 64 KiB with this program (cut.h), because one system call
 * for each packet of a wire would make this program the bottleneck.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
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
#define ENDS_MAX  33u

struct options {
	uint64_t delay;                       /* ns in each direction */
	uint64_t delays[ENDS_MAX * ENDS_MAX]; /* ns, a row for each end, if n_delays > 0 */
	unsigned n_delays;
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

struct end {
	const char *name;
	int fd;
	uint8_t mac[ETH_ALEN];
};

/* One direction between two ends. */
struct seal_dir {
	const struct end *from, *to;
	uint64_t delay;
	uint8_t *ring;       /* records, RING_SIZE bytes that are mapped twice in a row */
	uint64_t head, tail; /* bytes written and read since the start */
	uint64_t random;
	uint64_t busy_until;                        /* for the rate */
	uint64_t forwarded, lost, overrun, refused; /* numbers of wire packets */
};

static struct options opt;
static struct end ends[ENDS_MAX];
static struct seal_dir paths[ENDS_MAX * (ENDS_MAX - 1)]; /* in the order of path_between */
static unsigned n_ends, n_paths;
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

static void end_open(struct end *end, const char *netns, const char *name)
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
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) < 0)
		die("the address of TAP device %s", name);
	end->name = name;
	end->fd = fd;
	memcpy(end->mac, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
}

/* Behind one of two ends there may be many hosts, so all packets go to the other end. */
static bool end_gets(const struct end *end, const uint8_t *packet, size_t len)
{
	const uint8_t *to = packet + sizeof(struct virtio_net_hdr);

	return n_ends == 2 || len < sizeof(struct virtio_net_hdr) + ETH_ALEN || (to[0] & 1) ||
	       memcmp(to, end->mac, ETH_ALEN) == 0;
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
	r->due = (opt.rate > 0 ? w->busy_until : now) + w->delay;
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

static struct seal_dir *path_between(unsigned from, unsigned to)
{
	return &paths[from * (n_ends - 1) + to - (to > from)];
}

static void take_all(unsigned from)
{
	static uint8_t packet[CUT_PACKET_MAX];

	for (int i = 0; i < BATCH; i++) {
		ssize_t len = read(ends[from].fd, packet, sizeof packet);

		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (len < 0)
			die("reading from %s", ends[from].name);
		for (unsigned to = 0; to < n_ends; to++)
			if (to != from && end_gets(&ends[to], packet, (size_t)len))
				take(path_between(from, to), packet, (size_t)len, cc_now_ns());
	}
}

static void deliver_due(struct seal_dir *w, uint64_t now)
{
	while (w->tail != w->head) {
		struct record *r = record_at(w, w->tail);

		if (r->due > now)
			return;
		/* A device that is down accepts nothing, like a cable that is pulled. */
		if (write(w->to->fd, r->packet, r->len) == (ssize_t)r->len)
			w->forwarded += r->packets;
		else
			w->refused += r->packets;
		w->tail += record_size(r->len);
	}
}

static void forward(const sigset_t *open)
{
	struct pollfd fds[ENDS_MAX];

	for (unsigned i = 0; i < n_ends; i++)
		fds[i] = (struct pollfd){.fd = ends[i].fd, .events = POLLIN};
	while (!ended) {
		uint64_t now, due = UINT64_MAX;
		struct timespec wait;

		for (unsigned i = 0; i < n_ends; i++)
			if (fds[i].revents)
				take_all(i);
		now = cc_now_ns();
		for (unsigned i = 0; i < n_paths; i++) {
			deliver_due(&paths[i], now);
			if (paths[i].tail != paths[i].head &&
				record_at(&paths[i], paths[i].tail)->due < due)
				due = record_at(&paths[i], paths[i].tail)->due;
		}
		wait = (struct timespec){
			(time_t)((due - now) / SECOND_NS), (long)((due - now) % SECOND_NS)};
		if (ppoll(fds, n_ends, due == UINT64_MAX ? NULL : &wait, open) < 0) {
			if (errno != EINTR)
				die("ppoll");
			for (unsigned i = 0; i < n_ends; i++)
				fds[i].revents = 0;
		}
	}
}

static void report(const struct seal_dir *w)
{
	printf("%s to %s: forwarded=%" PRIu64 " lost=%" PRIu64 " overrun=%" PRIu64
	       " refused=%" PRIu64 "\n",
		w->from->name, w->to->name, w->forwarded, w->lost, w->overrun, w->refused);
}

/* ---- */

static _Noreturn void usage(int status)
{
	fputs("usage: high_rtt [OPTION...] NAMESPACE DEVICE NAMESPACE DEVICE [NAMESPACE "
	      "DEVICE...]\n"
	      "Makes TAP devices, prints \"ready\" and forwards between them until SIGTERM. A "
	      "packet\n"
	      "from one of more than two devices goes to the device with its Ethernet address.\n"
	      "A namespace is a file: /run/netns/NAME.\n"
	      "  --delay MS      delay of every packet, each way [0]\n"
	      "  --delays MS,... instead: a row of delays for each device, from this device to "
	      "the\n"
	      "                  first, the second, ...; N * N numbers for N devices\n"
	      "  --loss P        probability that a packet gets lost, each way [0]\n"
	      "  --seed N        seed of the random losses [0]\n"
	      "  --rate MBIT     megabits per second, each way of each pair [no limit]\n"
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

static uint64_t milliseconds(const char *text)
{
	return (uint64_t)(number(text, 1e6) * 1e6);
}

static void parse_delays(char *list)
{
	const char *word;

	for (opt.n_delays = 0; (word = strsep(&list, ",")) != NULL; opt.n_delays++) {
		if (opt.n_delays == sizeof opt.delays / sizeof opt.delays[0])
			usage(2);
		opt.delays[opt.n_delays] = milliseconds(word);
	}
}

static void parse(int argc, char **argv)
{
	enum { DELAY = 1, DELAYS, LOSS, SEED, RATE, QUEUE, HELP };
	static const struct option known[] = {{"delay", required_argument, NULL, DELAY},
		{"delays", required_argument, NULL, DELAYS},
		{"loss", required_argument, NULL, LOSS}, {"seed", required_argument, NULL, SEED},
		{"rate", required_argument, NULL, RATE}, {"queue", required_argument, NULL, QUEUE},
		{"help", no_argument, NULL, HELP}, {0}};
	double queue = 1000;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case DELAY:
			opt.delay = milliseconds(optarg);
			break;
		case DELAYS:
			parse_delays(optarg);
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
	if ((argc - optind) % 2)
		usage(2);
	n_ends = (unsigned)(argc - optind) / 2;
	n_paths = n_ends * (n_ends - 1);
	if (n_ends < 2 || n_ends > ENDS_MAX || (opt.n_delays && opt.n_delays != n_ends * n_ends))
		usage(2);
	if (opt.rate > 0)
		opt.queue = (uint64_t)(queue * WIRE_MTU * 8e9 / opt.rate);
}

static void make_path(unsigned from, unsigned to)
{
	struct seal_dir *w = path_between(from, to);

	*w = (struct seal_dir){.from = &ends[from],
		.to = &ends[to],
		.delay = opt.n_delays ? opt.delays[from * n_ends + to] : opt.delay,
		.ring = ring_map(),
		/* not 0, and different for all paths */
		.random = ((opt.seed * n_paths + (uint64_t)(w - paths)) << 1 | 1) *
			  UINT64_C(0x9e3779b97f4a7c15)};
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	pid_t parent = getppid();
	sigset_t block, open;

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
	for (unsigned i = 0; i < n_ends; i++)
		end_open(&ends[i], argv[(unsigned)optind + 2 * i],
			argv[(unsigned)optind + 2 * i + 1]);
	for (unsigned i = 0; i < n_ends; i++)
		for (unsigned k = 0; k < n_ends; k++)
			if (k != i)
				make_path(i, k);
	puts("ready");
	fflush(stdout);
	forward(&open);
	for (unsigned i = 0; i < n_paths; i++)
		report(&paths[i]);
	return 0;
}
