/* SPDX-License-Identifier: MIT
 *
 * Tests the real pcclctl with an admin server that has known tables, and with servers that
 * misbehave.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/cc_admin.h"
#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pcclctl/print.h"
#include "pcclctl/progress.h"
#include "pcclctl/target.h"
#include "proto/wire_frame.h"
#include "tests/common/testlib.h"
#include "tests/ctl/suites.h"

static char dir[64], path[96];
static pid_t child;

static void make_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/pccl-test-ctl-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/admin.sock", dir);
	child = 0;
}

static void remove_dir(void)
{
	int status;

	if (child > 0) {
		kill(child, SIGTERM);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* ---- the program ---- */

static char out[65536];

static const char *asked = "master";

/* Runs pcclctl with --master (or the option in `asked`), the path of the socket, and these
 * arguments. The output of pcclctl is in `out`. Returns the exit status. */
static int ctl(const char *arguments)
{
	const char *build = getenv("abs_top_builddir");
	char command[512];
	size_t n;
	FILE *f;
	int status;

	snprintf(command, sizeof command, "exec %s/pcclctl/pcclctl --%s %s %s 2>&1",
		build ? build : ".", asked, path, arguments);
	f = popen(command, "r"); /* NOLINT(cert-env33-c): the test itself has written the command */
	ck_assert_ptr_nonnull(f);
	n = fread(out, 1, sizeof out - 1, f);
	out[n] = '\0';
	status = pclose(f);
	ck_assert_msg(WIFEXITED(status), "ended by a signal: %s", out);
	return WEXITSTATUS(status);
}

/* ---- a good server ---- */

static void fill_peers(struct wa_reply *r)
{
	struct wa_table *t = wa_table_add(r, "peers");

	wa_col_add(t, "rank", WA_KIND_COUNT);
	wa_col_add(t, "name", WA_KIND_TEXT);
	wa_col_add(t, "sent", WA_KIND_BYTES);
	wa_col_add(t, "since", WA_KIND_NS);
	wa_col_add(t, "good", WA_KIND_BOOL);
	wa_col_add(t, "waiting", WA_KIND_TEXT);
	wa_row_add(t);
	wa_set_number(t, 0, 0);
	wa_set_text(t, 1, "träner");
	wa_set_number(t, 2, 1536);
	wa_set_number(t, 3, 250000000);
	wa_set_number(t, 4, 1);
	wa_row_add(t);
	wa_set_number(t, 0, 10);
	wa_set_text(t, 1, "b");
	wa_set_number(t, 2, UINT64_MAX);
	wa_set_number(t, 3, 7);
	wa_set_text(t, 5, "for \"x\" to vote");
}

/* Adds a key, a key without a hash, and the number of keys that are left out. */
static void fill_keys(struct wa_reply *r)
{
	struct wa_table *t = wa_table_add(r, "keys");

	wa_col_add(t, "key", WA_KIND_TEXT);
	wa_col_add(t, "more", WA_KIND_COUNT);
	wa_col_add(t, "hash", WA_KIND_TEXT);
	wa_col_add(t, "may_differ", WA_KIND_BOOL);
	wa_row_add(t);
	wa_set_text(t, 0, "wte.gewichte-ä");
	wa_set_text(t, 2, "00ff00ff00ff00ff");
	wa_row_add(t);
	wa_set_text(t, 0, "rng");
	wa_set_number(t, 3, 1);
	wa_row_add(t);
	wa_set_number(t, 1, 9000);
}

