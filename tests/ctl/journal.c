/* SPDX-License-Identifier: MIT
 *
 * Tests the file of the master's journal. The test is linked with --wrap, so that it can let calls
 * fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "ccoip-masterd/journal.h"
#include "common/cc_log.h"
#include "tests/common/testlib.h"
#include "tests/ctl/suites.h"

#define MANY 4000

static char dir[64], path[128];
static struct ccm *m;
static struct wj_member members[MANY];

static int lock_errno; /* the error of flock, or 0: flock works */
static bool reads_none;

int __real_flock(int fd, int how);
ssize_t __real_pread(int fd, void *buf, size_t n, off_t at);
int __wrap_flock(int fd, int how);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at);

int __wrap_flock(int fd, int how)
{
	if (!lock_errno)
		return __real_flock(fd, how);
	errno = lock_errno;
	return -1;
}

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at)
{
	return reads_none ? 0 : __real_pread(fd, buf, n, at);
}

static void setup(void)
{
	size_t i;

	cc_log_set_level(CC_LOG_ERR - 1);
	(void)snprintf(dir, sizeof dir, "/tmp/pccl-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/run.journal", dir);
	for (i = 0; i < MANY; i++) {
		memcpy(members[i].peer.b, &(uint32_t){(uint32_t)i + 1}, 4);
		members[i].token = members[i].peer;
		members[i].agent.b[0] = (uint8_t)(1 + i % 16);
		(void)snprintf(members[i].host, sizeof members[i].host, "host-%zu", i % 16);
	}
}

static void teardown(void)
{
	char text[160];

	ccm_free(m);
	m = NULL;
	(void)snprintf(text, sizeof text, "rm -r %s", dir);
	ck_assert_int_eq(system(text), 0);
}

static struct journal *open_it(void)
{
	struct ccm_config cfg = {.run = {{8}}, .run_key = {{9}}, .journal = true};
	int code;

	ccm_free(m);
	m = ccm_new(&cfg);
	return journal_open(dir, m, &code);
}

static void put_run(struct journal *j, uint64_t term)
{
	struct wj_record r = {.type = WJ_RUN, .run = {{1}}, .run_key = {{2}}, .term = term};

	journal_write(j, &r);
}

static void put_members(struct journal *j, uint64_t epoch, uint32_t n)
{
	struct wj_record r = {.type = WJ_MEMBERS, .epoch = epoch, .n = n, .members = members};

	journal_write(j, &r);
}

static void put_lost(struct journal *j)
{
	struct wj_record r = {.type = WJ_LOST, .n = 1, .members = members};

	journal_write(j, &r);
}

/* Returns the state that a master would restore if it started now. */
static struct ccm_status restored(void)
{
	struct journal *j = open_it();
	struct ccm_event tick = {.type = CCM_EV_TICK};
	struct ccm_actions out = {0};
	struct ccm_status s;

	ck_assert_ptr_nonnull(j);
	ccm_step(m, &tick, 1000000000, &out);
	ck_assert_ptr_null(ccm_check(m));
	ccm_actions_free(&out);
	ccm_get_status(m, &s);
	journal_close(j);
	return s;
}

static size_t size_of(void)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return (size_t)st.st_size;
}

static uint8_t *contents(size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *p;

	*len = size_of();
	p = malloc(*len);
	ck_assert_int_eq(read(fd, p, *len), (ssize_t)*len);
	close(fd);
	return p;
}

static void replace(const uint8_t *p, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(fd, p, len), (ssize_t)len);
	close(fd);
}

static void fill(void)
{
	struct journal *j = open_it();

	put_run(j, 1);
	put_members(j, 5, 3);
	put_lost(j);
	put_members(j, 6, 7);
	journal_close(j);
}

START_TEST(written_state_is_restored)
{
	struct ccm_status s;

	fill();
	s = restored();
	ck_assert_uint_eq(s.accepted, 7);
	ck_assert_uint_eq(s.epoch, 6);
	ck_assert_uint_eq(s.term, 2);
	ck_assert_uint_eq(s.run.b[0], 1);
	ck_assert(s.recovering);
}
END_TEST

