/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"

#define FILE_NAME "run.journal"
#define TMP_NAME  "run.journal.new"
#define RATES     "rates.journal"
#define RATES_TMP "rates.journal.new"
/* The size of the longest file that is read. */
#define SIZE_MAX_IN ((off_t)256 << 20)
/* A snapshot replaces the file if it has this many bytes, and this many times the size of the
 * snapshot. */
#define COMPACT    ((size_t)1 << 20)
#define COMPACT_BY 4u
/* The log reports that the journal is good again after this time without a failure. */
#define GOOD_NS 60000000000u

struct journal {
	int dir, fd;
	int lock; /* a separate file, because the journal itself is replaced */
	char *path;
	size_t size;     /* bytes of the file, all of them valid */
	size_t snapshot; /* bytes of the last MEMBERS record */
	uint8_t *run;    /* the last RUN record */
	size_t run_len;
	bool broken; /* nothing can be appended any more */
	/* On a full disk, writes fail again and again: each failure empties the journal, and the
	 * freed room is enough for only a few writes. So only the first failure is logged. */
	uint32_t failures; /* their number since the journal was last good for GOOD_NS */
	uint64_t good_ns;  /* the time since which no write has failed; 0: not known yet */
	char *rates_path;
	bool rates_failed; /* the rates could not be written the last time */
};

static int write_all(int fd, const uint8_t *p, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return CC_ERR_IO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static uint64_t wall_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec > 0 ? (uint64_t)ts.tv_sec : 0;
}

/* ---- reading ---- */

static int keep_run(struct journal *j, const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len);

	if (!copy)
		return CC_ERR_NOMEM;
	memcpy(copy, p, len);
	free(j->run);
	j->run = copy;
	j->run_len = len;
	return 0;
}

static int take(struct journal *j, const struct wj_record *r, const uint8_t *p, size_t len)
{
	if (r->type == WJ_MEMBERS)
		j->snapshot = len;
	return r->type == WJ_RUN ? keep_run(j, p, len) : 0;
}

/* Gives the records to m, up to the first one that is not whole. */
static int replay(struct journal *j, struct ccm *m, const uint8_t *buf, size_t len)
{
	const char *why = "the last record is cut short";
	struct wj_record r;
	size_t used;
	int err = 0;

	j->size = WJ_HEADER;
	while (j->size < len) {
		err = wire_journal_decode(buf + j->size, len - j->size, &r, &used, &why);
		if (err < 0)
			break;
		ccm_restore(m, &r);
		err = take(j, &r, buf + j->size, used);
		wire_journal_clear(&r);
		if (err < 0)
			return err;
		j->size += used;
	}
	if (err == CC_ERR_NOMEM)
		return err;
	if (j->size < len)
		cc_log(CC_LOG_WARNING, "%s: %zu bytes at its end are ignored: %s", j->path,
			len - j->size, why);
	return 0;
}

static uint8_t *read_file(int fd, size_t size)
{
	uint8_t *buf = malloc(size ? size : 1);
	size_t at = 0;
	ssize_t n;

	while (buf && at < size) {
		n = pread(fd, buf + at, size - at, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n == 0)
				errno = EIO;
			free(buf);
			return NULL;
		}
		at += (size_t)n;
	}
	return buf;
}

/* ---- the rates ----
 *
 * They are in a file of their own, because they outlive runs and nothing depends on them. A new
 * file replaces the old one. It is not flushed to the disk: a write then costs the loop no time,
 * and if the host fails, links are only measured again. */

/* Gives the rates in the file to m. Returns NULL, or why the file is of no use. */
static const char *use_rates(struct ccm *m, const uint8_t *buf, size_t len)
{
	const char *why = "it is cut short";
	struct wj_record r;
	size_t used;
	int err = wire_journal_check(buf, len);

	if (err == CC_ERR_VERSION)
		return "another version of ccoip-masterd has written it";
	if (err == CC_ERR_PROTO)
		return "it is no journal";
	if (err == 0)
		err = wire_journal_decode(buf + WJ_HEADER, len - WJ_HEADER, &r, &used, &why);
	if (err < 0)
		return err == CC_ERR_NOMEM ? cc_err_str(err) : why;
	wire_journal_age(&r, wall_s());
	ccm_restore(m, &r);
	wire_journal_clear(&r);
	return NULL;
}

/* A file that cannot be used is replaced by the next rates. */
static void load_rates(struct journal *j, struct ccm *m)
{
	int fd = openat(j->dir, RATES, O_RDONLY | O_CLOEXEC);
	const char *why = NULL;
	uint8_t *buf = NULL;
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || fstat(fd, &st) < 0)
		why = strerror(errno);
	else if (st.st_size > SIZE_MAX_IN)
		why = "it is longer than any valid file";
	else if (!(buf = read_file(fd, (size_t)st.st_size)))
		why = strerror(errno);
	else
		why = use_rates(m, buf, (size_t)st.st_size);
	free(buf);
	if (fd >= 0)
		close(fd);
	if (why)
		cc_log(CC_LOG_WARNING,
			"%s: cannot be used: %s; the next pcclOptimizeTopology measures the links",
			j->rates_path, why);
}