/* Answers like an agent: tables with one row, two rows, no row, and three rows. */
static void fill_state(struct wa_reply *r)
{
	struct wa_table *t = wa_table_add(r, "transfers");

	wa_col_add(t, "sequence", WA_KIND_COUNT);
	wa_col_add(t, "bytes", WA_KIND_BYTES);
	wa_col_add(t, "rate", WA_KIND_RATE);
	wa_col_add(t, "left", WA_KIND_NS);
	wa_row_add(t);
	wa_set_number(t, 0, 7);
	wa_set_number(t, 1, UINT64_C(1) << 30);
	wa_set_number(t, 2, 117440512);
	wa_set_number(t, 3, 2500000000);
	t = wa_table_add(r, "sources");
	wa_col_add(t, "host", WA_KIND_TEXT);
	wa_col_add(t, "rate", WA_KIND_RATE);
	wa_col_add(t, "left", WA_KIND_NS);
	wa_row_add(t);
	wa_set_text(t, 0, "one");
	wa_set_number(t, 1, 1023);
	wa_set_number(t, 2, WA_UNKNOWN);
	wa_row_add(t);
	wa_set_text(t, 0, "two");
	wa_set_number(t, 1, WA_UNKNOWN);
	t = wa_table_add(r, "receivers");
	wa_col_add(t, "comm", WA_KIND_COUNT);
	fill_keys(r);
}

static void fill_rings(struct wa_reply *r)
{
	static const char *const hosts[] = {"a \"1\"", "b", "c"};
	struct wa_table *t = wa_table_add(r, "rings");

	wa_col_add(t, "group", WA_KIND_COUNT);
	wa_col_add(t, "ring", WA_KIND_COUNT);
	wa_col_add(t, "host", WA_KIND_TEXT);
	wa_col_add(t, "next", WA_KIND_TEXT);
	wa_col_add(t, "rate", WA_KIND_BITS);
	wa_col_add(t, "bottleneck", WA_KIND_TEXT);
	for (uint32_t i = 0; i < 3; i++) {
		wa_row_add(t);
		wa_set_number(t, 0, 7);
		wa_set_number(t, 1, 1);
		wa_set_text(t, 2, "%s", hosts[i]);
		wa_set_text(t, 3, "%s", hosts[(i + 1) % 3]);
		wa_set_number(t, 4, i == 2 ? WA_UNKNOWN : UINT64_C(1000000000) >> i);
		wa_set_text(t, 5, "%s", i == 1 ? "bottleneck" : "");
	}
}

static void fill(void *arg, const struct wa_request *q, struct wa_reply *r)
{
	struct wa_table *t;

	(void)arg;
	switch (q->verb) {
	case WA_STATUS:
		t = wa_table_add(r, "status");
		wa_col_add(t, "epoch", WA_KIND_COUNT);
		wa_col_add(t, "memory", WA_KIND_BYTES);
		wa_col_add(t, "waiting_for", WA_KIND_TEXT);
		wa_row_add(t);
		wa_set_number(t, 0, 12);
		wa_set_number(t, 1, 3 << 20);
		t = wa_table_add(r, "runs");
		wa_col_add(t, "run", WA_KIND_TEXT);
		wa_row_add(t);
		wa_set_text(t, 0, "one");
		wa_row_add(t);
		wa_set_text(t, 0, "two");
		t = wa_table_add(r, "recovery");
		wa_col_add(t, "awaited", WA_KIND_TEXT);
		wa_row_add(t);
		wa_set_text(t, 0, "host-1");
		break;
	case WA_PEERS:
		fill_peers(r);
		break;
	case WA_OPS:
		t = wa_table_add(r, "ops");
		wa_col_add(t, "tag", WA_KIND_COUNT);
		break;
	case WA_STATE:
		fill_state(r);
		break;
	case WA_SET_MASTER:
		t = wa_table_add(r, "runs");
		wa_col_add(t, "from", WA_KIND_TEXT);
		wa_col_add(t, "to", WA_KIND_TEXT);
		wa_col_add(t, "now", WA_KIND_BOOL);
		wa_col_add(t, "run", WA_KIND_COUNT);
		wa_row_add(t);
		wa_set_text(t, 0, "%s", q->from);
		wa_set_text(t, 1, "%s", q->to);
		wa_set_number(t, 2, q->now);
		wa_set_number(t, 3, q->run);
		break;
	case WA_TOPOLOGY:
		fill_rings(r);
		break;
	case WA_BANDWIDTH:
	case WA_MEASURE:
		t = wa_table_add(r, q->verb == WA_MEASURE ? "measure" : "links");
		wa_col_add(t, "rate", WA_KIND_BITS);
		wa_row_add(t);
		wa_set_number(t, 0, 512000000);
		break;
	case WA_PROGRESS:
		t = wa_table_add(r, "progress");
		wa_col_add(t, "round", WA_KIND_COUNT);
		wa_col_add(t, "rounds", WA_KIND_COUNT);
		wa_col_add(t, "left", WA_KIND_NS);
		break;
	case WA_RESET:
		t = wa_table_add(r, "reset");
		wa_col_add(t, "force", WA_KIND_BOOL);
		wa_row_add(t);
		wa_set_number(t, 0, q->force);
		break;
	}
}