START_TEST(file_that_ends_anywhere_is_restored_up_to_its_end)
{
	size_t len, at, last = 0;
	struct journal *j;
	struct ccm_status s;
	uint8_t *p;

	fill();
	p = contents(&len);
	for (at = 0; at <= len; at++) {
		replace(p, at);
		s = restored();
		/* A longer file gives at least as much state as a shorter file. */
		ck_assert(s.accepted == 0 || s.accepted == 3 || s.accepted == 2 || s.accepted == 7);
		if (s.accepted > 0) {
			ck_assert_uint_ge(s.epoch, last);
			last = s.epoch;
		}
		/* The tail is gone, and the next records can be read. */
		j = open_it();
		put_run(j, 4);
		put_members(j, 9, 5);
		journal_close(j);
		s = restored();
		ck_assert_uint_eq(s.accepted, 5);
		ck_assert_uint_eq(s.term, 5);
	}
	ck_assert_uint_eq(last, 6);
	free(p);
}
END_TEST

START_TEST(every_bit_of_the_file_is_checked)
{
	struct ccm_status s;
	struct journal *j;
	size_t len, at;
	uint8_t *p;

	fill();
	p = contents(&len);
	for (at = 0; at < len; at++) {
		p[at] ^= (uint8_t)(1 << at % 8);
		replace(p, len);
		p[at] ^= (uint8_t)(1 << at % 8);
		if (at < 12) { /* in the name or the version: the file seems to be another program's
				*/
			j = open_it();
			ck_assert_ptr_null(j);
			ck_assert_uint_eq(size_of(), len);
			continue;
		}
		s = restored();
		ck_assert(s.accepted == 0 || s.accepted == 3 || s.accepted == 2 ||
			  (at < WJ_HEADER && s.accepted == 7));
	}
	free(p);
}
END_TEST

START_TEST(full_disk_disables_journal_for_a_while)
{
	struct rlimit limit;
	struct ccm_status s;
	struct journal *j;
	size_t len;

	fill();
	len = size_of();
	signal(SIGXFSZ, SIG_IGN);
	j = open_it();
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = len + 100;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put_members(j, 7, MANY);
	ck_assert_uint_eq(size_of(), 0); /* the earlier contents are out of date */
	put_lost(j);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	/* A loss can be restored only if a list of members comes before it in the journal. */
	put_lost(j);
	ck_assert_uint_eq(size_of(), 0);
	put_members(j, 8, 9);
	put_lost(j);
	journal_close(j);
	s = restored();
	ck_assert_uint_eq(s.epoch, 8);
	ck_assert_uint_eq(s.accepted, 8);
	ck_assert_uint_eq(s.term, 2);
}
END_TEST

static size_t count_lines(int log, char *last, size_t size)
{
	char text[4096];
	ssize_t n = pread(log, text, sizeof text - 1, 0);
	size_t lines = 0;

	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, (ssize_t)sizeof text - 1);
	text[n] = '\0';
	for (char *save, *line = strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save), lines++)
		(void)snprintf(last, size, "%s", line);
	return lines;
}