static int replace_rates(struct journal *j, const uint8_t *p, size_t len)
{
	int fd = openat(j->dir, RATES_TMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t hdr[WJ_HEADER];
	int error;

	if (fd < 0)
		return CC_ERR_IO;
	wire_journal_header(hdr);
	if (write_all(fd, hdr, sizeof hdr) == 0 && write_all(fd, p, len) == 0 &&
		renameat(j->dir, RATES_TMP, j->dir, RATES) == 0) {
		close(fd);
		return 0;
	}
	error = errno;
	close(fd);
	(void)unlinkat(j->dir, RATES_TMP, 0);
	errno = error;
	return CC_ERR_IO;
}

/* After a failure the older file stays. What it has was measured, and its age is known. */
static void write_rates(struct journal *j, const uint8_t *p, size_t len)
{
	bool failed = replace_rates(j, p, len) < 0;

	if (failed && !j->rates_failed)
		cc_log(CC_LOG_ERR,
			"%s: cannot be written: %s; the next master may have to measure links "
			"again",
			j->rates_path, strerror(errno));
	else if (!failed && j->rates_failed)
		cc_log(CC_LOG_NOTICE, "%s: is written again", j->rates_path);
	j->rates_failed = failed;
}

static int start_file(struct journal *j)
{
	uint8_t hdr[WJ_HEADER];

	wire_journal_header(hdr);
	j->size = sizeof hdr;
	if (ftruncate(j->fd, 0) < 0 || lseek(j->fd, 0, SEEK_SET) < 0 ||
		write_all(j->fd, hdr, sizeof hdr) < 0 || fsync(j->fd) < 0 || fsync(j->dir) < 0)
		return CC_ERR_IO;
	return 0;
}

static int load(struct journal *j, struct ccm *m)
{
	struct stat st;
	uint8_t *buf;
	int err;

	if (fstat(j->fd, &st) < 0)
		return CC_ERR_IO;
	if (st.st_size > SIZE_MAX_IN)
		return CC_ERR_LIMIT;
	buf = read_file(j->fd, (size_t)st.st_size);
	if (!buf)
		return CC_ERR_IO;
	err = wire_journal_check(buf, (size_t)st.st_size);
	if (err == 0)
		err = replay(j, m, buf, (size_t)st.st_size);
	else if (err == CC_ERR_AGAIN) /* new, or never finished */
		err = start_file(j);
	free(buf);
	if (err == 0 && (ftruncate(j->fd, (off_t)j->size) < 0 ||
				lseek(j->fd, (off_t)j->size, SEEK_SET) < 0))
		err = CC_ERR_IO;
	return err;
}

/* ---- writing ---- */

/* Abandons the journal after a failure, and empties it. Its records are outdated from now on, so
 * the next master must not use them. */
static void give_up(struct journal *j, const char *what)
{
	bool tell = j->failures == 0;

	j->good_ns = 0;
	if (j->failures < UINT32_MAX)
		j->failures++;
	if (j->broken)
		return;
	j->broken = true;
	if (tell)
		cc_log(CC_LOG_ERR,
			"%s: %s: %s; the master goes on without the journal, and a restarted "
			"master will take the run over from its agents",
			j->path, what, strerror(errno));
	if ((ftruncate(j->fd, 0) < 0 || fdatasync(j->fd) < 0) && tell)
		cc_log(CC_LOG_ERR,
			"%s: cannot be emptied: %s; remove it before a master starts here", j->path,
			strerror(errno));
}

/* Replaces the file by a new one with the run and this snapshot. */
static int compact(struct journal *j, const uint8_t *members, size_t len)
{
	int fd = openat(j->dir, TMP_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t hdr[WJ_HEADER];

	if (fd < 0)
		return CC_ERR_IO;
	wire_journal_header(hdr);
	if (write_all(fd, hdr, sizeof hdr) < 0 || write_all(fd, j->run, j->run_len) < 0 ||
		write_all(fd, members, len) < 0 || fsync(fd) < 0 ||
		renameat(j->dir, TMP_NAME, j->dir, FILE_NAME) < 0)
		goto err_close;
	(void)fsync(j->dir);
	close(j->fd);
	j->fd = fd;
	j->size = sizeof hdr + j->run_len + len;
	j->snapshot = len;
	return 0;
err_close:
	close(fd);
	(void)unlinkat(j->dir, TMP_NAME, 0);
	return CC_ERR_IO;
}

/* Was the file removed? Then the next master would not find its records. */
static bool was_removed(const struct journal *j)
{
	struct stat st;

	if (fstat(j->fd, &st) < 0 || st.st_nlink > 0)
		return false;
	errno = ENOENT;
	return true;
}

static void append(struct journal *j, const uint8_t *p, size_t len)
{
	if (write_all(j->fd, p, len) < 0 || fdatasync(j->fd) < 0 || was_removed(j))
		give_up(j, "cannot be written");
	else
		j->size += len;
}

static bool is_due(const struct journal *j, size_t len)
{
	return j->size + len >= COMPACT && j->size + len >= COMPACT_BY * (len + j->run_len);
}

static void write_snapshot(struct journal *j, const uint8_t *p, size_t len)
{
	if (!j->broken && (!j->run || !is_due(j, len))) {
		append(j, p, len);
		j->snapshot = len;
		return;
	}
	if (!j->run || compact(j, p, len) < 0) {
		give_up(j, "cannot be rewritten");
		return;
	}
	j->broken = false;
}

static void write_store(struct journal *j, const struct wj_record *r)
{
	struct wj_record stamped = *r;
	uint8_t *p;
	size_t len;

	stamped.written_s = wall_s();
	if (wire_journal_encode(&stamped, &p, &len) < 0) {
		cc_log(CC_LOG_ERR, "%s: cannot be written: no memory", j->rates_path);
		return;
	}
	write_rates(j, p, len);
	free(p);
}

void journal_write(struct journal *j, const struct wj_record *r)
{
	uint8_t *p;
	size_t len;
	int err;

	if (r->type == WJ_RATES) {
		write_store(j, r);
		return;
	}
	err = wire_journal_encode(r, &p, &len);
	if (err == 0)
		err = take(j, r, p, len);
	if (err < 0) {
		errno = ENOMEM;
		give_up(j, cc_err_str(err));
		return;
	}
	if (r->type == WJ_MEMBERS)
		write_snapshot(j, p, len);
	else if (!j->broken)
		append(j, p, len);
	free(p);
}

void journal_tick(struct journal *j, uint64_t now_ns)
{
	if (!j || j->failures == 0 || j->broken)
		return;
	if (j->good_ns == 0)
		j->good_ns = now_ns;
	if (now_ns - j->good_ns < GOOD_NS)
		return;
	cc_log(CC_LOG_NOTICE, "%s: the journal is written again; writing it had failed %u %s",
		j->path, j->failures, j->failures == 1 ? "time" : "times");
	j->failures = 0;
}

/* ---- opening and closing ---- */

static int open_files(struct journal *j, const char *dir)
{
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return CC_ERR_IO;
	j->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return CC_ERR_IO;
	j->lock = openat(j->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (j->lock < 0)
		return CC_ERR_IO;
	if (flock(j->lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? CC_ERR_EXIST : CC_ERR_IO;
	j->fd = openat(j->dir, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return j->fd < 0 ? CC_ERR_IO : 0;
}

static const char *explain_errno(char limit[CC_LIMIT_TEXT])
{
	switch (errno) {
	case ENOENT:
		return "its parent folder does not exist: create it";
	case ENOTDIR:
		return "it is not a folder, or a part of its path is a file";
	default:
		return cc_limit_text(errno, limit, CC_LIMIT_TEXT);
	}
}

static const char *explain(int err, char limit[CC_LIMIT_TEXT])
{
	switch (err) {
	case CC_ERR_IO:
		return explain_errno(limit);
	case CC_ERR_EXIST:
		return "another master uses it: give each master its own --state-dir";
	case CC_ERR_VERSION:
		return "another version of ccoip-masterd has written it: move it away, and the "
		       "master "
		       "takes the run over from its agents";
	case CC_ERR_PROTO:
		return "this is no journal: move it away";
	default:
		return cc_err_str(err);
	}
}

/* Are the path or its permissions wrong? (EROFS is not such a mistake: a disk that fails becomes
 * read-only.) */
static bool is_mistake(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EISDIR || error == ELOOP ||
	       error == ENAMETOOLONG || error == EACCES || error == EPERM;
}

/* Returns the exit status for an error. EX_CONFIG: a restart does not help. */
static int status_of(int err)
{
	switch (err) {
	case CC_ERR_EXIST:
		return EX_UNAVAILABLE;
	case CC_ERR_NOMEM:
		return EX_OSERR;
	case CC_ERR_IO:
		return is_mistake(errno) ? EX_CONFIG : EX_OSERR;
	default:
		return EX_CONFIG;
	}
}

struct journal *journal_open(const char *dir, struct ccm *m, int *exit_code)
{
	struct journal *j = calloc(1, sizeof *j);
	int err = CC_ERR_NOMEM;
	char limit[CC_LIMIT_TEXT];

	if (j) {
		j->dir = j->lock = j->fd = -1;
		if (asprintf(&j->path, "%s/" FILE_NAME, dir) < 0)
			j->path = NULL;
		if (asprintf(&j->rates_path, "%s/" RATES, dir) < 0)
			j->rates_path = NULL;
		if (j->path && j->rates_path)
			err = open_files(j, dir);
	}
	if (err == 0)
		err = load(j, m);
	if (err == 0) {
		load_rates(j, m);
		return j;
	}
	*exit_code = status_of(err);
	cc_log(CC_LOG_ERR, "cannot use %s: %s", j && j->dir >= 0 ? j->path : dir,
		explain(err, limit));
	journal_close(j);
	return NULL;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	if (j->lock >= 0)
		close(j->lock);
	if (j->dir >= 0)
		close(j->dir);
	free(j->run);
	free(j->path);
	free(j->rates_path);
	free(j);
}