static bool progress_of(
	uint64_t round, uint64_t rounds, uint64_t left, char line[CTL_PROGRESS_SIZE])
{
	struct wa_reply r = {.n_tables = 0};
	struct wa_table *t = wa_table_add(&r, "progress");
	bool ok;

	wa_col_add(t, "round", WA_KIND_COUNT);
	wa_col_add(t, "rounds", WA_KIND_COUNT);
	wa_col_add(t, "left", WA_KIND_NS);
	if (rounds > 0) {
		wa_row_add(t);
		wa_set_number(t, 0, round);
		wa_set_number(t, 1, rounds);
		wa_set_number(t, 2, left);
	}
	ok = ctl_progress_line(&r, line);
	wa_reply_clear(&r);
	return ok;
}

START_TEST(progress_is_a_bar)
{
	char line[CTL_PROGRESS_SIZE];

	ck_assert(progress_of(1, 4, 4500000000, line));
	ck_assert_str_eq(
		line, "measuring links [........................] round 1 of 4, about 4.5 s left");
	ck_assert(progress_of(4, 4, 0, line));
	ck_assert_str_eq(
		line, "measuring links [##################......] round 4 of 4, about 0 ns left");
	ck_assert(!progress_of(0, 0, 0, line));
	ck_assert(!progress_of(5, 4, 0, line));
}
END_TEST

static void deny(void *arg, const struct wa_request *q, struct wa_reply *r)
{
	(void)arg;
	(void)q;
	r->denied = true;
	strcpy(r->error, "you may not");
}

/* Adds one row more than fits into a message. */
static void fill_too_much(void *arg, const struct wa_request *q, struct wa_reply *r)
{
	struct wa_table *t = wa_table_add(r, "peers");

	(void)arg;
	(void)q;
	wa_col_add(t, "text", WA_KIND_TEXT);
	for (unsigned i = 0; i < 2100; i++) {
		wa_row_add(t);
		wa_set_text(t, 0, "%0500u", i);
	}
}

static void on_signal(void *arg, int signo)
{
	(void)signo;
	cc_loop_stop(arg);
}

static void serve(void (*fn)(void *arg, const struct wa_request *q, struct wa_reply *r))
{
	int fd = cc_listen_unix(path, SOCK_STREAM, 0600);
	struct cc_admin *a;
	struct cc_loop *l;
	sigset_t term;

	ck_assert_int_ge(fd, 0);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child > 0) {
		close(fd);
		return;
	}
	signal(SIGPIPE, SIG_IGN);
	l = cc_loop_new();
	if (!l || cc_loop_signal(l, SIGTERM, on_signal, l) < 0)
		_exit(1);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	a = cc_admin_new(l, fd, "test-daemon", fn, NULL);
	if (!a || cc_loop_run(l) < 0)
		_exit(1);
	cc_admin_free(a);
	cc_loop_free(l);
	exit(0);
}

START_TEST(tables_are_printed_for_people)
{
	serve(fill);
	ck_assert_int_eq(ctl("peers"), EX_OK);
	ck_assert_str_eq(out, "RANK  NAME        SENT     SINCE  GOOD  WAITING\n"
			      "   0  träner   1.5 KiB  250.0 ms  yes   -\n"
			      "  10  b       16.0 EiB      7 ns  no    for \"x\" to vote\n");
	ck_assert_int_eq(ctl("ops"), EX_OK);
	ck_assert_str_eq(out, "no ops\n");
	ck_assert_int_eq(ctl("status"), EX_OK);
	ck_assert_str_eq(out, "test-daemon " PACKAGE_VERSION "\n"
			      "status\n"
			      "epoch:       12\n"
			      "memory:      3.0 MiB\n"
			      "waiting_for: -\n"
			      "\n"
			      "runs\n"
			      "RUN\n"
			      "one\n"
			      "two\n"
			      "\n"
			      "recovery\n"
			      "AWAITED\n"
			      "host-1\n");
}
END_TEST