/* The space that an emptied journal frees is enough for a new journal, but not for long. */
START_TEST(full_disk_does_not_fill_the_log)
{
	uint64_t second = 1000000000, now = second, epoch = 10;
	struct rlimit limit;
	struct journal *j;
	char last[256] = "";
	int log;

	fill();
	signal(SIGXFSZ, SIG_IGN);
	j = open_it();
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size_of() + 100;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_eq(dup2(log, STDERR_FILENO), STDERR_FILENO);
	cc_log_set_level(CC_LOG_INFO);
	journal_tick(j, now);
	for (; epoch < 400; epoch++) {
		put_members(j, epoch, 3);
		journal_tick(j, now += second / 50);
	}
	ck_assert_uint_eq(count_lines(log, last, sizeof last), 1);
	ck_assert_ptr_nonnull(strstr(last, "cannot be written: File too large"));

	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put_members(j, epoch, 3);
	journal_tick(j, now);
	ck_assert_uint_eq(count_lines(log, last, sizeof last), 1);
	journal_tick(j, now + 60 * second);
	journal_tick(j, now + 120 * second);
	ck_assert_uint_eq(count_lines(log, last, sizeof last), 2);
	ck_assert_ptr_nonnull(strstr(last, "is written again"));
	ck_assert_ptr_nonnull(strstr(last, " times"));

	ck_assert_int_eq(unlink(path), 0);
	put_lost(j);
	ck_assert_uint_eq(count_lines(log, last, sizeof last), 3);
	journal_close(j);
	close(log);
}
END_TEST

START_TEST(state_that_was_not_written_is_not_restored)
{
	struct rlimit limit;
	struct ccm_status s;
	struct journal *j;

	fill();
	signal(SIGXFSZ, SIG_IGN);
	j = open_it();
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size_of() + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put_lost(j);
	journal_close(j);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	s = restored();
	ck_assert_uint_eq(s.accepted, 0);
	ck_assert_uint_eq(s.epoch, 0);
}
END_TEST

/* For example, an operator removes the file. */
START_TEST(removed_file_is_written_again)
{
	struct ccm_status s;
	struct journal *j = open_it();

	put_run(j, 1);
	put_members(j, 5, 3);
	ck_assert_int_eq(unlink(path), 0);
	put_lost(j);
	ck_assert_int_eq(access(path, F_OK), -1);
	put_members(j, 6, 7);
	put_lost(j);
	journal_close(j);
	s = restored();
	ck_assert_uint_eq(s.epoch, 6);
	ck_assert_uint_eq(s.accepted, 6);
}
END_TEST

START_TEST(long_file_is_rewritten)
{
	struct journal *j = open_it();
	struct ccm_status s;
	size_t largest = 0;
	uint64_t i;

	put_run(j, 3);
	for (i = 1; i <= 40; i++) {
		put_members(j, i, MANY);
		if (size_of() > largest)
			largest = size_of();
	}
	journal_close(j);
	ck_assert_uint_lt(largest, 6 * ((size_t)MANY * 80));
	s = restored();
	ck_assert_uint_eq(s.accepted, MANY);
	ck_assert_uint_eq(s.epoch, 40);
	ck_assert_uint_eq(s.term, 4);
}
END_TEST

START_TEST(folder_is_used_by_one_master_only)
{
	struct journal *j = open_it(), *k;
	struct ccm *mine = m;

	m = NULL;
	k = open_it();
	ck_assert_ptr_null(k);
	journal_close(j);
	ccm_free(mine);
	k = open_it();
	ck_assert_ptr_nonnull(k);
	journal_close(k);
}
END_TEST

START_TEST(missing_folder_is_created)
{
	struct journal *j;
	char deep[sizeof dir];

	memcpy(deep, dir, sizeof deep);
	(void)snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "/new");
	j = open_it();
	ck_assert_ptr_nonnull(j);
	journal_close(j);
	(void)snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "/a/b");
	j = open_it();
	ck_assert_ptr_null(j);
	memcpy(dir, deep, sizeof dir);
}
END_TEST

/* Root may write anywhere, so another user writes. */
START_TEST(folder_of_another_user_is_refused)
{
	int code = 0;

	ck_assert_int_eq(chmod(dir, 0500), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	m = ccm_new(&(struct ccm_config){.run = {{8}}, .run_key = {{9}}, .journal = true});
	ck_assert_ptr_null(journal_open(dir, m, &code));
	ck_assert_int_eq(code, EX_CONFIG);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(dir, 0700), 0);
}
END_TEST