START_TEST(tables_are_printed_as_json)
{
	serve(fill);
	ck_assert_int_eq(ctl("--json peers"), EX_OK);
	ck_assert_str_eq(out, "{\n"
			      "  \"daemon\":\"test-daemon\",\n"
			      "  \"version\":\"" PACKAGE_VERSION "\",\n"
			      "  \"peers\":[\n"
			      "    {\n"
			      "      \"rank\":0,\n"
			      "      \"name\":\"träner\",\n"
			      "      \"sent\":1536,\n"
			      "      \"since\":250000000,\n"
			      "      \"good\":true,\n"
			      "      \"waiting\":\"\"\n"
			      "    },\n"
			      "    {\n"
			      "      \"rank\":10,\n"
			      "      \"name\":\"b\",\n"
			      "      \"sent\":18446744073709551615,\n"
			      "      \"since\":7,\n"
			      "      \"good\":false,\n"
			      "      \"waiting\":\"for \\\"x\\\" to vote\"\n"
			      "    }\n"
			      "  ]\n"
			      "}\n");
	ck_assert_int_eq(ctl("ops --json"), EX_OK);
	ck_assert_ptr_nonnull(strstr(out, "\"ops\":["));
}
END_TEST

START_TEST(shared_state_is_printed_for_people)
{
	serve(fill);
	ck_assert_int_eq(ctl("state"), EX_OK);
	ck_assert_str_eq(out, "test-daemon " PACKAGE_VERSION "\n"
			      "transfers\n"
			      "SEQUENCE    BYTES         RATE   LEFT\n"
			      "       7  1.0 GiB  112.0 MiB/s  2.5 s\n"
			      "\n"
			      "sources\n"
			      "HOST      RATE  LEFT\n"
			      "one   1023 B/s     -\n"
			      "two          -  0 ns\n"
			      "\n"
			      "receivers\n"
			      "no receivers\n"
			      "\n"
			      "keys\n"
			      "KEY             MORE  HASH              MAY_DIFFER\n"
			      "wte.gewichte-ä     0  00ff00ff00ff00ff  no\n"
			      "rng                0  -                 yes\n"
			      "-               9000  -                 no\n");
}
END_TEST

START_TEST(shared_state_is_printed_as_json)
{
	serve(fill);
	ck_assert_int_eq(ctl("--json state"), EX_OK);
	ck_assert_ptr_nonnull(strstr(out, "      \"rate\":117440512,\n"
					  "      \"left\":2500000000\n"));
	ck_assert_ptr_nonnull(strstr(out, "      \"rate\":1023,\n"
					  "      \"left\":null\n"));
	ck_assert_ptr_nonnull(strstr(out, "      \"rate\":null,\n"
					  "      \"left\":0\n"));
	ck_assert_ptr_nonnull(strstr(out, "\"receivers\":["));
	ck_assert_ptr_nonnull(strstr(out, "      \"key\":\"wte.gewichte-ä\",\n"
					  "      \"more\":0,\n"
					  "      \"hash\":\"00ff00ff00ff00ff\",\n"
					  "      \"may_differ\":false\n"));
	ck_assert_ptr_nonnull(strstr(out, "      \"key\":\"\",\n"
					  "      \"more\":9000,\n"
					  "      \"hash\":\"\",\n"));
}
END_TEST

START_TEST(answer_that_does_not_fit_is_reported)
{
	serve(fill_too_much);
	ck_assert_int_eq(ctl("peers"), EX_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(out, "exceeds the longest message"));
}
END_TEST

START_TEST(set_master_sends_its_request)
{
	asked = "agent";
	serve(fill);
	ck_assert_int_eq(ctl("agent set-master 192.0.2.1:1 192.0.2.2:2"), EX_OK);
	ck_assert_str_eq(out, "FROM         TO           NOW  RUN\n"
			      "192.0.2.1:1  192.0.2.2:2  no     0\n");
	ck_assert_int_eq(ctl("agent set-master --now '[::1]:1' none"), EX_OK);
	ck_assert_str_eq(out, "FROM     TO  NOW  RUN\n"
			      "[::1]:1  -   yes    0\n");
	ck_assert_int_eq(ctl("agent set-master 192.0.2.2:2 --run 7"), EX_OK);
	ck_assert_str_eq(out, "FROM  TO           NOW  RUN\n"
			      "-     192.0.2.2:2  no     7\n");
}
END_TEST

START_TEST(reset_sends_its_request)
{
	asked = "master";
	serve(fill);
	ck_assert_int_eq(ctl("reset"), EX_OK);
	ck_assert_str_eq(out, "FORCE\nno\n");
	ck_assert_int_eq(ctl("reset --yes"), EX_OK);
	ck_assert_str_eq(out, "FORCE\nyes\n");
	ck_assert_int_eq(ctl("status --yes"), EX_USAGE);
	asked = "agent";
	ck_assert_int_eq(ctl("reset"), EX_USAGE);
}
END_TEST

START_TEST(topology_is_printed_as_a_table_and_as_a_graph)
{
	asked = "master";
	serve(fill);
	ck_assert_int_eq(ctl("topology"), EX_OK);
	ck_assert_ptr_nonnull(strstr(out, "500 Mbit/s  bottleneck\n"));
	ck_assert_int_eq(ctl("topology --dot"), EX_OK);
	ck_assert_str_eq(out, "digraph topology {\n"
			      "\tsubgraph cluster_7 {\n"
			      "\t\tlabel=\"group 7\"\n"
			      "\t\t\"a \\\"1\\\"\" -> \"b\" [label=\"1 Gbit/s\", color=blue]\n"
			      "\t\t\"b\" -> \"c\" [label=\"500 Mbit/s\", color=blue, style=bold]\n"
			      "\t\t\"c\" -> \"a \\\"1\\\"\" [label=\"\", color=blue]\n"
			      "\t}\n"
			      "}\n");
	ck_assert_int_eq(ctl("topology measure"), EX_OK);
	ck_assert_str_eq(out, "      RATE\n512 Mbit/s\n");
	ck_assert_int_eq(ctl("bandwidth --json"), EX_OK);
	ck_assert_ptr_nonnull(strstr(out, "\"rate\":512000000"));
	ck_assert_int_eq(ctl("bandwidth --dot"), EX_USAGE);
	ck_assert_int_eq(ctl("topology --dot --json"), EX_USAGE);
	ck_assert_int_eq(ctl("topology --yes"), EX_USAGE);
	ck_assert_int_eq(ctl("topology weigh"), EX_USAGE);
	asked = "agent";
	ck_assert_int_eq(ctl("topology"), EX_USAGE);
}
END_TEST

START_TEST(denied_access_has_its_own_exit_status)
{
	asked = "agent";
	serve(deny);
	ck_assert_int_eq(ctl("agent set-master 192.0.2.1:1 192.0.2.2:2"), EX_NOPERM);
	ck_assert_ptr_nonnull(strstr(out, "you may not"));
}
END_TEST