START_TEST(missing_descriptor_is_reported_as_limit)
{
	struct rlimit old, low;
	int code = 0;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 3;
	m = ccm_new(&(struct ccm_config){.run = {{8}}, .run_key = {{9}}, .journal = true});
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	ck_assert_ptr_null(journal_open(dir, m, &code));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(code, EX_OSERR);
}
END_TEST

/* systemd does not restart a service after EX_CONFIG, so this status is only for errors that a
 * person must correct. */
START_TEST(exit_code_prevents_restart_only_for_wrong_path)
{
	static const struct {
		int error, code;
	} cases[] = {{EDQUOT, EX_OSERR}, {ENOLCK, EX_OSERR}, {ESTALE, EX_OSERR}, {EIO, EX_OSERR},
		{ENOSPC, EX_OSERR}, {ETIMEDOUT, EX_OSERR}, {EWOULDBLOCK, EX_UNAVAILABLE},
		{EACCES, EX_CONFIG}, {ENOTDIR, EX_CONFIG}, {ELOOP, EX_CONFIG}};
	size_t i;
	int code;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		code = 0;
		lock_errno = cases[i].error;
		ccm_free(m);
		m = ccm_new(&(struct ccm_config){.run = {{8}}, .run_key = {{9}}, .journal = true});
		ck_assert_ptr_null(journal_open(dir, m, &code));
		ck_assert_int_eq(code, cases[i].code);
	}
	lock_errno = 0;
}
END_TEST

START_TEST(file_that_ends_during_reading_is_a_disk_failure)
{
	struct journal *j = open_it();
	int code = 0;

	put_run(j, 1);
	journal_close(j);
	reads_none = true;
	errno = EACCES;
	ck_assert_ptr_null(journal_open(dir, m, &code));
	ck_assert_int_eq(code, EX_OSERR);
	reads_none = false;
}
END_TEST

/* ---- the rates ---- */

#define HOSTS 20

static void put_rates(struct journal *j, uint64_t rate, uint32_t age_s)
{
	struct wj_rate v = {.from = 0, .to = 1, .rate = rate, .age_s = age_s};
	struct wj_host hosts[HOSTS];
	struct wj_record r = {
		.type = WJ_RATES, .n_hosts = HOSTS, .hosts = hosts, .n_rates = 1, .rates = &v};

	for (uint8_t i = 0; i < HOSTS; i++)
		hosts[i] = (struct wj_host){
			.agent = {{(uint8_t)(i + 1)}}, .addr = {CC_INET4, {10, 0, 0, i}, 48150}};
	journal_write(j, &r);
}

static struct ccm_rate_info rate;

static void see_rate(void *arg, const struct ccm_rate_info *r)
{
	(void)arg;
	rate = *r;
}

/* Returns the rate that a master would know if it started now, or 0. */
static uint64_t restored_rate(void)
{
	rate = (struct ccm_rate_info){.rate = 0};
	(void)restored();
	ccm_each_rate(m, 1000000000, see_rate, NULL);
	return rate.rate;
}

static void use_rates_file(void)
{
	(void)snprintf(path, sizeof path, "%s/rates.journal", dir);
}

START_TEST(rates_are_restored_with_their_age)
{
	struct journal *j = open_it();
	struct wj_record r;
	const char *why;
	size_t len, used;
	uint8_t *p, *again;

	put_rates(j, 5, 60);
	put_rates(j, 7, 100);
	journal_close(j);
	ck_assert_uint_eq(restored_rate(), 7);
	ck_assert_uint_ge(rate.age_ns / 1000000000, 100);
	ck_assert_uint_lt(rate.age_ns / 1000000000, 200);
	ck_assert_uint_eq(restored().accepted, 0);
	/* A file of before. */
	use_rates_file();
	p = contents(&len);
	ck_assert_int_eq(wire_journal_decode(p + WJ_HEADER, len - WJ_HEADER, &r, &used, &why), 0);
	ck_assert_uint_eq(used, len - WJ_HEADER);
	r.written_s -= 1800;
	ck_assert_int_eq(wire_journal_encode(&r, &again, &used), 0);
	memcpy(p + WJ_HEADER, again, used);
	replace(p, WJ_HEADER + used);
	ck_assert_uint_eq(restored_rate(), 7);
	ck_assert_uint_ge(rate.age_ns / 1000000000, 1900);
	wire_journal_clear(&r);
	free(again);
	free(p);
}
END_TEST

START_TEST(damaged_rates_are_ignored)
{
	struct journal *j = open_it();
	size_t len, at;
	uint8_t *p;

	put_rates(j, 7, 1);
	journal_close(j);
	fill();
	use_rates_file();
	p = contents(&len);
	for (at = 0; at < len; at++) {
		replace(p, at);
		ck_assert_uint_eq(restored_rate(), 0);
		p[at] ^= (uint8_t)(1 << at % 8);
		replace(p, len);
		ck_assert(restored_rate() == 0 || (at >= 12 && at < WJ_HEADER));
		p[at] ^= (uint8_t)(1 << at % 8);
	}
	ck_assert_uint_eq(restored().accepted, 7); /* the run does not depend on them */
	j = open_it();
	put_rates(j, 9, 1);
	journal_close(j);
	ck_assert_uint_eq(restored_rate(), 9);
	free(p);
}
END_TEST

/* A failure concerns neither the rates that were written before nor the run. */
START_TEST(full_disk_keeps_older_rates)
{
	struct rlimit limit;
	struct journal *j;
	char last[256] = "", text[160];
	int log, i;

	fill();
	j = open_it();
	put_rates(j, 7, 1);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	log = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_eq(dup2(log, STDERR_FILENO), STDERR_FILENO);
	cc_log_set_level(CC_LOG_INFO);
	limit.rlim_cur = 500; /* the log must fit */
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (i = 0; i < 20; i++)
		put_rates(j, 8, 1);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_uint_eq(count_lines(log, last, sizeof last), 1);
	ck_assert_msg(strstr(last, "rates.journal: cannot be written: File too large") != NULL,
		"%s", last);
	(void)snprintf(text, sizeof text, "%s/rates.journal.new", dir);
	ck_assert_int_eq(access(text, F_OK), -1);
	journal_close(j);
	cc_log_set_level(CC_LOG_ERR - 1);
	ck_assert_uint_eq(restored_rate(), 7);
	ck_assert_uint_eq(restored().accepted, 7);
	cc_log_set_level(CC_LOG_INFO);
	j = open_it();
	put_rates(j, 9, 1);
	journal_close(j);
	cc_log_set_level(CC_LOG_ERR - 1);
	ck_assert_uint_eq(restored_rate(), 9);
	close(log);
}
END_TEST

Suite *journal_suite(void)
{
	Suite *s = suite_create("journal");
	TCase *tc = tcase_create("journal");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, written_state_is_restored);
	tcase_add_test(tc, file_that_ends_anywhere_is_restored_up_to_its_end);
	tcase_add_test(tc, every_bit_of_the_file_is_checked);
	tcase_add_test(tc, full_disk_disables_journal_for_a_while);
	tcase_add_test(tc, full_disk_does_not_fill_the_log);
	tcase_add_test(tc, state_that_was_not_written_is_not_restored);
	tcase_add_test(tc, removed_file_is_written_again);
	tcase_add_test(tc, long_file_is_rewritten);
	tcase_add_test(tc, folder_is_used_by_one_master_only);
	tcase_add_test(tc, missing_folder_is_created);
	tcase_add_test(tc, folder_of_another_user_is_refused);
	tcase_add_test(tc, missing_descriptor_is_reported_as_limit);
	tcase_add_test(tc, exit_code_prevents_restart_only_for_wrong_path);
	tcase_add_test(tc, file_that_ends_during_reading_is_a_disk_failure);
	tcase_add_test(tc, rates_are_restored_with_their_age);
	tcase_add_test(tc, damaged_rates_are_ignored);
	tcase_add_test(tc, full_disk_keeps_older_rates);
	suite_add_tcase(s, tc);
	return s;
}