START_TEST(wrong_set_master_arguments_are_refused)
{
	static const char *const wrong[] = {"agent", "agent status", "agent set-master",
		"agent set-master 192.0.2.1:1", "agent set-master 192.0.2.1 192.0.2.2:1",
		"agent set-master 192.0.2.1:1 192.0.2.2", "agent set-master none 192.0.2.1:1",
		"agent set-master host:1 192.0.2.1:1", "agent set-master --run 0 192.0.2.1:1",
		"agent set-master --run x 192.0.2.1:1", "agent set-master --run 4294967296 none",
		"agent set-master --run 1 192.0.2.1:1 192.0.2.2:2", "set-master", "--now status",
		"--run 1 peers", "agent set-master 192.0.2.1:1 192.0.2.2:2 192.0.2.3:3"};

	asked = "agent";
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		ck_assert_msg(ctl(wrong[i]) == EX_USAGE, "%s: %s", wrong[i], out);
	ck_assert_int_eq(ctl("agent set-master 192.0.2.1:1 192.0.2.2:65536"), EX_USAGE);
	ck_assert_ptr_nonnull(strstr(out, "not an address with a port from 1 to 65535"));
	ck_assert_ptr_nonnull(strstr(out, "192.0.2.2:65536"));
	asked = "master";
	ck_assert_int_eq(ctl("agent set-master 192.0.2.1:1 192.0.2.2:2"), EX_USAGE);
}
END_TEST

/* ---- requests of other clients ---- */

static struct wa_reply ask(const uint8_t *p, size_t len)
{
	int fd = cc_connect_unix(path, SOCK_STREAM), n;
	struct timeval tv = {5, 0};
	uint8_t hdr[WIRE_FRAME_HDR], buf[4096];
	struct wa_reply r;
	const char *why = "";

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
	ck_assert_int_eq(send(fd, p, len, 0), (ssize_t)len);
	ck_assert_int_eq(recv(fd, hdr, sizeof hdr, MSG_WAITALL), sizeof hdr);
	n = wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN);
	ck_assert_int_ge(n, 0);
	ck_assert_uint_le((size_t)n, sizeof buf);
	ck_assert_int_eq(recv(fd, buf, (size_t)n, MSG_WAITALL), n);
	ck_assert_int_eq(wire_admin_decode_reply(buf, (size_t)n, &r, &why), 0);
	close(fd);
	return r;
}

START_TEST(server_refuses_other_versions)
{
	struct wa_request q = {.version_min = 7, .version_max = 9, .verb = WA_STATUS};
	struct wa_reply r;
	uint8_t *frame;
	size_t len;

	serve(fill);
	ck_assert_int_eq(wire_admin_encode_request(&q, &frame, &len), 0);
	r = ask(frame, len);
	ck_assert_uint_eq(r.version, 0);
	ck_assert_ptr_nonnull(strstr(r.error, "7 to 9"));
	ck_assert_ptr_nonnull(strstr(r.error, "1 to 1"));
	wa_reply_clear(&r);
	free(frame);
	ck_assert_int_eq(ctl("ops"), EX_OK);
}
END_TEST

START_TEST(server_survives_garbage)
{
	struct tl_rng rng = tl_rng_new(2);
	uint8_t x[WIRE_FRAME_HDR + 300];
	struct wa_reply r;

	serve(fill);
	for (unsigned len = 0; len <= 300; len++) {
		int fd = cc_connect_unix(path, SOCK_STREAM);

		ck_assert_int_ge(fd, 0);
		wire_frame_put(x, WIRE_KIND_ADMIN, len);
		for (unsigned i = 0; i < len; i++)
			x[WIRE_FRAME_HDR + i] = (uint8_t)tl_u64(&rng);
		ck_assert_int_gt(send(fd, x, WIRE_FRAME_HDR + len, MSG_NOSIGNAL), 0);
		if (len > 0)
			(void)!send(fd, x + WIRE_FRAME_HDR, len, MSG_NOSIGNAL);
		close(fd);
	}
	wire_frame_put(x, WIRE_KIND_ADMIN, WIRE_FRAME_MAX);
	r = ask(x, WIRE_FRAME_HDR);
	ck_assert_str_eq(r.error, "malformed frame");
	wa_reply_clear(&r);
	ck_assert_int_eq(ctl("ops"), EX_OK);
}
END_TEST

/* ---- servers that misbehave ---- */

/* Accepts one client, sends these bytes, and closes without reading. */
static void answer_with(const void *p, size_t len)
{
	int fd = cc_listen_unix(path, SOCK_STREAM, 0600);

	ck_assert_int_ge(fd, 0);
	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int c = poll(&wait, 1, 20000) == 1 ? accept(fd, NULL, NULL) : -1;

		if (len > 0 && send(c, p, len, MSG_NOSIGNAL) < 0)
			_exit(1);
		close(c);
		_exit(0);
	}
	close(fd);
}

static void await_child(void)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	child = 0;
}

START_TEST(closed_connection_is_an_error)
{
	answer_with("", 0);
	ck_assert_int_eq(ctl("status"), EX_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(out, path));
	ck_assert_ptr_nonnull(strstr(out, "closed the connection"));
	await_child();
}
END_TEST

START_TEST(other_versions_are_named)
{
	struct wa_reply r = {.version_min = 7, .version_max = 9, .error = "no"};
	uint8_t *frame;
	size_t len;

	strcpy(r.daemon, "ccoip-masterd");
	strcpy(r.software, "9.9.9");
	ck_assert_int_eq(wire_admin_encode_reply(&r, &frame, &len), 0);
	answer_with(frame, len);
	ck_assert_int_eq(ctl("status"), EX_PROTOCOL);
	ck_assert_ptr_nonnull(strstr(out, "ccoip-masterd 9.9.9 speaks versions 7 to 9"));
	ck_assert_ptr_nonnull(strstr(out, PACKAGE_VERSION " speaks 1 to 1"));
	await_child();
	frame[4] = 3;
	answer_with(frame, len);
	ck_assert_int_eq(ctl("status"), EX_PROTOCOL);
	ck_assert_ptr_nonnull(strstr(out, "framing version 3"));
	ck_assert_ptr_nonnull(strstr(out, "speaks version 1"));
	await_child();
	free(frame);
}
END_TEST

START_TEST(other_servers_are_recognized)
{
	answer_with("220 mail.example ESMTP\r\n", 24);
	ck_assert_int_eq(ctl("status"), EX_PROTOCOL);
	ck_assert_ptr_nonnull(strstr(out, "not the admin socket"));
	await_child();
}
END_TEST

START_TEST(a_missing_daemon_is_reported)
{
	ck_assert_int_eq(ctl("status"), EX_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(out, path));
	ck_assert_ptr_nonnull(strstr(out, "start ccoip-masterd"));
}
END_TEST

START_TEST(wrong_usage_is_refused)
{
	ck_assert_int_eq(ctl(""), EX_USAGE);
	ck_assert_int_eq(ctl("nonsense"), EX_USAGE);
	ck_assert_int_eq(ctl("status peers"), EX_USAGE);
	ck_assert_int_eq(ctl("state --now"), EX_USAGE);
	ck_assert_int_eq(ctl("--agent /x status"), EX_USAGE);
	ck_assert_int_eq(ctl("--nonsense status"), EX_USAGE);
	ck_assert_int_eq(ctl("--help"), EX_OK);
	ck_assert_ptr_nonnull(strstr(out, "--master PATH"));
	ck_assert_int_eq(ctl("--version"), EX_OK);
	ck_assert_str_eq(out, "pcclctl " PACKAGE_VERSION "\n");
}
END_TEST

START_TEST(full_disk_for_output_is_an_error)
{
	ck_assert_int_eq(ctl("--help >/dev/full"), EX_IOERR);
}
END_TEST

/* ---- numbers ---- */

START_TEST(numbers_have_units)
{
	static const struct {
		uint64_t n;
		const char *bytes, *duration;
	} cases[] = {
		{0, "0 B", "0 ns"},
		{999, "999 B", "999 ns"},
		{1023, "1023 B", "1.0 us"},
		{1024, "1.0 KiB", "1.0 us"},
		{999949, "976.5 KiB", "999.9 us"},
		{999950, "976.5 KiB", "1.0 ms"},
		{1048575, "1.0 MiB", "1.0 ms"},
		{1500000000, "1.4 GiB", "1.5 s"},
		{59999000000, "55.9 GiB", "59.9 s"},
		{60000000000, "55.9 GiB", "1 min 00 s"},
		{3661000000000, "3.3 TiB", "1 h 01 min"},
		{90000000000000, "81.9 TiB", "1 d 01 h"},
	};
	char buf[PRINT_VALUE_SIZE];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ck_assert_str_eq(print_bytes(cases[i].n, buf), cases[i].bytes);
		ck_assert_str_eq(print_duration(cases[i].n, buf), cases[i].duration);
	}
}
END_TEST

/* ---- which master is asked ---- */

static struct ctl_target target;
static char why[1024];

/* Opens a master's socket in the folder of this user's daemons. */
static int listen_at(const char *name, unsigned mode)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sun.sun_path, sizeof sun.sun_path, "%s/pccl/%s", dir, name);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof sun), 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(chmod(sun.sun_path, mode), 0);
	return fd;
}

static void put_folder(void)
{
	char text[128];

	if (geteuid() == 0) { /* root may ask every socket */
		ck_assert_int_eq(chmod(dir, 0777), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	(void)snprintf(text, sizeof text, "%s/pccl", dir);
	ck_assert_int_eq(mkdir(text, 0700), 0);
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	ck_assert_int_eq(setenv("TMPDIR", dir, 1), 0);
}

static void remove_folder(void)
{
	char text[128];

	(void)snprintf(text, sizeof text, "rm -r %s/pccl", dir);
	ck_assert_int_eq(system(text), 0);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}

static bool is_found(const char *name)
{
	char text[128];

	(void)snprintf(text, sizeof text, "%s/pccl/%s", dir, name);
	return ctl_target_master(&target, why, sizeof why) == 0 && target.n == 1 &&
	       strcmp(target.paths[0], text) == 0;
}

START_TEST(a_master_is_counted_once)
{
	char one[128], other[128];
	int fd, fd2;

	put_folder();
	fd = listen_at("master-admin.sock", 0600); /* this socket's name has no port */
	ck_assert_int_eq(ctl_target_master(&target, why, sizeof why), EX_UNAVAILABLE);
	fd2 = listen_at("master-1-admin.sock", 0600);
	ck_assert(is_found("master-1-admin.sock"));
	(void)snprintf(one, sizeof one, "%s/pccl/master-1-admin.sock", dir);
	(void)snprintf(other, sizeof other, "%s/pccl/master-2-admin.sock", dir);
	ck_assert_int_eq(link(one, other), 0);
	ck_assert(is_found("master-1-admin.sock"));
	close(fd);
	close(fd2);
	remove_folder();
}
END_TEST

/* A socket that this user may not ask does not prove that a master listens there. */
START_TEST(a_master_that_answers_is_preferred)
{
	int fd, fd2;

	put_folder();
	fd = listen_at("master-1-admin.sock", 0);
	ck_assert(is_found("master-1-admin.sock"));
	fd2 = listen_at("master-2-admin.sock", 0600);
	ck_assert(is_found("master-2-admin.sock"));
	close(fd2);
	fd2 = listen_at("master-3-admin.sock", 0);
	ck_assert_int_eq(ctl_target_master(&target, why, sizeof why), EX_USAGE);
	ck_assert_ptr_nonnull(strstr(why, "2 masters have sockets on this host ("));
	close(fd);
	close(fd2);
	remove_folder();
}
END_TEST

Suite *pcclctl_suite(void)
{
	const TTest *const tests[] = {tables_are_printed_for_people, tables_are_printed_as_json,
		shared_state_is_printed_for_people, shared_state_is_printed_as_json,
		answer_that_does_not_fit_is_reported, set_master_sends_its_request,
		reset_sends_its_request, topology_is_printed_as_a_table_and_as_a_graph,
		denied_access_has_its_own_exit_status, wrong_set_master_arguments_are_refused,
		server_refuses_other_versions, server_survives_garbage,
		closed_connection_is_an_error, other_versions_are_named,
		other_servers_are_recognized, a_missing_daemon_is_reported, wrong_usage_is_refused,
		full_disk_for_output_is_an_error, numbers_have_units, a_master_is_counted_once,
		a_master_that_answers_is_preferred, progress_is_a_bar};
	Suite *s = suite_create("pcclctl");
	TCase *c = tcase_create("pcclctl");

	tcase_add_checked_fixture(c, make_dir, remove_dir);
	tcase_set_timeout(c, 30);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
